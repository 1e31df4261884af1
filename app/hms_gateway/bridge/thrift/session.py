"""What the bridge knows of one client connection."""

import asyncio
from collections.abc import Callable

import msgspec

from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.runtime.addresses import is_loopback, share_of
from hms_gateway.runtime.logins.delegation_token import Proof
from hms_gateway.runtime.shares import Bound


class Session(msgspec.Struct):
    """`user` and `groups` as `set_ugi` named them, unproven; `credentials` as SASL PLAIN brought them; `proven_user` is
    whose Kerberos ticket was accepted on this connection, or whose delegation token, of which there is a `proof`.
    `logged_in_as` is what the user of the credentials is called here, `real_user` who got the token for its owner.

    `share_address` is whose share of an address the client uses, None on the machine itself, which users share.
    `claim` counts the connection as that of the user whose password was right, and gives the bound in the way.
    `gone` is set when the client has closed its side of the connection, or it is lost.
    """

    address: str = ""
    share_address: str | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    credentials: Credentials | None = None
    proven_user: str | None = None
    proof: Proof | None = None
    logged_in_as: str = ""
    real_user: str = ""
    claim: Callable[[str], Bound | None] = lambda user: None
    needs_length: bool = False
    gone: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def until_gone(self) -> None:
        """Returns when the connection is lost."""
        await self.gone.wait()

    @property
    def shown_user(self) -> str:
        """Who the log says is calling."""
        named = self.credentials.user if self.credentials is not None else self.proven_user or self.user
        return self.logged_in_as or named

    @property
    def tried_user(self) -> str:
        """The user whose password is not known to be right."""
        return self.credentials.user if self.credentials is not None and not self.logged_in_as else ""


def share_address(host: str) -> str | None:
    """Whose share of an address a client from `host` uses; all users of this machine have the same address."""
    return None if is_loopback(host) else share_of(host)
