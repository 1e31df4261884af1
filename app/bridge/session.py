"""What the bridge knows of one client connection."""

import asyncio
from dataclasses import dataclass, field

from app.bridge.sasl import Credentials


@dataclass(slots=True)
class Session:
    """`user` and `groups` as `set_ugi` named them, unproven; `credentials` as SASL PLAIN brought them.

    `gone` is set when the client has closed its side of the connection, or it is lost.
    """

    address: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    credentials: Credentials | None = None
    needs_length: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_gone(self) -> None:
        """Returns when the connection is lost."""
        await self.gone.wait()

    @property
    def shown_user(self) -> str:
        """Who the log says is calling."""
        return self.credentials.user if self.credentials is not None else self.user
