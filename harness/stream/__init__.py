"""One attempt's life: bytes and times in, one outcome and one record out. Pure."""

from harness.stream.assemble import assemble
from harness.stream.describe import describe, failure_name
from harness.stream.record import Attempt, Identity, RequestSummary, Retry
from harness.stream.session import Session

__all__ = [
    "Attempt",
    "Identity",
    "RequestSummary",
    "Retry",
    "Session",
    "assemble",
    "describe",
    "failure_name",
]
