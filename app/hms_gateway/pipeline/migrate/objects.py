"""Objects of a metastore as values that can be compared between two of them, field by field.

Left out of a comparison is what says nothing about the object: what is unset or empty, the catalog's name, numbers that
a metastore gives by itself, and privileges, which depend on who asks and are compared as grants.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hms_gateway.rpc.structs import Struct

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

_encode = msgspec.json.Encoder(order="deterministic").encode


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


def digest(objects: Mapping[str, Plain]) -> str:
    """Of a chunk of objects by name; the same on both sides where nothing differs."""
    return hashlib.blake2b(_encode(objects), digest_size=16).hexdigest()


def differences(kind: str, name: str, source: Plain | None, target: Plain | None) -> Iterator[Difference]:
    """Field by field. An object that one side does not have differs as a whole."""
    if source is None or target is None:
        here, there = ("" if side is None else "there" for side in (source, target))
        yield Difference(kind, name, "", here, there)
        return
    left, right = dict(_flat("", source)), dict(_flat("", target))
    for path in sorted(left.keys() | right.keys()):
        if left.get(path) != right.get(path):
            yield Difference(kind, name, path, _shown(left.get(path)), _shown(right.get(path)))


def of_chunk(kind: str, source: Mapping[str, Plain], target: Mapping[str, Plain]) -> Iterator[Difference]:
    """Of all objects of a chunk, in the order of their names; nothing is looked at where digests are the same."""
    if digest(source) == digest(target):
        return
    for name in sorted(source.keys() | target.keys()):
        if source.get(name) != target.get(name):
            yield from differences(kind, name, source.get(name), target.get(name))


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _flat(f"{path}[{number}]", each)
    else:
        yield path, value


def _shown(value: Any) -> str:
    """An empty text in quotation marks, what is unset without."""
    return "" if value is None else value if value and isinstance(value, str) else _encode(value).decode()
