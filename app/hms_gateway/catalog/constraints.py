"""Constraints: rows, one for each of their columns; their rules and methods (semantics §2.15)."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import delete, insert, or_, select
from sqlalchemy.sql import Select

from hms_gateway.catalog.arguments import in_catalog, is_newer, table_in, with_fields
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Event, Snapshot, Store, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import TableId, generated_name, normalize
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    AllTableConstraintsResponse,
    CheckConstraintsRequest,
    CheckConstraintsResponse,
    DefaultConstraintsRequest,
    DefaultConstraintsResponse,
    DropConstraintRequest,
    ForeignKeysRequest,
    ForeignKeysResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    NotNullConstraintsResponse,
    PrimaryKeysRequest,
    PrimaryKeysResponse,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
    Table,
    UniqueConstraintsRequest,
    UniqueConstraintsResponse,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, plain_name
from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import CONSTRAINTS, DATABASES, TABLES
from hms_gateway.storage.sql.filter_sql import is_among
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows, check_name, is_storable


class ConstraintKind(IntEnum):
    """Kinds of constraints, numbered as by Hive (semantics §2.15)."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


class ConstraintColumn(msgspec.Struct, frozen=True):
    """One column of a constraint.

    `extra` is the IDL's struct (SQLPrimaryKey, …); what the other fields say counts where it says something else.
    """

    kind: ConstraintKind
    name: str
    table_id: TableId
    column: str
    position: int
    extra: Struct
    parent_table_id: TableId | None = None
    parent_column: str | None = None


# What has a column of its own; where the constraint is may change by a rename.
_IN_COLUMNS: Final = (
    "table_db", "table_name", "column_name", "fktable_db", "fktable_name", "fkcolumn_name",
    "pktable_db", "pktable_name", "pkcolumn_name", "key_seq", "catName",
)  # fmt: skip
_PARENTS: Final = TABLES.alias("parents")
_PARENT_DATABASES: Final = DATABASES.alias("parent_databases")


class _Form(msgspec.Struct, frozen=True):
    """How one kind is spelled: the field of its name, the prefix of names made here, its event, its lists."""

    struct_class: type[Struct]
    name_field: str
    prefix: str
    event_type: str
    event_field: str
    of_table: str


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


class ConstraintRows(AggregateRows):
    def of_table(self, table_id: TableId, kind: ConstraintKind) -> list[Struct]:
        """The columns of a kind of constraints as the IDL's structs, in order of their constraints' creation."""
        rows = self._connection.execute(
            _rows().where(CONSTRAINTS.c.table_id == table_id, CONSTRAINTS.c.kind == int(kind))
        )
        return [_constraint(row) for row in rows]

    def foreign_keys(self, table_id: TableId | None, parent_table_id: TableId | None) -> list[Struct]:
        """Foreign keys of a table, those that refer to one, or both."""
        statement = _rows().where(CONSTRAINTS.c.kind == int(ConstraintKind.FOREIGN_KEY))
        if table_id is not None:
            statement = statement.where(CONSTRAINTS.c.table_id == table_id)
        if parent_table_id is not None:
            statement = statement.where(CONSTRAINTS.c.parent_table_id == parent_table_id)
        return [_constraint(row) for row in self._connection.execute(statement)]

    def names(self, table_id: TableId) -> set[str]:
        """Names of all constraints of the table."""
        statement = select(CONSTRAINTS.c.name).where(CONSTRAINTS.c.table_id == table_id)
        return set(self._connection.execute(statement).scalars())

    def insert(self, columns: Sequence[ConstraintColumn]) -> None:
        if columns:
            self._connection.execute(insert(CONSTRAINTS), [_row(column, self._dialect) for column in columns])

    def delete(self, table_id: TableId, name: str) -> int:
        """Delete a constraint of the table, or of another one that refers to it; the number of its columns."""
        if not is_storable(name):
            return 0
        concerned = or_(CONSTRAINTS.c.table_id == table_id, CONSTRAINTS.c.parent_table_id == table_id)
        return self._connection.execute(delete(CONSTRAINTS).where(concerned, CONSTRAINTS.c.name == name)).rowcount

    def keep_columns(self, table_id: TableId, columns: Sequence[str]) -> None:
        """Delete every constraint that has another column of the table."""
        sides = (
            (CONSTRAINTS.c.table_id, CONSTRAINTS.c.column_name),
            (CONSTRAINTS.c.parent_table_id, CONSTRAINTS.c.parent_column_name),
        )
        for owner, column in sides:
            # Of a key of several columns none must stay alone.
            broken = select(CONSTRAINTS.c.table_id, CONSTRAINTS.c.name).where(
                owner == table_id, column != "", ~is_among(column, columns, self._dialect)
            )
            for broken_id, name in self._connection.execute(broken.distinct()).all():
                self._connection.execute(
                    delete(CONSTRAINTS).where(CONSTRAINTS.c.table_id == broken_id, CONSTRAINTS.c.name == name)
                )


def _rows() -> Select[Any]:
    return (
        select(
            CONSTRAINTS,
            TABLES.c.name.label("table_name"),
            DATABASES.c.name.label("db_name"),
            _PARENTS.c.name.label("parent_table_name"),
            _PARENT_DATABASES.c.name.label("parent_db_name"),
        )
        .join(TABLES, TABLES.c.table_id == CONSTRAINTS.c.table_id)
        .join(DATABASES, DATABASES.c.database_id == TABLES.c.database_id)
        .outerjoin(_PARENTS, _PARENTS.c.table_id == CONSTRAINTS.c.parent_table_id)
        .outerjoin(_PARENT_DATABASES, _PARENT_DATABASES.c.database_id == _PARENTS.c.database_id)
        .order_by(CONSTRAINTS.c.constraint_id)
    )


def _row(column: ConstraintColumn, dialect: Dialect) -> dict[str, Any]:
    for what, name in (("constraint", column.name), ("column", column.column), ("column", column.parent_column or "")):
        check_name(what, name, dialect)
    form = _FORMS[column.kind]
    # A name is found in one spelling and shown in another.
    shown_name = getattr(column.extra, form.name_field)
    own = (*_IN_COLUMNS, form.name_field) if shown_name == column.name else _IN_COLUMNS
    return {
        "table_id": column.table_id,
        "parent_table_id": column.parent_table_id,
        "kind": int(column.kind),
        "name": column.name,
        "position": column.position,
        "column_name": column.column,
        "parent_column_name": column.parent_column,
        "extra": encode_extra(column.extra, names_except(form.struct_class, *own)),
    }


def _constraint(row: Any) -> Struct:
    kind = ConstraintKind(row.kind)
    form = _FORMS[kind]
    constraint: Any = decode_extra(form.struct_class, row.extra)
    if getattr(constraint, form.name_field) is None:
        setattr(constraint, form.name_field, row.name)
    if kind is ConstraintKind.FOREIGN_KEY:
        constraint.fktable_db, constraint.fktable_name = row.db_name, row.table_name
        constraint.fkcolumn_name = row.column_name
        constraint.pktable_db, constraint.pktable_name = row.parent_db_name, row.parent_table_name
        constraint.pkcolumn_name = row.parent_column_name
    else:
        constraint.table_db, constraint.table_name = row.db_name, row.table_name
        # Without one it is a check on the table as a whole.
        constraint.column_name = row.column_name or None
    if kind in _WITH_SEQUENCE:
        constraint.key_seq = row.position
    found: Struct = constraint
    return found


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
    if isinstance(column, SQLForeignKey):
        fields |= {field: getattr(column, field) or 0 for field in _RULES}
    return msgspec.structs.replace(column, **fields)


T = TypeVar("T")

_DATABASE_FIELDS = ("table_db", "fktable_db", "pktable_db")


class Constraints:
    """Methods on constraints, whose names are found in any case.

    Kinds that came with 3.1 always say the catalog, those of 2.3 to newer callers only.
    """

    def __init__(self, store: Store, events: EventMaker, clock: Clock) -> None:
        self._store = store
        self._events = events
        self._rules = ConstraintRules(events, clock)

    def get_primary_keys(self, call: Call, request: PrimaryKeysRequest) -> PrimaryKeysResponse:
        request = required(request, "request")
        table = table_in(request.catName, request.db_name, request.tbl_name)
        keys: list[Any] = self._store.read(lambda snapshot: _of_table(snapshot, table, ConstraintKind.PRIMARY_KEY))
        if is_newer(call, request.db_name) or request.catName is not None:
            keys = _in_default_catalog(keys)
        return PrimaryKeysResponse(primaryKeys=keys)

    def get_foreign_keys(
        self, call: Call, request: ForeignKeysRequest
    ) -> ForeignKeysResponse | Uncacheable[ForeignKeysResponse]:
        """2.3 asks whose keys; newer callers may ask for all that refer to a table. Parts left out mean any."""
        request = required(request, "request")
        newer = is_newer(call, request.foreign_db_name) or request.catName is not None
        if not newer:
            required(request.foreign_db_name, "foreign_db_name")
            required(request.foreign_tbl_name, "foreign_tbl_name")
        parent = table_in(request.catName, request.parent_db_name, request.parent_tbl_name)
        child = table_in(request.catName, request.foreign_db_name, request.foreign_tbl_name)
        if child.tbl_name is None and parent.tbl_name is None:
            raise MetaException("foreign_tbl_name must not be null")
        keys: list[Any] = self._store.read(lambda snapshot: _foreign_keys(snapshot, parent, child))
        response = ForeignKeysResponse(foreignKeys=_in_default_catalog(keys) if newer else keys)
        return _of_two_tables(response) if keys else response

    def get_unique_constraints(self, call: Call, request: UniqueConstraintsRequest) -> UniqueConstraintsResponse:
        return UniqueConstraintsResponse(uniqueConstraints=self._of_kind(request, ConstraintKind.UNIQUE))

    def get_not_null_constraints(self, call: Call, request: NotNullConstraintsRequest) -> NotNullConstraintsResponse:
        return NotNullConstraintsResponse(notNullConstraints=self._of_kind(request, ConstraintKind.NOT_NULL))

    def get_default_constraints(self, call: Call, request: DefaultConstraintsRequest) -> DefaultConstraintsResponse:
        return DefaultConstraintsResponse(defaultConstraints=self._of_kind(request, ConstraintKind.DEFAULT))

    def get_check_constraints(self, call: Call, request: CheckConstraintsRequest) -> CheckConstraintsResponse:
        return CheckConstraintsResponse(checkConstraints=self._of_kind(request, ConstraintKind.CHECK))

    def get_all_table_constraints(
        self, call: Call, request: AllTableConstraintsRequest
    ) -> AllTableConstraintsResponse | Uncacheable[AllTableConstraintsResponse]:
        request = required(request, "request")
        name = table_in(request.catName, request.dbName, request.tblName)

        def work(snapshot: Snapshot) -> dict[str, Any]:
            """Read every kind at once, as one consistent state."""
            return {
                form.of_table: _in_default_catalog(_of_table(snapshot, name, kind)) for kind, form in _FORMS.items()
            }

        lists = self._store.read(work)
        response = AllTableConstraintsResponse(allTableConstraints=SQLAllTableConstraints(**lists))
        return _of_two_tables(response) if lists["foreignKeys"] else response

    def add_primary_key(self, call: Call, req: AddPrimaryKeyRequest) -> None:
        self._add(required(req, "req").primaryKeyCols)

    def add_foreign_key(self, call: Call, req: AddForeignKeyRequest) -> None:
        self._add(required(req, "req").foreignKeyCols)

    def add_unique_constraint(self, call: Call, req: AddUniqueConstraintRequest) -> None:
        self._add(required(req, "req").uniqueConstraintCols)

    def add_not_null_constraint(self, call: Call, req: AddNotNullConstraintRequest) -> None:
        self._add(required(req, "req").notNullConstraintCols)

    def add_default_constraint(self, call: Call, req: AddDefaultConstraintRequest) -> None:
        self._add(required(req, "req").defaultConstraintCols)

    def add_check_constraint(self, call: Call, req: AddCheckConstraintRequest) -> None:
        self._add(required(req, "req").checkConstraintCols)

    def drop_constraint(self, call: Call, req: DropConstraintRequest) -> None:
        """Drop a constraint, also a foreign key by the table it refers to."""
        request = required(req, "req")
        table_name = table_in(request.catName, request.dbname, request.tablename)
        name = normalize(required(request.constraintname, "constraint name"))

        def work(tx: Transaction) -> None:
            table = table_name.find(tx)
            if table is None or not ConstraintRows(tx).delete(table.table_id, name):
                raise NoSuchObjectException(
                    f"The constraint: {request.constraintname} does not exist for the associated table: {table_name}"
                )
            fields = {
                "dbName": plain_name(table.table.dbName or ""),
                "tableName": table.table.tableName,
                "constraintName": name,
                "timestamp": self._events.timestamp(),
            }
            db_name = table.table.dbName or ""
            tx.append_event(self._events.event("DROP_CONSTRAINT", db_name, table.table.tableName, fields))

        self._store.write(work)

    def _add(self, columns: Sequence[Struct] | None) -> None:
        """Add constraints, all or none. Raises InvalidObjectException for what is not there, MetaException."""
        given = plain(required(columns, "constraints"))
        with unstorable_as_meta():
            self._store.write(lambda tx: self._rules.add(tx, given))

    def _of_kind(self, request: Any, kind: ConstraintKind) -> list[Any]:
        request = required(request, "request")
        table = table_in(request.catName, request.db_name, request.tbl_name)
        return _in_default_catalog(self._store.read(lambda snapshot: _of_table(snapshot, table, kind)))


def _of_table(snapshot: Snapshot, name: TableName, kind: ConstraintKind) -> list[Struct]:
    """The columns of all constraints of a kind; a missing table has none."""
    table = name.find(snapshot)
    return [] if table is None else ConstraintRows(snapshot).of_table(table.table_id, kind)


def _foreign_keys(snapshot: Snapshot, parent: TableName, child: TableName) -> list[Struct]:
    """Foreign keys of `child` to `parent`; parts left out mean any."""
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


def plain(columns: Sequence[Any]) -> list[Any]:
    """Constraints sent by a client, their databases under the names they have within the one catalog."""
    return [_plain(required(column, "constraint")) for column in columns]


def _plain(column: Any) -> Any:
    names = {
        field: in_catalog(column.catName, name)
        for field in _DATABASE_FIELDS
        if (name := getattr(column, field, None)) is not None
    }
    return with_fields(column, **names, catName=None)


def _of_two_tables(response: T) -> Uncacheable[T]:
    """A foreign key also names the table that it refers to, which may be renamed or dropped without it."""
    return Uncacheable(response)


def _in_default_catalog(columns: Sequence[Any]) -> list[Any]:
    return [with_fields(column, catName=DEFAULT_CATALOG) for column in columns]
