"""`hms-gateway export` and `hms-gateway import`."""

import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hms_gateway.cli.calls.calling import connected
from hms_gateway.cli.calls.plain_values import PlainValueError, from_plain
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.catalog.names import CatalogName, parse_name
from hms_gateway.cli.catalog.records import (
    STRUCTS,
    Record,
    opened,
    read_header,
    read_records,
    records_of,
    write_records,
)
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    AlreadyExistsException,
    MetaException,
)

_PARTITIONS_A_CALL: Final = 500
_RECORDED: Final = "x-hms-recorded-at"


def run_export(target: CallTarget, name: str | None, output: Path | None) -> None:
    wanted = CatalogName("") if name is None else parse_name(name)
    with connected(target) as client:
        found = records_of(client, wanted.db_name or None, wanted.table_name)
        if output is None:
            write_records(sys.stdout, found, wanted)
            return
        try:
            count = _write(output, found, wanted)
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror or error}")
    err.print(f"{count:,} objects in {output}", markup=False, highlight=False, soft_wrap=True)


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
    err.print(f"made {text or 'nothing'}{skipped}", markup=False, highlight=False, soft_wrap=True)


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
        except MetaException as error:
            if record.kind not in ("database", "table") or self._moves:
                raise
            text = f"{record.shown}: {error.message}"
            fail(text, "--relocate OLD=NEW gives objects of another warehouse a place in this one", EXIT_REFUSED)
        except AlreadyExistsException as error:
            if not self._skips_existing:
                fail(f"{record.shown}: {error.message}", "--skip-existing leaves what is there as it is", EXIT_REFUSED)
            self.skipped += 1
            if record.kind == "table":
                self._tables_left.add((record.database, record.name))
        else:
            self.counts[record.kind] = self.counts.get(record.kind, 0) + 1

    def _call(self, record: Record) -> None:
        value = self._struct(record)
        match record.kind:
            case "database":
                self._client.call("create_database", value)
            case "function":
                self._client.call("create_function", value)
            case "table":
                self._client.call("create_table", value)
            case "primary_key":
                self._client.call("add_primary_key", AddPrimaryKeyRequest(value))
            case _:
                self._client.call("add_foreign_key", AddForeignKeyRequest(value))

    def _add_partitions(self, database: str, table: str, records: Iterator[Record]) -> None:
        while some := list(itertools.islice(records, _PARTITIONS_A_CALL)):
            partitions = [self._struct(record) for record in some]
            # Only the answer says which were there.
            skips = self._skips_existing
            request = AddPartitionsRequest(database, table, partitions, skips, needResult=skips)
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
