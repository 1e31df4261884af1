"""Partitions as rows: reading, in the order of their names.

Long lists of partitions and of their names are read while they are sent: memory stays flat at any length (D5).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Select, false, func, literal, or_, select

from hms_gateway.metastore.filters.binding import BoundNode
from hms_gateway.metastore.ports.store import Selection, StoredPartition, StoredTable
from hms_gateway.metastore.vocabulary.locations import is_under
from hms_gateway.metastore.vocabulary.partition_names import canonical_value, escape
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, class_sort_key, value_class
from hms_gateway.rpc.structs import EncodedList, PartitionGroup, Struct, Table
from hms_gateway.rpc.structs.base import EncodedTexts
from hms_gateway.storage.dialects.kinds import translated
from hms_gateway.storage.partitions.rows import (
    ROW_COLUMNS,
    Descriptor,
    Descriptors,
    NamedRow,
    PartitionRow,
    StructRows,
    TjsonRows,
    by_id,
    found_descriptors,
    rows_by_names,
    stored_partitions,
)
from hms_gateway.storage.schema.catalog import DESCRIPTORS, KEY_COLUMN_COUNT, KEY_COLUMNS, PARTITIONS, TABLES
from hms_gateway.storage.sql.filter_sql import (
    has_id_among,
    have_names,
    hold,
    is_equality,
    key_column,
    narrow_keys,
    selects,
    unindexed,
)
from hms_gateway.storage.sql.fragments import decode_texts
from hms_gateway.storage.sql.repository import Repository, SharedSnapshot, is_storable

CHUNK_ROWS: Final = 100
# Lists up to here are read at once: they cost little memory and need not keep a snapshot open for a slow client.
ROWS_AT_ONCE: Final = 1_000
# The same for names. Whole replies can be cached.
NAMES_AT_ONCE: Final = 50_000
_CHUNK_NAMES: Final = 2_000
_DESCRIPTORS_KEPT: Final = 1_000

T = TypeVar("T")


class Rows:
    """Rows of one query: the first ones are here already, the others come from `cursor` on demand."""

    def __init__(self, first: Sequence[Any], cursor: Any = None, chunk_rows: int = CHUNK_ROWS) -> None:
        self._first = first
        self._cursor = cursor
        self._chunk_rows = chunk_rows

    def chunks(self) -> Iterator[Sequence[Any]]:
        for start in range(0, len(self._first), self._chunk_rows):
            yield self._first[start : start + self._chunk_rows]
        self._first = ()
        while self._cursor is not None and (rows := self._cursor.fetchmany(self._chunk_rows)):
            yield rows

    def close(self) -> None:
        self._first = ()
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class _LeasedRows:
    """Rows that are read while they are sent; until then they keep the snapshot they come from."""

    def __init__(self, connection: Connection, count: int, rows: Rows, shared: SharedSnapshot | None) -> None:
        self._engine = connection.engine
        self._count = count
        self._rows = rows
        self._shared = shared
        if shared is not None:
            shared.retain()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        shared, self._shared = self._shared, None
        try:
            self._rows.close()
        finally:
            if shared is not None:
                shared.release()

    def __del__(self) -> None:
        # A caller should not forget to close; a forgotten list must not keep a connection for ever.
        if getattr(self, "_shared", None) is not None:
            self.close()

    def _each(self, convert: Callable[[Sequence[Any]], T], prepare: Callable[[Sequence[Any]], None]) -> Iterator[T]:
        """Results of `convert` for each chunk; `prepare` may ask the database before."""
        try:
            chunks = self._rows.chunks()
            while True:
                with translated(self._engine):
                    rows = next(chunks, None)
                    if rows is None:
                        return
                    prepare(rows)
                yield convert(rows)
        finally:
            self.close()


class PartitionNames(_LeasedRows):
    """An EncodedTexts over the rows of one query, each a name."""

    def __init__(
        self, connection: Connection, count: int, first: Sequence[Any], cursor: Any, shared: SharedSnapshot
    ) -> None:
        super().__init__(connection, count, Rows(first, cursor, _CHUNK_NAMES), shared)

    def tjson_chunks(self) -> Iterator[bytes]:
        return self._each(lambda rows: msgspec.json.encode([row[0] for row in rows])[1:-1], lambda rows: None)

    def text_chunks(self) -> Iterator[list[str]]:
        return self._each(lambda rows: [row[0] for row in rows], lambda rows: None)


class _RowDecoder(Protocol):
    def learn(self, descriptors: Iterable[Descriptor]) -> None: ...

    def forget(self) -> None: ...


class PartitionList(_LeasedRows):
    """An EncodedList over the rows of one query."""

    def __init__(
        self,
        connection: Connection,
        table: Table,
        count: int,
        rows: Rows,
        load_descriptors: Callable[[Iterable[int]], list[Descriptor]],
        shared: SharedSnapshot | None,
    ) -> None:
        super().__init__(connection, count, rows, shared)
        self._table = table
        self._load_descriptors = load_descriptors
        self._known: set[int | None] = {None}

    def without_columns(self) -> Self:
        """This list, without the columns of the storage descriptors: in TJSON that is less work than with them."""
        load = self._load_descriptors
        self._load_descriptors = lambda ids: [descriptor.without_columns() for descriptor in load(ids)]
        return self

    def tjson_chunks(self) -> Iterator[bytes]:
        encoder = TjsonRows(self._table)
        return self._each(encoder.encode, lambda rows: self._learn(encoder, rows))

    def struct_chunks(self) -> Iterator[list[Struct]]:
        builder = StructRows(self._table)
        return self._each(lambda rows: list[Struct](builder.build(rows)), lambda rows: self._learn(builder, rows))

    def _learn(self, decoder: _RowDecoder, rows: Sequence[PartitionRow]) -> None:
        used = {row[1] for row in rows}
        missing = used - self._known
        if not missing:
            return
        if len(self._known) > _DESCRIPTORS_KEPT:
            decoder.forget()
            self._known, missing = {None}, used - {None}
        decoder.learn(self._load_descriptors(descriptor for descriptor in missing if descriptor is not None))
        self._known |= missing


# To see which of two conditions holds for fewer partitions; so many are read in less than a millisecond.
LOOKED_AT_MAX: Final = 1_000
# Among so many names, those that a filter selects are looked for first.
NEAR_NAMES: Final = 2_000


class _NearNames(NamedTuple):
    """What a filter selects among the next names; `is_all` where none follow these."""

    names: list[str]
    is_all: bool


class PartitionReads(Repository):
    # What keeps a snapshot open for a long list; without one, lists are read at once.
    _shared: SharedSnapshot | None = None

    def partition(self, table: StoredTable, name: str) -> StoredPartition | None:
        found = self.partitions(table, Selection(names=[name]))
        return found[0] if found else None

    def partitions(self, table: StoredTable, selection: Selection) -> list[StoredPartition]:
        if names_only(selection):
            return stored_partitions(table, *self._named_rows(table, selection.names or ()))
        rows = self._rows(self._selected(table, selection, PARTITIONS.c.partition_id, *ROW_COLUMNS)).fetchall()
        return stored_partitions(table, rows, by_id(self._used(rows)))

    def _named_rows(self, table: StoredTable, names: Sequence[str]) -> tuple[list[NamedRow], Mapping[int, Descriptor]]:
        """In order of their names, and their descriptors."""
        rows, *found = self._run_together(rows_by_names(table.table_id, names, self._dialect))
        used = found_descriptors(found[0]) if found else self._used(rows)
        return sorted(rows, key=itemgetter(1)), by_id(used)

    def _used(self, rows: Sequence[NamedRow]) -> list[Descriptor]:
        return Descriptors(self._connection).load({row[2] for row in rows if row[2] is not None})

    def partition_list(self, table: StoredTable, selection: Selection) -> EncodedList:
        statement = self._selected(table, selection, *ROW_COLUMNS)
        if self._shared is None or self._is_short(table, selection):
            rows = self._rows(statement).fetchall()
            return PartitionList(self._connection, table.table, len(rows), Rows(rows), self._loaded(rows), None)
        cursor = self._rows(statement, is_long=True)
        first = cursor.fetchmany(ROWS_AT_ONCE + 1)
        if len(first) <= ROWS_AT_ONCE:
            cursor.close()
            return PartitionList(self._connection, table.table, len(first), Rows(first), self._loaded(first), None)
        count = self.count_partitions(table, selection)
        rows = Rows(first, cursor)
        return PartitionList(
            self._connection, table.table, count, rows, Descriptors(self._connection).load, self._shared
        )

    def partition_names(self, table: StoredTable, selection: Selection) -> list[str]:
        if names_only(selection):
            rows, *_ = self._run_together(rows_by_names(table.table_id, selection.names or (), self._dialect)[:1])
            return sorted(row[1] for row in rows)
        return [row[0] for row in self._rows(self._selected(table, selection, PARTITIONS.c.part_name)).fetchall()]

    def partition_name_list(self, table: StoredTable, selection: Selection) -> list[str] | EncodedTexts:
        bounds = (table.partition_count, selection.limit)
        if self._shared is None or any(bound is not None and bound <= NAMES_AT_ONCE for bound in bounds):
            return self.partition_names(table, selection)
        cursor = self._rows(self._selected(table, selection, PARTITIONS.c.part_name), is_long=True)
        first = cursor.fetchmany(ROWS_AT_ONCE + 1)
        if len(first) <= ROWS_AT_ONCE:
            cursor.close()
            return [row[0] for row in first]
        return PartitionNames(self._connection, self.count_partitions(table, selection), first, cursor, self._shared)

    def partition_values(self, table: StoredTable, selection: Selection) -> list[list[str]]:
        statement = self._selected(table, selection, PARTITIONS.c.part_values)
        return [decode_texts(row[0]) for row in self._rows(statement).fetchall()]

    def count_partitions(self, table: StoredTable, selection: Selection) -> int:
        if selection.names is None and selection.partial_values is None and selection.filter is None:
            statement = select(TABLES.c.partition_count).where(TABLES.c.table_id == table.table_id)
            count = self._connection.execute(statement).scalar() or 0
        else:
            counted = select(func.count()).select_from(PARTITIONS).where(*self._conditions(table, selection))
            count = self._connection.execute(counted).scalar_one()
        return count if selection.limit is None else min(count, max(selection.limit, 0))

    def partition_names_from(
        self, table: StoredTable, selection: Selection, after: str, *, descending: bool, limit: int
    ) -> list[str]:
        near = self._near_names(table, selection, after, descending=descending)
        if near is not None and (near.is_all or len(near.names) >= limit):
            return near.names[:limit]
        # As in `_selected`: the few that a filter finds are sorted, others are read in order.
        is_sorted_last = not self._dialect.has_figures and _uses_keys(selection)
        name = unindexed(PARTITIONS.c.part_name) if is_sorted_last else PARTITIONS.c.part_name
        statement = select(PARTITIONS.c.part_name).where(*self._conditions(table, selection))
        if after and is_storable(after):
            statement = statement.where(name < after if descending else name > after)
        statement = statement.order_by(name.desc() if descending else name).limit(limit)
        return [row[0] for row in self._rows(statement).fetchall()]

    def partition_groups(self, table: StoredTable, selection: Selection, keys: int, limit: int) -> list[PartitionGroup]:
        columns, conditions = KEY_COLUMNS[:keys], self._conditions(table, selection)
        groups = self._groups_of_values(table, conditions, columns, limit)
        counted = sum(group.partitions or 0 for group in groups)
        if len(groups) < limit and (selection.filter is not None or counted < table.partition_count):
            groups += self._groups_without_value(conditions, columns, limit - len(groups))
        return groups

    def _groups_of_values(
        self, table: StoredTable, conditions: Sequence[ColumnElement[bool]], columns: Sequence[Column[Any]], limit: int
    ) -> list[PartitionGroup]:
        """Counted by the index of the keys alone; the name of one partition is looked up for each group."""
        has_values = (column.is_not(None) for column in columns)
        counting = select(*columns, func.count().label("partitions")).where(*conditions, *has_values)
        group = counting.group_by(*columns).order_by(*columns).limit(limit).subquery()
        one = PARTITIONS.alias()
        is_in_it = (one.c[column.name] == group.c[column.name] for column in columns)
        name = select(one.c.part_name).where(one.c.table_id == table.table_id, *is_in_it).limit(1).scalar_subquery()
        statement = select(name, group.c.partitions).order_by(*(group.c[column.name] for column in columns))
        return [PartitionGroup(example, count) for example, count in self._connection.execute(statement)]

    def _groups_without_value(
        self, conditions: Sequence[ColumnElement[bool]], columns: Sequence[Column[Any]], limit: int
    ) -> list[PartitionGroup]:
        """Those of partitions with a value that is not of its key's type."""
        has_none = or_(*(column.is_(None) for column in columns))
        statement = select(func.min(PARTITIONS.c.part_name), func.count()).where(*conditions, has_none)
        rows = self._connection.execute(statement.group_by(*columns).limit(limit))
        return [PartitionGroup(example, count) for example, count in rows]

    def _near_names(
        self, table: StoredTable, selection: Selection, after: str, *, descending: bool
    ) -> _NearNames | None:
        """The names that a filter selects among the next ones, which often are enough.

        Otherwise a filter that selects half of a million partitions would sort all of them for one page. None without
        a filter.
        """
        if selection.filter is None or table.partition_count <= NEAR_NAMES:
            return None
        name, of_table = PARTITIONS.c.part_name, PARTITIONS.c.table_id == table.table_id
        order = name.desc() if descending else name
        behind = [name < after if descending else name > after] if after and is_storable(after) else []
        bound = select(name).where(of_table, *behind).order_by(order).offset(NEAR_NAMES - 1).limit(1)
        last = self._connection.execute(bound).scalar()
        near = [] if last is None else [name >= last if descending else name <= last]
        # They are found by their names, so no index of a key must be used.
        unindexed_keys = () if self._dialect.has_figures else range(KEY_COLUMN_COUNT)
        fitting = hold([selection.filter], table.table_id, self._dialect, unindexed_keys)
        statement = select(name).where(*fitting, *behind, *near).order_by(order)
        return _NearNames([row[0] for row in self._rows(statement).fetchall()], last is None)

    def outside_locations(self, table: StoredTable, selection: Selection | None = None) -> list[str]:
        """Reads no partition as long as all descriptors have the table's location as their base."""
        table_location = (table.table.sd and table.table.sd.location) or ""
        statement = select(DESCRIPTORS.c.descriptor_id, DESCRIPTORS.c.base_location).where(
            DESCRIPTORS.c.table_id == table.table_id
        )
        bases = {
            descriptor_id: base
            for descriptor_id, base in self._connection.execute(statement)
            if base is None or not lies_under(table_location, base)
        }
        if not bases:
            return []
        columns = PARTITIONS.c.descriptor_id, PARTITIONS.c.location, PARTITIONS.c.part_name
        rows = self._selected(table, selection or Selection(), *columns).where(
            has_id_among(PARTITIONS.c.descriptor_id, bases, self._dialect)
        )
        locations = (
            below if bases[descriptor_id] is None else f"{bases[descriptor_id]}{f'/{name}' if below is None else below}"
            for descriptor_id, below, name in self._rows(rows).fetchall()
        )
        outside = (found for found in locations if found and not lies_under(table_location, found))
        return list(dict.fromkeys(outside))

    def _selected(self, table: StoredTable, selection: Selection, *columns: ColumnElement[Any]) -> Select[Any]:
        statement = select(*columns).where(*self._conditions(table, selection))
        # Without figures about the data a database would rather walk all names in order than sort the few it finds.
        is_sorted_last = not self._dialect.has_figures and _uses_keys(selection)
        statement = statement.order_by(unindexed(PARTITIONS.c.part_name) if is_sorted_last else PARTITIONS.c.part_name)
        return statement if selection.limit is None else statement.limit(max(selection.limit, 0))

    def _conditions(self, table: StoredTable, selection: Selection) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if selection.filter is not None:
            unindexed_keys = self._poor_keys(table, selection.filter)
            conditions += selects(selection.filter, table.table_id, self._dialect, unindexed_keys)
        if selection.names is not None:
            conditions.append(have_names(table.table_id, selection.names, self._dialect))
        if selection.partial_values is not None:
            conditions += self._has_values(table, selection.partial_values)
        if selection.filter is None and selection.names is None:
            conditions.insert(0, PARTITIONS.c.table_id == table.table_id)
        return conditions

    def _poor_keys(self, table: StoredTable, filter: BoundNode) -> set[int]:
        """Keys whose index a database without figures must not take, since that of another finds fewer partitions."""
        if self._dialect.has_figures or table.partition_count <= LOOKED_AT_MAX:
            return set()
        keys = narrow_keys(filter)
        if len(keys) < 2:
            return set()
        best = min(keys, key=lambda position: self._count_some(hold(keys[position], table.table_id, self._dialect)))
        return set(range(KEY_COLUMN_COUNT)) - ({best, best + 1} if is_equality(keys[best]) else {best})

    def _count_some(self, conditions: Sequence[ColumnElement[bool]]) -> int:
        some = select(literal(1)).select_from(PARTITIONS).where(*conditions).limit(LOOKED_AT_MAX)
        return self._connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()

    def _has_values(self, table: StoredTable, wanted: Sequence[str | None]) -> list[ColumnElement[bool]]:
        """Partial values are compared as text (semantics §4.6), which names are made of; keys let indexes help."""
        keys = table.table.partitionKeys or []
        if not all(is_storable(value) for value in wanted if value is not None):
            return [false()]
        components = [
            None if value is None else f"{escape((key.name or '').lower())}={escape(canonical_value(value))}"
            for key, value in zip(keys, wanted, strict=False)
        ]
        leading = components.index(None) if None in components else len(components)
        prefix = "/".join(component for component in components[:leading] if component is not None)
        if leading == len(keys):
            return [PARTITIONS.c.part_name == prefix]
        conditions: list[ColumnElement[bool]] = []
        if leading:
            # "0" is the character after "/".
            conditions += [PARTITIONS.c.part_name >= prefix + "/", PARTITIONS.c.part_name < prefix + "0"]
        is_exact = True
        for position, value in enumerate(wanted[: len(keys)]):
            if position < leading or value is None:
                continue
            kind = value_class(keys[position].type or "")
            is_exact = is_exact and kind is ValueClass.TEXT
            sort_key = class_sort_key(kind, value)
            if sort_key is not None:
                conditions.append(key_column(position) == sort_key)
        return conditions if is_exact else [*conditions, self._has_name_like(keys, components)]

    def _has_name_like(self, keys: Sequence[Any], components: Sequence[str | None]) -> ColumnElement[bool]:
        """Values hold neither `/` nor `=` in a name, so a run of any characters cannot reach over its component."""
        texts: list[str | None] = []
        for position, key in enumerate(keys):
            component = components[position] if position < len(components) else None
            separator = "/" if position else ""
            texts += [separator + component] if component else [f"{separator}{escape((key.name or '').lower())}=", None]
        # Not the name itself: its beginning, which all have, would be looked up in the index of the names.
        return self._dialect.is_like(PARTITIONS.c.part_name.concat(""), texts)

    def _rows(self, statement: Select[Any], *, is_long: bool = False) -> Any:
        """The driver's cursor: no row objects where there may be a million."""
        if is_long:
            return self._dialect.long_rows(self._connection, statement, PARTITIONS.c.part_name, ROWS_AT_ONCE)
        return self._connection.execute(statement).cursor

    def _is_short(self, table: StoredTable, selection: Selection) -> bool:
        bounds = [table.partition_count, selection.limit, None if selection.names is None else len(selection.names)]
        return any(bound is not None and bound <= ROWS_AT_ONCE for bound in bounds)

    def _loaded(self, rows: Sequence[Any]) -> Any:
        """The descriptors of rows that are read already, so that the list needs no connection."""
        found = by_id(Descriptors(self._connection).load({row[1] for row in rows if row[1] is not None}))
        return lambda ids: [found[descriptor_id] for descriptor_id in ids]


def names_only(selection: Selection) -> bool:
    """Whether partitions are selected by their names alone."""
    return selection.names is not None and selection == Selection(names=selection.names)


def _uses_keys(selection: Selection) -> bool:
    """Whether the index of a key may find the partitions: by a filter, or by values with none before them."""
    values = selection.partial_values or [""]
    return selection.filter is not None or (values[0] is None and any(values))


def lies_under(table_location: str, location: str) -> bool:
    return bool(table_location) and is_under(table_location, location)
