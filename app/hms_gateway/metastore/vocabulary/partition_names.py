"""Partition names (`year=2024/month=01`): made from values, taken apart again, and partial specs."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from hms_gateway.metastore.vocabulary.texts import remembered

DEFAULT_PARTITION_NAME: Final = "__HIVE_DEFAULT_PARTITION__"

# Semantics §3.8. Everything else, blanks and non-ASCII included, goes into the name as it is.
_ESCAPED_CHARACTERS: Final = "".join(map(chr, range(0x20))) + "\x7f" + "\"#%'*/:=?\\[]^{"
_ESCAPES: Final = str.maketrans({character: f"%{ord(character):02X}" for character in _ESCAPED_CHARACTERS})
_ESCAPE_SEQUENCE = re.compile("%([0-9A-Fa-f]{2})")
_GREEDY_COMPONENT = re.compile("([^/]+)=([^/]+)")


class PartitionNameError(ValueError):
    """Values and keys, or a name, do not fit; the text is the one clients see."""


class InvalidPartitionName(PartitionNameError):
    """A partition name is absent or empty."""


class IncompletePartitionName(PartitionNameError):
    """A partition name lacks one of the table's keys."""


class PartitionCountMismatch(PartitionNameError):
    """There are more or fewer values than partition keys."""


def escape(text: str) -> str:
    """`text` as one part of a partition name or directory name (semantics §3.8)."""
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Undo `escape`; malformed sequences stay as they are."""
    if "%" not in text:
        return text
    return _ESCAPE_SEQUENCE.sub(lambda sequence: chr(int(sequence[1], 16)), text)


def canonical_value(value: str) -> str:
    """The value a partition is identified by: `""` and the default partition name are the same partition."""
    return value or DEFAULT_PARTITION_NAME


def check_value_count(keys: Sequence[str], values: Sequence[str]) -> None:
    """Raise PartitionCountMismatch unless there is one value for every key, and a key at all (semantics §2.8)."""
    if not keys or len(keys) != len(values):
        raise PartitionCountMismatch(
            f"Invalid partition key & values; keys [{_listed(keys)}], values [{_listed(values)}]"
        )


def make_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name that identifies the partition with these values (semantics §3.8). Raises PartitionCountMismatch."""
    check_value_count(keys, values)
    heads = _component_heads(tuple(keys))
    return "/".join([head + escape(value or DEFAULT_PARTITION_NAME) for head, value in zip(heads, values, strict=True)])


@remembered(1_024, lambda keys: sum(map(len, keys)))
def _component_heads(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{escape(key.lower())}=" for key in keys)


def parse_name(keys: Sequence[str], name: str | None) -> list[str]:
    """The values of `keys` in a name given by a client, for the calls "by name" (semantics §2.8, §2.13).

    Components may come in any order, further ones are ignored, key names must be lower-case. The name is split as
    `name_to_spec` does it: `ds=a=b` is about a key `ds=a`. Raises InvalidPartitionName and IncompletePartitionName.
    """
    if not name:
        raise InvalidPartitionName(f"Partition name is invalid. {'null' if name is None else name}")
    found = name_to_spec(name)
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise IncompletePartitionName(f"incomplete partition name - missing {missing}")
    return [found[key] for key in keys]


def name_to_spec(name: str) -> dict[str, str]:
    """Keys and values of a name without knowing the table: partition_name_to_spec and _to_vals (semantics §2.12).

    Splits a component at its last `=`, skips what is not `key=value`; a repeated key replaces the earlier value.
    """
    components = (_GREEDY_COMPONENT.fullmatch(component) for component in name.split("/"))
    return {unescape(found[1]): unescape(found[2]) for found in components if found}


def name_to_values(name: str) -> list[str]:
    """The values of `name_to_spec`, in order."""
    return list(name_to_spec(name).values())


def values_in_name(name: str) -> list[str]:
    """The values of a canonical name still escaped, as get_partition_values shows them (semantics §2.9)."""
    return [component.partition("=")[2] for component in name.split("/")]


def partial_spec(key_count: int, values: Sequence[str]) -> list[str | None]:
    """What a partial spec asks of each leading key (semantics §4.6): its canonical value, or None for "any" (`""`).

    Raises PartitionCountMismatch.
    """
    if not values:
        raise PartitionCountMismatch("Invalid partition key & values; keys [], values []")
    if len(values) > key_count:
        raise PartitionCountMismatch(
            f"Incorrect number of partition values. numPartKeys={key_count}, part_val={len(values)}"
        )
    return [value or None for value in values]


def _listed(items: Iterable[str]) -> str:
    return "".join(f"{item}, " for item in items)
