"""What the bridge knows of one client connection."""

from dataclasses import dataclass

from app.bridge.sasl import Credentials


@dataclass(slots=True)
class Session:
    """`user` and `groups` as `set_ugi` named them, unproven; `credentials` as SASL PLAIN brought them."""

    address: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    credentials: Credentials | None = None
    needs_length: bool = False

    @property
    def shown_user(self) -> str:
        """Who the log says is calling."""
        return self.credentials.user if self.credentials is not None else self.user
