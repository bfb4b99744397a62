"""Which requests go through a proxy, by the environment's rules as httpx understands them.

HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name proxies; NO_PROXY names hosts that go without: a domain with
its subdomains, a domain with a leading dot (its subdomains only), an IP address, `localhost`, any of
them after a scheme or before a port, or `*` for all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.request import getproxies

import httpx


@dataclass(frozen=True, slots=True)
class _Exception:
    """One entry of NO_PROXY."""

    scheme: str  # "all" or the only one meant
    host: str
    port: int | None
    subdomains: bool
    itself: bool

    def covers(self, url: httpx.URL) -> bool:
        if self.scheme not in ("all", url.scheme) or self.port not in (None, url.port):
            return False
        if self.itself and url.host == self.host:
            return True
        return self.subdomains and url.host.endswith(f".{self.host}")


class ProxyRules:
    """Answers for each URL whether a proxy applies."""

    __slots__ = ("_by_scheme", "_exceptions")

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Read *settings* (`http`, `https`, `all`, `no`), by default the environment's."""
        found = getproxies() if settings is None else settings
        self._by_scheme = {
            scheme: address if "://" in address else f"http://{address}"
            for scheme in ("http", "https", "all")
            if (address := found.get(scheme))
        }
        entries = [entry.strip() for entry in found.get("no", "").split(",")]
        if "*" in entries:
            self._by_scheme = {}
        self._exceptions = [_exception(entry) for entry in entries if entry and entry != "*"]

    def proxy_for(self, url: httpx.URL) -> str | None:
        """Return the address of the proxy for *url*, or None."""
        if not self._by_scheme or any(rule.covers(url) for rule in self._exceptions):
            return None
        return self._by_scheme.get(url.scheme) or self._by_scheme.get("all")


def _exception(entry: str) -> _Exception:
    if "://" in entry:
        url = httpx.URL(entry)
        return _Exception(url.scheme, url.host, url.port, subdomains=False, itself=True)
    address = _address(entry)
    if address is not None:
        return _Exception("all", address, None, subdomains=False, itself=True)
    only_below = entry.startswith(".")
    url = httpx.URL(f"all://{entry.lstrip('.')}")
    local = entry.lower() == "localhost"
    return _Exception("all", url.host, url.port, subdomains=not local, itself=not only_below)


def _address(entry: str) -> str | None:
    # Of a network (10.0.0.0/8) httpx takes the address alone.
    try:
        return str(ipaddress.ip_address(entry.partition("/")[0]))
    except ValueError:
        return None
