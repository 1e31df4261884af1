"""Parts of partitions: what newer requests ask to be left out of each partition of a list (semantics §10.3)."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, cast, runtime_checkable

from hms_gateway.metastore.vocabulary.patterns import Pattern, parse_sql_like
from hms_gateway.structs import EncodedList, GetProjectionsSpec, Partition, Struct

AnyStruct = TypeVar("AnyStruct", bound=Struct)

# No field of a partition lies deeper; a name could have millions of parts.
_DEPTH_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Projection:
    """Which parts of a partition to keep.

    fields             dotted names (`values`, `sd.location`); None or empty keeps every field
    include, exclude   patterns with `%` and `_` for the keys of `parameters`; None and "" keep all
    skips_columns      leave out the columns of the storage descriptor
    """

    fields: tuple[str, ...] = ()
    include: str | None = None
    exclude: str | None = None
    skips_columns: bool = False
    _tree: "_Tree" = field(init=False, repr=False, compare=False)
    _included: Pattern | None = field(init=False, repr=False, compare=False)
    _excluded: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once, and not for every partition.
        object.__setattr__(self, "_tree", _tree(self.fields))
        object.__setattr__(self, "_included", parse_sql_like(self.include) if self.include else None)
        object.__setattr__(self, "_excluded", parse_sql_like(self.exclude) if self.exclude else None)

    @staticmethod
    def of(spec: GetProjectionsSpec | None) -> "Projection":
        if spec is None:
            return Projection()
        return Projection(tuple(spec.fieldList or ()), spec.includeParamKeyPattern, spec.excludeParamKeyPattern)

    @property
    def keeps_everything(self) -> bool:
        return not (self.fields or self.include or self.exclude or self.skips_columns)

    @property
    def only_skips_columns(self) -> bool:
        return self.skips_columns and not (self.fields or self.include or self.exclude)

    def apply(self, partition: Partition) -> Partition:
        """A copy of `partition` with only what is asked for."""
        kept = _only(partition, self._tree) if self.fields else copy.copy(partition)
        if kept.parameters:
            kept.parameters = {key: value for key, value in kept.parameters.items() if self._keeps_parameter(key)}
        if self.skips_columns and kept.sd is not None:
            kept.sd = copy.copy(kept.sd)
            kept.sd.cols = None
        return kept

    def _keeps_parameter(self, key: str) -> bool:
        if self._included is not None and not self._included.matches(key):
            return False
        return self._excluded is None or not self._excluded.matches(key)


@runtime_checkable
class ColumnSkipping(Protocol):
    """An EncodedList of partitions that can leave out the columns by itself, without making objects of them."""

    def without_columns(self) -> EncodedList: ...


class ProjectedPartitions:
    """An EncodedList of partitions, each reduced by a projection while it is read."""

    def __init__(self, source: EncodedList, projection: Projection, to_tjson: Callable[[Struct], bytes]) -> None:
        self._source = source
        self._projection = projection
        self._to_tjson = to_tjson

    def __len__(self) -> int:
        return len(self._source)

    def tjson_chunks(self) -> Iterator[bytes]:
        for chunk in self.struct_chunks():
            yield b",".join(map(self._to_tjson, chunk))

    def struct_chunks(self) -> Iterator[list[Struct]]:
        for chunk in self._source.struct_chunks():
            yield [self._projection.apply(cast(Partition, partition)) for partition in chunk]

    def close(self) -> None:
        self._source.close()


class _Tree(dict[str, "_Tree"]):
    """Field names to the names wanted below them; nothing below means all of it."""


def _tree(names: Sequence[str]) -> _Tree:
    root = _Tree()
    for name in names:
        node = root
        for part in name.split(".", _DEPTH_MAX)[:_DEPTH_MAX]:
            node = node.setdefault(part, _Tree())
    return root


def _only(struct: AnyStruct, wanted: _Tree) -> AnyStruct:
    kept = type(struct)()
    for name, below in wanted.items():
        value = getattr(struct, name, None)
        if isinstance(value, Struct) and below:
            value = _only(value, below)
        if name in struct.__struct_fields__:
            setattr(kept, name, value)
    return kept
