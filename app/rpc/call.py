"""What a handler knows about the call it answers, besides its arguments."""

from dataclasses import dataclass, field
from enum import StrEnum


class Dialect(StrEnum):
    """Which generation's shapes the caller expects where they differ (design D2, semantics §10.1)."""

    HIVE_2_3 = "2.3"
    HIVE_4 = "4"


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `principal` is the authenticated user; `deadline` is on the event loop's monotonic clock, seconds."""

    principal: str
    groups: tuple[str, ...] = ()
    dialect: Dialect = Dialect.HIVE_2_3
    request_id: str = ""
    client_address: str = ""
    deadline: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
