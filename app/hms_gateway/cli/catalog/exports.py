"""Work of `hms-gateway export` and `import`: a catalog as records, in one order, from a metastore or a file."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

import hms_gateway.rpc.structs as structs
from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import PlainValueError, from_plain, to_plain
from hms_gateway.cli.calls.targets import CallTarget, named_catalog
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, say
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.idl import ListType, StructType

_RECORDED: Final = "x-hms-recorded-at"
VERSION: Final = 1
_HEADER: Final = {"format": "hms-gateway export", "version": VERSION}
_PARTITIONS_A_CALL: Final = 500
# catalog.database.table
_POINTS_OF_CATALOG: Final = 2
_PLACES: Final = {"database": 0, "function": 1, "table": 2, "primary_key": 3, "foreign_key": 4, "partition": 5}
STRUCTS: Final = {
    "database": "Database",
    "function": "Function",
    "table": "Table",
    "primary_key": "SQLPrimaryKey",
    "foreign_key": "SQLForeignKey",
    "partition": "Partition",
}


class CatalogName(NamedTuple):
    db_name: str
    table_name: str | None = None
    partition_name: str | None = None

    def __str__(self) -> str:
        table = "" if self.table_name is None else f".{self.table_name}"
        return f"{self.db_name}{table}{f'/{self.partition_name}' if self.partition_name else ''}"

    def holds(self, other: "CatalogName") -> bool:
        """True for itself and what is in it; an empty name holds everything."""
        return not self.db_name or self == other or (self.table_name is None and self.db_name == other.db_name)


def parse_name(text: str, *, is_partition_too: bool = False) -> CatalogName:
    """Ends the command when the text is not a name, or names a partition where a command takes none."""
    named, slash, partition = text.partition("/")
    db_name, point, table_name = named.partition(".")
    is_partition = bool(is_partition_too and point and "=" in partition)
    if not db_name or (point and not table_name) or "." in table_name or (slash and not is_partition):
        forms = "database, database.table or catalog.database.table"
        fail(f"{text!r} is not a name", f"write {forms}{', a table with /key=value' if is_partition_too else ''}")
    return CatalogName(db_name.lower(), table_name.lower() or None, partition or None)


def placed_name(
    target: CallTarget, text: str | None, *, is_partition_too: bool = False
) -> tuple[CallTarget, CatalogName]:
    """The name, empty for none, and the target with its catalog: that of `catalog.database.table`, else as it was."""
    if text is None:
        return target, CatalogName("")
    named, slash, partition = text.partition("/")
    if named.count(".") == _POINTS_OF_CATALOG:
        catalog, _, named = named.partition(".")
        target = msgspec.structs.replace(target, catalog=named_catalog(f"{text!r}", catalog))
    return target, parse_name(f"{named}{slash}{partition}", is_partition_too=is_partition_too)


class Record(NamedTuple):
    """`value` is the struct in terms of JSON; of keys it is the list of their columns."""

    kind: str
    database: str
    name: str
    part: str
    value: Any

    @property
    def order(self) -> tuple[Any, ...]:
        """A database, its functions, and each table with all that belongs to it."""
        is_of_table = self.kind not in ("database", "function")
        place = _PLACES[self.kind]
        return (self.database, is_of_table, *((self.name, place) if is_of_table else (place, self.name)), self.part)

    @property
    def shown(self) -> str:
        name = f"{self.database}.{self.name}" if self.name else self.database
        return f"{self.kind.replace('_', ' ')} {name}{f'/{self.part}' if self.part else ''}"


def records_of(client: MetastoreClient, database: str | None, table: str | None = None) -> Iterator[Record]:
    """All databases, one, or one table of it; read while they are used."""
    databases = [database] if database is not None else sorted(client.call("get_all_databases"))
    for name in databases:
        if table is not None:
            yield from _table(client, name, table)
            continue
        yield Record("database", name, "", "", _plain("Database", client.call("get_database", name)))
        for function in sorted(client.call("get_functions", name, "*")):
            yield Record(
                "function", name, function, "", _plain("Function", client.call("get_function", name, function))
            )
        for each in sorted(client.call("get_all_tables", name)):
            yield from _table(client, name, each)


def _table(client: MetastoreClient, database: str, name: str) -> Iterator[Record]:
    table = client.call("get_table", database, name)
    yield Record("table", database, name, "", _plain("Table", table))
    yield from _keys(client, database, name)
    keys = [key.name or "" for key in table.partitionKeys or ()]
    names = sorted(client.call("get_partition_names", database, name, -1)) if keys else []
    for begin in range(0, len(names), _PARTITIONS_A_CALL):
        found = client.call("get_partitions_by_names", database, name, names[begin : begin + _PARTITIONS_A_CALL])
        made = {make_name(keys, each.values): each for each in found}
        for part in sorted(made):
            yield Record("partition", database, name, part, _plain("Partition", made[part]))


def _keys(client: MetastoreClient, database: str, name: str) -> Iterator[Record]:
    primary = client.call("get_primary_keys", structs.PrimaryKeysRequest(database, name)).primaryKeys
    if primary:
        yield Record("primary_key", database, name, "", [_plain("SQLPrimaryKey", each) for each in primary])
    foreign = client.call("get_foreign_keys", structs.ForeignKeysRequest(None, None, database, name)).foreignKeys
    if foreign:
        yield Record("foreign_key", database, name, "", [_plain("SQLForeignKey", each) for each in foreign])


def _plain(struct: str, value: Any) -> Any:
    return to_plain(StructType(struct), value)


def write_records(stream: IO[str], records: Iterable[Record], of: CatalogName) -> int:
    """Write JSON lines, the first of which names the part of the catalog; return how many."""
    stream.write(json.dumps({**_HEADER, "of": str(of)}) + "\n")
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007
        stream.write(json.dumps(record._asdict(), ensure_ascii=False) + "\n")
    return count


def read_header(stream: IO[str], name: str) -> CatalogName:
    """The part of the catalog that the records are of. Ends the command where `write_records` has not written it."""
    try:
        header = json.loads(stream.readline())
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != _HEADER["format"]:
        fail(f"{name} is not an export", "hms-gateway export writes one")
    if header.get("version") != VERSION:
        fail(f"{name} has version {header.get('version')} of the export format; this program reads {VERSION}")
    of = header.get("of")
    return parse_name(of) if isinstance(of, str) and of else CatalogName("")


def read_records(stream: IO[str], name: str) -> Iterator[Record]:
    """The records behind the header. Ends the command where `write_records` has not written them."""
    for number, line in enumerate(stream, 2):
        yield _record(line, f"{name}:{number}")


def _record(line: str, place: str) -> Record:
    try:
        record = Record(**json.loads(line))
    except (ValueError, TypeError) as error:
        fail(f"{place} is not a record of an export: {error}", "was the file cut off?")
    if record.kind not in STRUCTS or not all(isinstance(each, str) for each in record[:4]):
        fail(f"{place} is not a record of an export: its kind is {record.kind!r}")
    return record


def opened(file: Path) -> IO[str]:
    """Ends the command when it cannot be read."""
    try:
        return file.open(encoding="utf-8")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror or error}")


def run_export(target: CallTarget, name: str | None, output: Path | None) -> None:
    target, wanted = placed_name(target, name)
    with connected(target) as client:
        found = records_of(client, wanted.db_name or None, wanted.table_name)
        if output is None:
            write_records(sys.stdout, found, wanted)
            return
        try:
            count = _write(output, found, wanted)
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror or error}")
    say(f"{count:,} objects in {output}")


def _write(output: Path, found: Iterable[Record], of: CatalogName) -> int:
    """A file is written under another name until it is whole; a pipe, a terminal or a device as it is."""
    if output.exists() and not output.is_file():
        with output.open("w", encoding="utf-8") as stream:
            return write_records(stream, found, of)
    target = output.resolve()
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            count = write_records(stream, found, of)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def run_import(
    target: CallTarget, file: Path | None, relocated: Sequence[str], *, is_exact: bool, skips_existing: bool
) -> None:
    """`is_exact` keeps times as they are in the file, and makes no directory; `relocated` are `OLD=NEW`."""
    moves = [_move(text) for text in relocated]
    headers = {**target.headers, _RECORDED: "0"} if is_exact else target.headers
    source = contextlib.nullcontext(sys.stdin) if file is None else opened(file)
    with source as stream, connected(msgspec.structs.replace(target, headers=headers)) as client:
        importer = _Importer(client, moves, skips_existing=skips_existing)
        name = str(file or "standard input")
        read_header(stream, name)
        importer.add(read_records(stream, name))
    text = ", ".join(_counted(kind, count) for kind, count in importer.counts.items())
    skipped = f"; {importer.skipped:,} were there already" if importer.skipped else ""
    say(f"made {text or 'nothing'}{skipped}")


def _counted(kind: str, count: int) -> str:
    return f"{count:,} {kind.replace('_', ' ')}{'' if count == 1 else 's'}"


class _Importer:
    def __init__(self, client: MetastoreClient, moves: Sequence[tuple[str, str]], *, skips_existing: bool) -> None:
        self._client = client
        self._moves = moves
        self._skips_existing = skips_existing
        self.counts: dict[str, int] = {}
        # Their keys stay as they are, too.
        self._tables_left: set[tuple[str, str]] = set()
        self.skipped = 0

    def add(self, records: Iterable[Record]) -> None:
        """Foreign keys come last, when all tables are there."""
        waiting = []
        for (kind, database, table), group in itertools.groupby(records, lambda each: each[:3]):
            if kind == "foreign_key":
                waiting += list(group)
            elif kind == "partition":
                self._add_partitions(database, table, group)
            else:
                for record in group:
                    self._make(record)
        for record in waiting:
            self._make(record)

    def _make(self, record: Record) -> None:
        is_default = record.kind == "database" and record.database == "default"
        if is_default or (record.database, record.name) in self._tables_left:
            self.skipped += 1
            return
        try:
            self._call(record)
        except structs.MetaException as error:
            if record.kind not in ("database", "table") or self._moves:
                raise
            text = f"{record.shown}: {error.message}"
            fail(text, "--relocate OLD=NEW gives objects of another warehouse a place in this one", EXIT_REFUSED)
        except structs.AlreadyExistsException as error:
            if not self._skips_existing:
                fail(f"{record.shown}: {error.message}", "--skip-existing leaves what is there as it is", EXIT_REFUSED)
            self.skipped += 1
            if record.kind == "table":
                self._tables_left.add((record.database, record.name))
        else:
            self.counts[record.kind] = self.counts.get(record.kind, 0) + 1

    def _call(self, record: Record) -> None:
        value, method = self._struct(record), f"create_{record.kind}"
        if record.kind == "primary_key":
            value, method = structs.AddPrimaryKeyRequest(value), "add_primary_key"
        elif record.kind == "foreign_key":
            value, method = structs.AddForeignKeyRequest(value), "add_foreign_key"
        self._client.call(method, value)

    def _add_partitions(self, database: str, table: str, records: Iterator[Record]) -> None:
        while some := list(itertools.islice(records, _PARTITIONS_A_CALL)):
            partitions = [self._struct(record) for record in some]
            # Only the answer says which were there.
            skips = self._skips_existing
            request = structs.AddPartitionsRequest(database, table, partitions, skips, needResult=skips)
            answer = self._client.call("add_partitions_req", request)
            made = len(answer.partitions or ()) if skips else len(some)
            self.skipped += len(some) - made
            if made:
                self.counts["partition"] = self.counts.get("partition", 0) + made

    def _struct(self, record: Record) -> Any:
        value = _struct(record)
        for place in (value, getattr(value, "sd", None)):
            for field in ("locationUri", "managedLocationUri", "location"):
                location = getattr(place, field, None)
                if location:
                    setattr(place, field, _moved(location, self._moves))
        return value


def _move(text: str) -> tuple[str, str]:
    old, equals, new = (part.rstrip("/") for part in text.partition("="))
    if not equals or not old or not new:
        fail(f"--relocate {text!r} is not OLD=NEW", "such as file:/old/warehouse=file:/new/warehouse")
    return old, new


def _moved(location: str, moves: Sequence[tuple[str, str]]) -> str:
    """The first directory that the location is, or lies in, counts."""
    for old, new in moves:
        if location == old or location.startswith(f"{old}/"):
            return new + location.removeprefix(old)
    return location


def _struct(record: Record) -> Any:
    kind: Any = StructType(STRUCTS[record.kind])
    wanted = ListType(kind) if record.kind in ("primary_key", "foreign_key") else kind
    try:
        return from_plain(wanted, record.value, record.shown)
    except PlainValueError as error:
        fail(str(error))
