"""Gateway profiles: one TOML file each, and the loader. Knows nothing but the standard library."""

from harness.gateways.durations import DurationError, format_duration, parse_duration
from harness.gateways.loader import GatewayFileError, load, names
from harness.gateways.profile import (
    LIMIT_NAMES,
    PROTOCOLS,
    Endpoint,
    ErrorShape,
    Keepalive,
    Limit,
    Limits,
    Profile,
    Protocol,
)

__all__ = [
    "LIMIT_NAMES", "PROTOCOLS", "DurationError", "Endpoint", "ErrorShape", "GatewayFileError", "Keepalive",
    "Limit", "Limits", "Profile", "Protocol", "format_duration", "load", "names", "parse_duration",
]  # fmt: skip
