"""Two versions of an object: what about it differs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hms_gateway.pipeline.snapshot.objects import fields_of

ADDED: Final = "added"
DROPPED: Final = "dropped"
CHANGED: Final = "changed"


class Difference(NamedTuple):
    """An object that one snapshot has, or a field of an object of both. `field` is empty where it is the object."""

    kind: str
    change: str
    database: str
    table: str
    partition: str
    item: str
    field: str = ""
    before: str | None = None
    after: str | None = None

    @property
    def name(self) -> str:
        """`sales.orders/ds=1 column`, as far as the kind has these."""
        place = ".".join(part for part in (self.database, self.table) if part)
        place += f"/{self.partition}" if self.partition else ""
        return " ".join(part for part in (place, self.item) if part)


def differences(
    key: Mapping[str, str], before: str | None, after: str | None, ignored: Sequence[str] = ()
) -> Iterator[Difference]:
    """Between the texts of one object in two snapshots; None where a snapshot does not have it.

    `ignored` are patterns of fields that may differ.
    """
    names = (key["database"], key["table"], key["partition"], key["item"])
    if before is None or after is None:
        yield Difference(key["kind"], ADDED if before is None else DROPPED, *names)
        return
    old, new = fields_of(key["kind"], before), fields_of(key["kind"], after)
    for field in sorted(old.keys() | new.keys()):
        if old.get(field) != new.get(field) and not any(_matches(pattern, field) for pattern in ignored):
            yield Difference(key["kind"], CHANGED, *names, field, old.get(field), new.get(field))


def _matches(pattern: str, field: str) -> bool:
    """`*` is anything; brackets are those of the path."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), field, re.DOTALL) is not None
