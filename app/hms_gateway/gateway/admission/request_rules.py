"""Requests that are refused by their heads: of other web pages, and those that a proxy may read otherwise.

Requests of other web pages are refused before anything is decoded, those of allowed origins get the headers that let a
page read the answer (clients §7.2). Browsers add remembered passwords and tickets to requests of any page, and send a
POST of plain text without asking first. So it is not enough that other pages cannot read the answer.

A proxy on the way may read repeated headers or other versions of HTTP otherwise than the gateway.
"""

from collections.abc import Sequence

from hms_gateway.gateway.admission.identity import HeaderList, Refused, RequestHead

SINGLE_HEADERS = (b"authorization", b"host")
HTTP_VERSIONS = ("1.1", "1.0")

ALLOWED_METHODS = b"POST, OPTIONS"
ALLOWED_HEADERS = (
    b"authorization, content-type, accept, content-encoding, x-request-id, idempotency-key, x-hms-lease-id, "
    b"x-hms-lock-id, x-hms-txn-id, x-hms-capabilities, x-hms-valid-write-ids, if-none-match, x-hms-server-timing, "
    b"traceparent, tracestate, x-iceberg-access-delegation"
)
EXPOSED_HEADERS = b"x-request-id, etag, server-timing"
PREFLIGHT_SECONDS = b"86400"
ANY_PORT = ":*"

ORIGIN = b"origin"
FETCH_SITE = b"sec-fetch-site"
# Only browsers send these.
BROWSER_HEADERS = frozenset({ORIGIN, FETCH_SITE})


class CrossOrigin:
    """`origins` are those of the setting cors_origins: `scheme://host:port`, a port may be `*`; "*" is any."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._allows_any = "*" in origins
        named = [origin.lower().encode() for origin in origins]
        self._origins = frozenset(named)
        self._any_port = frozenset(origin[: -len(ANY_PORT)] for origin in named if origin.endswith(ANY_PORT.encode()))

    def check(self, head: RequestHead, scheme: str) -> None:
        """Raises Refused (403) for a page that may not call. Requests of other programs always pass."""
        if head.headers.keys().isdisjoint(BROWSER_HEADERS):
            return
        origins, sites = head.values(ORIGIN), head.values(FETCH_SITE)
        if len(origins) > 1 or len(sites) > 1:
            raise _cross_site("more than one Origin or Sec-Fetch-Site")
        site = sites[0] if sites else None
        if not origins:
            if site not in (b"same-origin", b"none"):
                raise _cross_site("no Origin")
        elif not (self._is_allowed(origins[0]) or _is_own(origins[0], site, scheme, head.headers.get(b"host", b""))):
            raise _cross_site(f"the origin {origins[0][:256].decode('ascii', 'replace')!r}")

    def reply_headers(self, origin: bytes) -> HeaderList:
        """For the reply to a request that named its origin."""
        allowed = self._permission(origin)
        return (*allowed, (b"access-control-expose-headers", EXPOSED_HEADERS)) if allowed else ()

    def preflight_headers(self, origin: bytes | None, methods: bytes) -> HeaderList:
        """For OPTIONS, which browsers send without credentials."""
        allowed = self._permission(origin) if origin is not None else ()
        if not allowed:
            return ()
        return (
            *allowed,
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        )

    def _permission(self, origin: bytes) -> HeaderList:
        if self._allows_any:
            return ((b"access-control-allow-origin", b"*"),)
        if self._is_allowed(origin):
            return ((b"access-control-allow-origin", origin), (b"vary", b"origin"))
        return ()

    def _is_allowed(self, origin: bytes) -> bool:
        if self._allows_any or origin in self._origins or origin in self._any_port:
            return True
        host, _, port = origin.rpartition(b":")
        return port.isdigit() and host in self._any_port


def _is_own(origin: bytes, site: bytes | None, scheme: str, host: bytes) -> bool:
    """True if a page of the gateway's own address calls.

    A browser that says so is believed about the scheme: a proxy may end TLS before the gateway.
    """
    origin_scheme, separator, origin_host = origin.partition(b"://")
    if not separator or origin_host != host.lower():
        return False
    return site == b"same-origin" or (site is None and origin_scheme == scheme.encode())


def _cross_site(problem: str) -> Refused:
    text = f"Web pages of other origins may not call ({problem}); the setting cors_origins names those that may"
    return Refused(403, text, reason="cross_site", beginning=b"")


def check_headers(head: RequestHead, http_version: str) -> None:
    """Raises Refused: 505 for a version that is not in HTTP_VERSIONS, 400 for a repeated header of SINGLE_HEADERS.

    400 also for HTTP/1.1 without Host (RFC 9112, 3.2) and for HTTP/1.0 with a transfer coding, which it lacks (6.1).
    501 for another coding than `chunked`, 417 for another expectation than `100-continue` (RFC 9110, 10.1.1).
    """
    if http_version not in HTTP_VERSIONS:
        text = f"The version HTTP/{http_version} is not served; send HTTP/1.1"
        raise Refused(505, text, reason="bad_version", beginning=b"")
    if http_version == "1.0" and b"transfer-encoding" in head.headers:
        raise _bad_headers("The header Transfer-Encoding is unknown in HTTP/1.0; send HTTP/1.1, or Content-Length")
    if b"transfer-encoding" in head.headers and _texts(head, b"transfer-encoding") != [b"chunked"]:
        text = "The header Transfer-Encoding names another coding than chunked; send chunked, or Content-Length"
        raise Refused(501, text, reason="bad_headers", beginning=b"")
    if b"expect" in head.headers and _texts(head, b"expect") != [b"100-continue"]:
        text = "The header Expect names another expectation than 100-continue; leave it out"
        raise Refused(417, text, reason="bad_headers", beginning=b"")
    if len(head.headers) != len(head.header_list):
        for name in SINGLE_HEADERS:
            if len(head.values(name)) > 1:
                raise _bad_headers(f"The header {name.decode().capitalize()} is repeated; send it once")
    if http_version == "1.1" and b"host" not in head.headers:
        raise _bad_headers("The header Host is missing; HTTP/1.1 requires it")


def _texts(head: RequestHead, name: bytes) -> list[bytes]:
    return [value.strip().lower() for value in head.values(name)]


def _bad_headers(text: str) -> Refused:
    return Refused(400, text, reason="bad_headers", beginning=b"")
