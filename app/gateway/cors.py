"""Cross-origin headers, so that pages of other origins may call (clients §7.2). Credentials are never allowed to ride
along by themselves: a page has to set Authorization itself."""

from collections.abc import Sequence

from app.gateway.identity import HeaderList

ALLOWED_METHODS = b"POST, OPTIONS"
ALLOWED_HEADERS = b"authorization, content-type, accept, content-encoding, x-request-id, x-actor-username"
EXPOSED_HEADERS = b"x-request-id"
PREFLIGHT_SECONDS = b"86400"


class CrossOrigin:
    def __init__(self, origins: Sequence[str]) -> None:
        self._allows_any = "*" in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def reply_headers(self, origin: bytes) -> HeaderList:
        """For the reply to a request that named its origin."""
        allowed = self._allowed(origin)
        return (*allowed, (b"access-control-expose-headers", EXPOSED_HEADERS)) if allowed else ()

    def preflight_headers(self, origin: bytes | None) -> HeaderList:
        """For OPTIONS, which browsers send without credentials."""
        allowed = self._allowed(origin) if origin is not None else ()
        if not allowed:
            return ()
        return (
            *allowed,
            (b"access-control-allow-methods", ALLOWED_METHODS),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        )

    def _allowed(self, origin: bytes) -> HeaderList:
        if self._allows_any:
            return ((b"access-control-allow-origin", b"*"),)
        if origin in self._origins:
            return ((b"access-control-allow-origin", origin), (b"vary", b"origin"))
        return ()
