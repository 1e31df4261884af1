"""What handlers are told of a request: headers become a Call."""

import asyncio
from collections.abc import Mapping
from typing import Final

from hms_gateway.gateway.identity import Identity
from hms_gateway.rpc.call import Call, Dialect

KEY_HEADER: Final = b"idempotency-key"
LEASE_HEADER: Final = b"x-hms-lease-id"


def requested_call(
    identity: Identity,
    share_address: str | None,
    dialect: Dialect,
    headers: Mapping[bytes, bytes],
    request_id: bytes,
    seconds_max: float,
) -> Call:
    """`headers` in lower case; `share_address` as `Proxies.share_of` gives it.

    For the event loop's thread: the deadline is on its clock.
    """
    return Call(
        principal=identity.user,
        dialect=dialect,
        request_id=request_id.decode("latin-1"),
        client_address=identity.address,
        deadline=asyncio.get_running_loop().time() + seconds_max,
        lease=_text(headers.get(LEASE_HEADER)),
        key=_text(headers.get(KEY_HEADER)),
        share_address=share_address,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
