"""Headers that may come once only: a proxy on the way may take one of them and the gateway another."""

from hms_gateway.gateway.identity import RequestHead
from hms_gateway.gateway.refusals import Refused

SINGLE_HEADERS = (b"authorization", b"host")


def check_headers(head: RequestHead, http_version: str) -> None:
    """Raises Refused (400) for a repeated header of SINGLE_HEADERS, and for HTTP/1.1 without Host (RFC 9112, 3.2)."""
    if len(head.headers) != len(head.header_list):
        for name in SINGLE_HEADERS:
            if len(head.values(name)) > 1:
                raise _refused(f"The header {name.decode().capitalize()} is repeated; send it once")
    if http_version == "1.1" and b"host" not in head.headers:
        raise _refused("The header Host is missing; HTTP/1.1 requires it")


def _refused(text: str) -> Refused:
    return Refused(400, text, reason="bad_headers", beginning=b"")
