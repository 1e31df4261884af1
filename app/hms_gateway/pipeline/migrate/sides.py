"""Both metastores of a migration, and objects as values that are compared between them field by field."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.catalog import changed_fields
from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import JobFailed
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.migrate.writing import RecordingClient
from hms_gateway.rpc.structs import Struct

# Left out of a comparison are fields that say nothing about the object: unset and empty ones, the catalog's name,
# numbers that a metastore gives by itself, and privileges, which depend on the caller and are compared as grants.


Plain = Mapping[str, Any]

# Where they are in structs of tables, partitions, databases, functions, grants, constraints and statistics.
_LEFT_OUT: Final = frozenset(
    (
        "privileges",
        "catName",
        "catalogName",
        "id",
        "writeId",
        "txnId",
        "isStatsCompliant",
        "fileMetadata",
        "dictionary",
        "accessType",
        "colStats",
        "engine",
        "authorizer",
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of an object that is not the same on both sides; empty where a side does not have it."""

    kind: str
    object: str
    field: str
    source: str
    target: str


# What a target cannot hold is declared: fields by kind that are not compared, each with the reason. A metastore that is
# called over Thrift sets times when an object is made.
THRIFT_TARGET: Final[Mapping[str, Mapping[str, str]]] = {
    "database": {"createTime": "the target sets it", "managedLocationUri": "2.3 has none"},
    "table": {"createTime": "the target sets it", "ownerType": "2.3 has none", "creationMetadata": "2.3 has none"},
    "partition": {"createTime": "the target sets it"},
    "function": {"createTime": "the target sets it"},
    "role": {"createTime": "the target sets it"},
    "role grant": {"grantTime": "the target sets it"},
    "grant": {"grantInfo.createTime": "the target sets it"},
}
GATEWAY_TARGET: Final[Mapping[str, Mapping[str, str]]] = {}
# A gateway answers about other catalogs than `hive` as Hive 3.1 and later do.
OTHER_CATALOG: Final[Mapping[str, Mapping[str, str]]] = {"database": {"createTime": "2.3 does not say it of hive"}}


def plain(value: Struct) -> dict[str, Any]:
    """A struct as plain values, without what is not compared."""
    found: dict[str, Any] = _pruned(msgspec.to_builtins(value))
    return found


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, each in value.items():
            if each is None or each is False or each == 0 or key in _LEFT_OUT:
                continue
            if isinstance(each, (dict, list)):
                if not each:
                    continue
                each = _pruned(each)
                if not each:
                    continue
            kept[key] = each
        return kept
    if isinstance(value, list):
        return [_pruned(each) if isinstance(each, (dict, list)) else each for each in value]
    return value


def without(value: Plain, paths: Iterable[str]) -> Plain:
    """Without fields, which are named by their paths, such as `grantInfo.createTime`."""
    kept = dict(value)
    for path in paths:
        first, _, rest = path.partition(".")
        if first in kept and rest:
            kept[first] = without(kept[first], (rest,))
        else:
            kept.pop(first, None)
    return kept


def differences(kind: str, name: str, source: Plain | None, target: Plain | None) -> Iterator[Difference]:
    """Field by field. An object that one side does not have differs as a whole."""
    if source is None or target is None:
        yield Difference(kind, name, "", *("" if side is None else "there" for side in (source, target)))
        return
    for path, here, there in changed_fields(source, target):
        yield Difference(kind, name, path, _shown(here), _shown(there))


def of_chunk(kind: str, source: Mapping[str, Plain], target: Mapping[str, Plain]) -> Iterator[Difference]:
    """Differences of all objects of a chunk, in the order of their names."""
    for name in sorted(source.keys() | target.keys()):
        if source.get(name) != target.get(name):
            yield from differences(kind, name, source.get(name), target.get(name))


def _shown(text: str | None) -> str:
    """An empty text in quotation marks, what is unset without."""
    return "" if text is None else text or '""'


# Both metastores, and how objects are taken from one to the other.


CONFLICT: Final = "it is in the target and differs from the source"


@dataclass(frozen=True)
class Sides:
    """The source and the rules of a migration; pickled to executors.

    on_conflict  what to do with an object that was in the target before and differs: skip, replace or fail
    kinds        which kinds of objects are migrated
    recorded_at  the time of what has none
    declared     fields that the target cannot hold, by kind
    """

    source: Connection
    is_gateway: bool
    on_conflict: str
    kinds: frozenset[str]
    recorded_at: int
    patience_seconds: float
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def reading(self) -> PatientClient:
        """A client of the source."""
        return PatientClient(self.source, self.patience_seconds)

    def writing(self, client: PatientClient) -> PatientClient:
        """A client of the target, with the keys and the lease of the run's."""
        return RecordingClient.like(client, self.recorded_at) if self.is_gateway else client

    def compared(self, kind: str, value: Struct) -> Plain:
        """The value for a comparison, without fields that the target cannot hold."""
        return without(plain(value), self.declared.get(kind, {}))

    def conflict(self, item: str) -> str:
        """The reason to leave an object as it is. Raises JobFailed when conflicts end the run."""
        if self.on_conflict == "fail":
            hint = "compare them; --on-conflict skip leaves what is in the target, replace makes it the source's"
            raise JobFailed(f"{item}: {CONFLICT}", hint)
        return f"{CONFLICT}; left as it is (--on-conflict skip)"

    def wants(self, kind: str) -> bool:
        return kind in self.kinds
