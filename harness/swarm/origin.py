"""No other web page drives or reads this one: Locust itself allows both to all pages of the world (CORS)."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Response, request


def refuse_foreign_origin() -> Response | None:
    """Return a refusal if a page of another origin sent the request; else None.

    Browsers name the origin of every request that crosses from one to another; who names none, as curl,
    is no page. No header that a proxy adds is believed: a foreign page may set it as well, and Locust's
    CORS would give it leave. A proxy in front has to pass on the `Host` that the browser asked for.
    """
    origin = request.headers.get("Origin")
    if origin is None or _place(origin) == request.host.lower():
        return None
    return Response(
        f"refused: this request comes from {origin[:200]!r}, not from this page\n", 403, mimetype="text/plain"
    )


def _place(origin: str) -> str | None:
    """Return host and port of *origin* as a `Host` header has them; None for ``null`` and nonsense."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
