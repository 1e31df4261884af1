"""Requests that a proxy on the way may read otherwise than the gateway: repeated headers, other versions of HTTP."""

from hms_gateway.gateway.admission.identity import RequestHead
from hms_gateway.gateway.admission.refusals import Refused

SINGLE_HEADERS = (b"authorization", b"host")
HTTP_VERSIONS = ("1.1", "1.0")


def check_headers(head: RequestHead, http_version: str) -> None:
    """Raises Refused: 505 for a version that is not in HTTP_VERSIONS, 400 for a repeated header of SINGLE_HEADERS.

    400 also for HTTP/1.1 without Host (RFC 9112, 3.2) and for HTTP/1.0 with a transfer coding, which it lacks (6.1).
    501 for another coding than `chunked`, 417 for another expectation than `100-continue` (RFC 9110, 10.1.1).
    """
    if http_version not in HTTP_VERSIONS:
        text = f"The version HTTP/{http_version} is not served; send HTTP/1.1"
        raise Refused(505, text, reason="bad_version", beginning=b"")
    if http_version == "1.0" and b"transfer-encoding" in head.headers:
        raise _refused("The header Transfer-Encoding is unknown in HTTP/1.0; send HTTP/1.1, or Content-Length")
    if b"transfer-encoding" in head.headers and _texts(head, b"transfer-encoding") != [b"chunked"]:
        text = "The header Transfer-Encoding names another coding than chunked; send chunked, or Content-Length"
        raise Refused(501, text, reason="bad_headers", beginning=b"")
    if b"expect" in head.headers and _texts(head, b"expect") != [b"100-continue"]:
        text = "The header Expect names another expectation than 100-continue; leave it out"
        raise Refused(417, text, reason="bad_headers", beginning=b"")
    if len(head.headers) != len(head.header_list):
        for name in SINGLE_HEADERS:
            if len(head.values(name)) > 1:
                raise _refused(f"The header {name.decode().capitalize()} is repeated; send it once")
    if http_version == "1.1" and b"host" not in head.headers:
        raise _refused("The header Host is missing; HTTP/1.1 requires it")


def _texts(head: RequestHead, name: bytes) -> list[bytes]:
    return [value.strip().lower() for value in head.values(name)]


def _refused(text: str) -> Refused:
    return Refused(400, text, reason="bad_headers", beginning=b"")
