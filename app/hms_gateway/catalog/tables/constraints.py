"""Constraints: declared, stored and returned, never enforced (semantics §2.15)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Event, Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.ports.values import ConstraintColumn, ConstraintKind
from hms_gateway.metastore.vocabulary.names import TableId, generated_name, normalize
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.catalog.constraints import ConstraintRows
from hms_gateway.structs import (
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
    Table,
)


class _Form(msgspec.Struct, frozen=True):
    """How one kind is spelled: the field of its name, the prefix of names made here, its event, its lists."""

    struct_class: type[Struct]
    name_field: str
    prefix: str
    event_type: str
    event_field: str
    of_table: str

    @property
    def is_foreign(self) -> bool:
        return self.struct_class is SQLForeignKey


_FORMS: Final = {
    ConstraintKind.PRIMARY_KEY: _Form(
        SQLPrimaryKey, "pk_name", "pk", "ADD_PRIMARYKEY", "primaryKeyListJson", "primaryKeys"
    ),
    ConstraintKind.FOREIGN_KEY: _Form(
        SQLForeignKey, "fk_name", "fk", "ADD_FOREIGNKEY", "foreignKeyListJson", "foreignKeys"
    ),
    ConstraintKind.UNIQUE: _Form(
        SQLUniqueConstraint,
        "uk_name",
        "uk",
        "ADD_UNIQUECONSTRAINT",
        "uniqueConstraintListJson",
        "uniqueConstraints",
    ),
    ConstraintKind.NOT_NULL: _Form(
        SQLNotNullConstraint,
        "nn_name",
        "nn",
        "ADD_NOTNULLCONSTRAINT",
        "notNullConstraintListJson",
        "notNullConstraints",
    ),
    ConstraintKind.DEFAULT: _Form(
        SQLDefaultConstraint,
        "dc_name",
        "dc",
        "ADD_DEFAULTCONSTRAINT",
        "defaultConstraintListJson",
        "defaultConstraints",
    ),
    ConstraintKind.CHECK: _Form(
        SQLCheckConstraint, "dc_name", "cc", "ADD_CHECKCONSTRAINT", "checkConstraintListJson", "checkConstraints"
    ),
}
_KINDS: Final = {form.struct_class: kind for kind, form in _FORMS.items()}
_PRIMARY: Final = ConstraintKind.PRIMARY_KEY
_WITH_SEQUENCE: Final = (ConstraintKind.PRIMARY_KEY, ConstraintKind.FOREIGN_KEY, ConstraintKind.UNIQUE)
_FLAGS: Final = ("enable_cstr", "validate_cstr", "rely_cstr")
_RULES: Final = ("update_rule", "delete_rule")


class ConstraintRules:
    """What adding constraints means inside a unit of work; also for those a table is created with."""

    def __init__(self, events: EventMaker, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    def add(self, tx: Transaction, columns: Sequence[Struct]) -> None:
        """Store constraints given by their columns. Raises InvalidObjectException, MetaException."""
        known = _Known(tx)
        for group in _groups(columns):
            self._add_one(tx, known, group)

    def _add_one(self, tx: Transaction, known: "_Known", columns: Sequence[Struct]) -> None:
        kind = _KINDS[type(columns[0])]
        form = _FORMS[kind]
        places = [_placed(known, kind, column) for column in columns]
        owner = places[0].owner
        if kind is ConstraintKind.PRIMARY_KEY and known.takes_primary_key(owner.table_id):
            raise MetaException(f" Primary key already exists for: {owner.table.dbName}.{owner.table.tableName}")
        shown_name = self._name(columns[0], form, places[0], known)
        known.names(owner.table_id).add(normalize(shown_name))
        named = [_complete(column, form, shown_name) for column in columns]
        ConstraintRows(tx).insert(
            [
                ConstraintColumn(
                    kind=kind,
                    name=normalize(shown_name),
                    table_id=place.owner.table_id,
                    column=place.column,
                    position=_position(column, number),
                    extra=column,
                    parent_table_id=None if place.parent is None else place.parent.table_id,
                    parent_column=place.parent_column,
                )
                for number, (column, place) in enumerate(zip(named, places, strict=True), start=1)
            ]
        )
        tx.append_event(self._added(form, owner.table, named))

    def _name(self, column: Struct, form: _Form, place: "_Place", known: "_Known") -> str:
        """As it is shown, which is how the caller spells it; it is found in any spelling."""
        given, taken = getattr(column, form.name_field), known.names(place.owner.table_id)
        if not given:
            return generated_name(form.prefix, place.names, self._clock.seconds() * 1000, taken, known.tried)
        if normalize(given) in taken:
            raise InvalidObjectException(f"Constraint name already exists: {given}")
        return str(given)

    def _added(self, form: _Form, table: Table, columns: Sequence[Struct]) -> Event:
        fields = {
            "timestamp": self._events.timestamp(),
            form.event_field: [self._events.object_json(column) for column in columns],
        }
        return self._events.event(form.event_type, table.dbName or "", table.tableName, fields)


class ConstraintService:
    """What the metastore does with constraints. Database names are without catalog; names are found in any case."""

    def __init__(
        self, store: Store, clock: Clock, settings: MetastoreSettings, to_tjson: Callable[[Struct], bytes]
    ) -> None:
        self._store = store
        self._events = EventMaker(settings, clock, to_tjson)
        self._rules = ConstraintRules(self._events, clock)

    def add(self, columns: Sequence[Struct] | None) -> None:
        """Add constraints, all or none. Raises InvalidObjectException for what is not there, MetaException."""
        given = [required(column, "constraint") for column in required(columns, "constraints")]
        with unstorable_as_meta():
            self._store.write(lambda tx: self._rules.add(tx, given))

    def drop(self, table_name: TableName, constraint_name: str | None) -> None:
        """Drop one, also a foreign key by the table it refers to. Raises NoSuchObjectException."""
        name = normalize(required(constraint_name, "constraint name"))

        def work(tx: Transaction) -> None:
            table = table_name.find(tx)
            if table is None or not ConstraintRows(tx).delete(table.table_id, name):
                raise NoSuchObjectException(
                    f"The constraint: {constraint_name} does not exist for the associated table: {table_name}"
                )
            fields = {
                "dbName": table.table.dbName,
                "tableName": table.table.tableName,
                "constraintName": name,
                "timestamp": self._events.timestamp(),
            }
            db_name = table.table.dbName or ""
            tx.append_event(self._events.event("DROP_CONSTRAINT", db_name, table.table.tableName, fields))

        self._store.write(work)

    def of_table(self, table_name: TableName, kind: ConstraintKind) -> list[Any]:
        """The columns of all constraints of a kind; a missing table has none."""

        def work(snapshot: Snapshot) -> list[Struct]:
            table = table_name.find(snapshot)
            return [] if table is None else ConstraintRows(snapshot).of_table(table.table_id, kind)

        return self._store.read(work)

    def foreign_keys(self, parent: TableName, child: TableName) -> list[Any]:
        """Those of `child` to `parent`; parts left out mean any. Raises MetaException when nothing is said."""
        if child.tbl_name is None and parent.tbl_name is None:
            raise MetaException("foreign_tbl_name must not be null")

        def work(snapshot: Snapshot) -> list[Struct]:
            ends = []
            for name in (child, parent):
                is_whole = name.db_name is not None and name.tbl_name is not None
                table = name.find(snapshot) if is_whole else None
                if table is None and is_whole:
                    return []
                ends.append(None if table is None else table.table_id)
            found = ConstraintRows(snapshot).foreign_keys(ends[0], ends[1])
            keys = [key for key in found if _names(key, "fktable", child) and _names(key, "pktable", parent)]
            return _with_names_of_parents(snapshot, keys)

        return self._store.read(work)

    def all_of_table(self, table_name: TableName) -> SQLAllTableConstraints:
        """Every kind at once, as one consistent state."""

        def work(snapshot: Snapshot) -> SQLAllTableConstraints:
            table = table_name.find(snapshot)
            lists: dict[str, Any] = {
                form.of_table: [] if table is None else ConstraintRows(snapshot).of_table(table.table_id, kind)
                for kind, form in _FORMS.items()
            }
            return SQLAllTableConstraints(**lists)

        return self._store.read(work)


class _Place(msgspec.Struct, frozen=True):
    """Where a column of a constraint is, and the column a foreign key refers to."""

    owner: StoredTable
    column: str
    parent: StoredTable | None = None
    parent_column: str | None = None

    @property
    def names(self) -> list[str]:
        """What the generated name is made from, in Hive's order."""
        own = [self.owner.table.dbName or "", self.owner.table.tableName or ""]
        if self.parent is None:
            return [*own, self.column]
        parent = [self.parent.table.dbName or "", self.parent.table.tableName or ""]
        return [*own, *parent, self.parent_column or "", self.column]


class _Known:
    """What one call adds constraints to, each table read once: there may be a constraint for each of many columns."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._tables: dict[TableName, StoredTable | None] = {}
        self._columns: dict[TableId, frozenset[str | None]] = {}
        self._names: dict[TableId, set[str]] = {}
        self._with_primary_key: set[TableId] = set()
        self.tried: dict[str, int] = {}

    def table(self, role: str, db_name: str | None, tbl_name: str | None) -> StoredTable:
        name = TableName(db_name, tbl_name)
        if name not in self._tables:
            self._tables[name] = name.find(self._tx)
        table = self._tables[name]
        if table is None:
            raise InvalidObjectException(f"{role} table not found: {tbl_name}")
        return table

    def column(self, table: StoredTable, role: str, name: str | None) -> str:
        wanted = normalize(required(name, "column name"))
        if table.table_id not in self._columns:
            columns = [*((table.table.sd.cols if table.table.sd else None) or ()), *(table.table.partitionKeys or ())]
            self._columns[table.table_id] = frozenset(column.name for column in columns)
        if wanted not in self._columns[table.table_id]:
            raise InvalidObjectException(f"{role} column not found: {name}")
        return wanted

    def names(self, table_id: TableId) -> set[str]:
        """Those that constraints of the table have by now."""
        if table_id not in self._names:
            self._names[table_id] = ConstraintRows(self._tx).names(table_id)
        return self._names[table_id]

    def takes_primary_key(self, table_id: TableId) -> bool:
        """Whether the table has a primary key already; from now on it has."""
        if table_id in self._with_primary_key:
            return True
        self._with_primary_key.add(table_id)
        return bool(ConstraintRows(self._tx).of_table(table_id, ConstraintKind.PRIMARY_KEY))


def with_table(columns: Sequence[Struct] | None, table: Table) -> list[Struct]:
    """Constraints as they are sent with a new table: what does not say which table is on this one."""
    filled: list[Struct] = []
    for column in columns or ():
        prefix = "fktable" if isinstance(column, SQLForeignKey) else "table"
        names = {f"{prefix}_db": table.dbName, f"{prefix}_name": table.tableName}
        unset = {field: value for field, value in names.items() if getattr(column, field) is None}
        filled.append(msgspec.structs.replace(column, **unset))
    return filled


def _names(key: Any, side: str, name: TableName) -> bool:
    """Whether a foreign key has the table that `name` says on that side; what is left out may be any."""
    given = ((name.db_name, f"{side}_db"), (name.tbl_name, f"{side}_name"))
    return all(part is None or normalize(part) == getattr(key, field) for part, field in given)


def _with_names_of_parents(snapshot: Snapshot, keys: Sequence[Any]) -> list[Struct]:
    """Foreign keys with the names of the primary keys they refer to, whatever they were sent with."""
    names: dict[tuple[str, str], str | None] = {}
    for parent in {(key.pktable_db, key.pktable_name) for key in keys}:
        table = snapshot.table(*parent)
        primary: list[Any] = [] if table is None else ConstraintRows(snapshot).of_table(table.table_id, _PRIMARY)
        names[parent] = next((one.pk_name for one in primary), None)
    return [
        msgspec.structs.replace(key, pk_name=names[key.pktable_db, key.pktable_name] or key.pk_name) for key in keys
    ]


def _groups(columns: Sequence[Struct]) -> Iterator[list[Struct]]:
    """The columns of each constraint: those of one name, or without a name as long as key_seq goes on."""
    group: list[Struct] = []
    for column in columns:
        if group and not _belongs(column, group):
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def _belongs(column: Any, group: Sequence[Any]) -> bool:
    first = group[0]
    kind = _KINDS[type(column)]
    if type(column) is not type(first) or kind not in _WITH_SEQUENCE or _owner_names(column) != _owner_names(first):
        return False
    name_field = _FORMS[kind].name_field
    name, first_name = getattr(column, name_field), getattr(first, name_field)
    if name:
        return normalize(name) == normalize(first_name or "")
    return (column.key_seq or 0) > 1


def _owner_names(column: Any) -> tuple[str, str]:
    if isinstance(column, SQLForeignKey):
        return normalize(column.fktable_db or ""), normalize(column.fktable_name or "")
    return normalize(column.table_db or ""), normalize(column.table_name or "")


def _placed(known: _Known, kind: ConstraintKind, column: Any) -> _Place:
    if isinstance(column, SQLForeignKey):
        parent = known.table("Parent", column.pktable_db, column.pktable_name)
        child = known.table("Child", column.fktable_db, column.fktable_name)
        parent_column = known.column(parent, "Parent", column.pkcolumn_name)
        return _Place(child, known.column(child, "Child", column.fkcolumn_name), parent, parent_column)
    owner = known.table("Parent", column.table_db, column.table_name)
    if kind is ConstraintKind.CHECK and column.column_name is None:
        # A check may be on the table as a whole.
        return _Place(owner, "")
    return _Place(owner, known.column(owner, "Parent", column.column_name))


def _position(column: Any, number: int) -> int:
    return getattr(column, "key_seq", None) or number


def _complete(column: Struct, form: _Form, name: str) -> Struct:
    """With its name and every field that reads return."""
    fields: dict[str, Any] = {form.name_field: name}
    fields |= {field: bool(getattr(column, field)) for field in _FLAGS}
    if form.is_foreign:
        fields |= {field: getattr(column, field) or 0 for field in _RULES}
    return msgspec.structs.replace(column, **fields)
