"""The state that statements of one session share, their names as values, and their results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Protocol

from hms_gateway.metastore.filters.hiveql_condition import metastore_filter, not_of_type
from hms_gateway.metastore.vocabulary.create_text import literal, quoted
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import FieldSchema, NoSuchObjectException, PrincipalType, Table
from hms_gateway.rpc.structs.catalogs import shown_key

Cell = str | int | bool | None
VIEWS: Final = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")


class QualifiedName(NamedTuple):
    """Database and table."""

    db_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{shown_key(self.db_name)}.{self.table_name}"


@dataclass(frozen=True)
class KeyValue:
    """One part of a partition specification; `value` is None for a key without one, and begins at `begin`."""

    key: str
    value: str | None
    sign: str = "="
    begin: int = field(default=0, compare=False)


PartitionSpec = tuple[KeyValue, ...]


class PrincipalName(NamedTuple):
    """Kind and name of a user, group or role."""

    kind: PrincipalType
    name: str


class PlaceName(NamedTuple):
    """The object of locks, leases and grants: a database, a table, or some of its partitions."""

    db_name: str
    table_name: str | None = None
    spec: PartitionSpec = ()


P = ParamSpec("P")


class Statement(NamedTuple):
    """A statement that was read: the function of its calls, and its words as arguments, with names in lower case."""

    work: "Callable[..., ResultRows | None]"
    given: tuple[Any, ...]
    named: Mapping[str, Any]

    def run(self, state: "ShellState") -> "ResultRows | None":
        """The rows of the statement, None without any.

        Rows may still be made while they are read. Raises CommandRefused, CommandError for a query, and the errors of
        the client.
        """
        return self.work(state, *self.given, **self.named)


def statement(work: "Callable[Concatenate[ShellState, P], ResultRows | None]") -> Callable[P, Statement]:
    """Decorator: the words of a statement make a value, with which the function runs later."""
    return lambda *given, **named: Statement(work, given, named)


class ShellCaller(Protocol):
    """A client of a metastore, such as `client.metastore_client.MetastoreClient`."""

    def call(self, name: str, /, *arguments: Any) -> Any: ...


class CommandRefused(Exception):
    """A statement that is read cannot be done; the text says why."""


class ResultRows(NamedTuple):
    """`is_text` says that the only cell is a text of its own, such as a statement."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]
    is_text: bool = False


def table_of(found: Iterable[Any], **columns: str | Callable[[Any], Cell]) -> ResultRows:
    """Rows of structs: by column the name of a field, or a function of the struct."""
    cells = [attrgetter(each) if isinstance(each, str) else each for each in columns.values()]
    return ResultRows(tuple(columns), (tuple(cell(each) for cell in cells) for each in found))


class ShellState:
    """Caller, current database, and settings of the session."""

    def __init__(self, caller: ShellCaller, user: str, hostname: str, database: str = "default") -> None:
        self.call = caller.call
        self.caller = caller
        self.user = user
        self.hostname = hostname
        self.database = database
        self.options: dict[str, str] = {}
        self.lock_ids: list[int] = []
        # Does REPAIR where Spark is installed: table, whether to add and to drop partitions.
        self.repair: Callable[[ShellState, QualifiedName, bool, bool], ResultRows] | None = None

    def table(self, name: QualifiedName) -> Table:
        """Raises CommandRefused when there is none."""
        found: Table = self.of_table("get_table", name)
        return found

    def of_table(self, method: str, name: QualifiedName, *arguments: Any) -> Any:
        """The answer of a method about a table. Raises CommandRefused when there is none."""
        try:
            return self.call(method, *name, *arguments)
        except NoSuchObjectException as error:
            raise CommandRefused(
                f"table {name} does not exist; SHOW TABLES IN {shown_key(name.db_name)} lists those that do"
            ) from error


def all_columns(table: Table) -> list[FieldSchema]:
    """Columns and partition keys."""
    return [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]


def no_such_partition(name: QualifiedName) -> CommandRefused:
    return CommandRefused(f"table {name} does not have such a partition; SHOW PARTITIONS {name} lists those it has")


def keys_of(table: Table) -> list[str]:
    return [key.name or "" for key in table.partitionKeys or ()]


def typed_keys(table: Table) -> list[tuple[str, str]]:
    return [(key.name or "", key.type or "string") for key in table.partitionKeys or ()]


def partition_values(name: QualifiedName, keys: Sequence[str], spec: PartitionSpec) -> list[str]:
    """The values of one partition, in the order of the keys. Raises CommandRefused."""
    given = known_values(name, keys, spec)
    missing = [key for key in keys if key not in given]
    if missing:
        raise CommandRefused(f"table {name} is partitioned by {', '.join(keys)}; give a value for {', '.join(missing)}")
    return [given[key] for key in keys]


def new_partition_values(name: QualifiedName, table: Table, spec: PartitionSpec) -> list[str]:
    """The same of a partition that is made: no filter finds values of other types than the keys'.

    Raises CommandRefused, and CommandError.
    """
    values = partition_values(name, keys_of(table), spec)
    types = dict(typed_keys(table))
    for part in spec:
        if (refusal := not_of_type(part.key, types[part.key], part.value or "")) is not None:
            raise CommandError(refusal, part.begin)
    return values


def known_values(name: QualifiedName, keys: Sequence[str], spec: PartitionSpec) -> Mapping[str, str]:
    """Value by key. Raises CommandRefused for what is not a partition key, and for signs other than `=`."""
    for part in spec:
        if part.key not in keys:
            has = f"it is partitioned by {', '.join(keys)}" if keys else "it is not partitioned"
            raise CommandRefused(f"{part.key} is not a partition key of table {name}; {has}")
        if part.sign != "=" or part.value is None:
            raise CommandRefused(f"PARTITION needs {part.key} = value here, not {part.key} {part.sign}")
    return {part.key: part.value or "" for part in spec}


def partition_names(state: ShellState, name: QualifiedName, spec: PartitionSpec) -> list[str]:
    """The partitions that fit a specification, which may leave keys out. Raises CommandRefused and CommandError."""
    table = state.table(name)
    keys = keys_of(table)
    if all(part.sign == "=" for part in spec):
        given = known_values(name, keys, spec)
        values = [given.get(key, "") for key in keys]
        found: list[str] = state.call("get_partition_names_ps", *name, values, -1)
        return found
    known_values(name, keys, tuple(replace(part, sign="=") for part in spec))
    texts = []
    for part in spec:
        try:
            condition = f"{quoted(part.key)} {part.sign} {literal(part.value)}"
            texts.append(metastore_filter(condition, typed_keys(table)))
        except CommandError as error:
            raise CommandError(str(error), part.begin) from error
    text = " and ".join(texts)
    listed = state.call("get_partitions_by_filter", *name, text, -1)
    return [make_name(keys, each.values) for each in listed]


def place_names(state: ShellState, place: PlaceName) -> tuple[str, str | None, str | None]:
    """Database, table, and the name of a partition or of a prefix of partitions. Raises CommandRefused."""
    if place.table_name is None or not place.spec:
        return place.db_name, place.table_name, None
    name = QualifiedName(place.db_name, place.table_name)
    keys = keys_of(state.table(name))
    given = known_values(name, keys, place.spec)
    known = [key for key in keys if key in given]
    return place.db_name, place.table_name, make_name(known, [given[key] for key in known])
