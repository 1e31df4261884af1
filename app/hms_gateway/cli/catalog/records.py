"""A catalog as records: databases, functions, tables, partitions and keys, in one order, from a metastore or a file."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from hms_gateway.cli.calls.plain_values import to_plain
from hms_gateway.cli.catalog.names import CatalogName, parse_name
from hms_gateway.cli.terminal.output import fail
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import ForeignKeysRequest, PrimaryKeysRequest

VERSION: Final = 1
_HEADER: Final = {"format": "hms-gateway export", "version": VERSION}
_PARTITIONS_A_CALL: Final = 500
_PLACES: Final = {"database": 0, "function": 1, "table": 2, "primary_key": 3, "foreign_key": 4, "partition": 5}
STRUCTS: Final = {
    "database": "Database",
    "function": "Function",
    "table": "Table",
    "primary_key": "SQLPrimaryKey",
    "foreign_key": "SQLForeignKey",
    "partition": "Partition",
}


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
    primary = client.call("get_primary_keys", PrimaryKeysRequest(database, name)).primaryKeys
    if primary:
        yield Record("primary_key", database, name, "", [_plain("SQLPrimaryKey", each) for each in primary])
    foreign = client.call("get_foreign_keys", ForeignKeysRequest(None, None, database, name)).foreignKeys
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
