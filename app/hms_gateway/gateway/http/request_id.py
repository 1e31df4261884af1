"""The id that joins a request, its response and its line in the log: the client's own where it sends a sane one."""

import re
import secrets
from collections.abc import Mapping
from itertools import count

_is_sane = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}").fullmatch
_process = secrets.token_hex(4).encode()
_numbers = count(1)


def request_id_of(headers: Mapping[bytes, bytes]) -> bytes:
    """What X-Request-Id says, else a new id that no other process makes."""
    given = headers.get(b"x-request-id")
    if given is not None and _is_sane(given):
        return given
    return b"%b-%x" % (_process, next(_numbers))
