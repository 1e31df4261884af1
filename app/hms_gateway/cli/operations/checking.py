"""Work of `hms-gateway check`: differences of the catalog and the directories."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import compress, islice
from operator import not_
from typing import Any, Final, NamedTuple

import click
import msgspec
from rich.markup import escape

from hms_gateway.catalog.directories.known_places import Candidate, CountedPlaces, KnownPlaces, table_places
from hms_gateway.catalog.directories.unknown import (
    DirectoryRemoval,
    MissingDirectories,
    UnknownDirectories,
    UnknownDirectory,
)
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, fail_for_store, out
from hms_gateway.composition.places import database_url, directories, find_outside_places
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.orphans import find_orphans
from hms_gateway.metastore.ports.store import FileSystemError, StoreError, Tree
from hms_gateway.metastore.vocabulary.locations import normalize_location
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.dialects.integrity import IntegrityCheck, sqlite_file
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.migrations.revisions import revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import SqlStore, open_store

_REMOVED_AT_ONCE: Final = 500


class CheckOptions(msgspec.Struct, frozen=True):
    """`removes_files` also removes directories without files."""

    removes: bool
    removes_files: bool
    older_than_seconds: float
    form: str | None

    @property
    def removes_any(self) -> bool:
        """True if directories are removed at all."""
        return self.removes or self.removes_files


class _Found(NamedTuple):
    """`is_left` is false for what was mended."""

    what: str
    fields: Mapping[str, Any]
    is_left: bool = True


def run_check(settings: Settings, **given: Any) -> None:
    """Print the findings; exit code 1 where something is left, 2 where the check is not possible."""
    options = CheckOptions(**given)
    report = _Report(options.form or ("" if out.is_terminal else "json"))
    try:
        report.write(_found(settings, options, report))
    except StoreError as error:
        fail_for_store(error)
    except SettingsError as error:
        fail(str(error))
    report.finish()


def _found(settings: Settings, options: CheckOptions, report: "_Report") -> Iterator[_Found]:
    """Raises StoreError and SettingsError."""
    yield from _check_database(settings)
    files = directories(settings)
    store = open_store(database_url(settings), SystemClock(), settings.limits, 1)
    try:
        yield from _Check(settings, options, files, store, report).run()
    finally:
        store.close()


def missing_directories(settings: Settings) -> Iterator[str]:
    """Places of managed tables and partitions whose directory is missing. Raises StoreError and SettingsError."""
    files = directories(settings)
    with closing(open_store(database_url(settings), SystemClock(), settings.limits, 1)) as store:
        for one in MissingDirectories(store, files).find():
            yield f"{one.location} ({one.kind} {one.name})"


def _check_database(settings: Settings) -> Iterator[_Found]:
    """Without making or changing anything, which opening the store would do. Raises StoreError."""
    url = database_url(settings)
    file = sqlite_file(url)
    if file is not None and not file.exists():
        raise StoreError(f"database {file} not found; --data-dir or --database says where it is")
    damage = None if file is None else IntegrityCheck(file).find_damage()
    if damage is not None:
        yield _Found("damaged_database", {"file": str(file), "damage": damage})
    found = revision_of(url)
    if found != REVISION:
        raise StoreError(f"the database has revision {found}, this program needs {REVISION}; hms-gateway migrate")


class _Check:
    """The parts of the check, cheap ones first."""

    def __init__(
        self, settings: Settings, options: CheckOptions, files: Directories, store: SqlStore, report: "_Report"
    ) -> None:
        self._settings = settings
        self._options = options
        self._files = files
        self._store = store
        self._report = report
        self._problems: list[_Found] = []

    def run(self) -> Iterator[_Found]:
        moves = self._store.read(lambda snapshot: snapshot.pending_moves())
        yield from self._outside()
        yield from self._missing()
        yield from self._unknown()
        yield from self._orphans()
        # One that is being made is over by now.
        still = {move.move_id for move in self._store.read(lambda snapshot: snapshot.pending_moves())}
        for move in moves:
            if move.move_id in still:
                yield _Found("pending_move", {"source": move.source, "target": move.target})

    def _outside(self) -> Iterator[_Found]:
        found = find_outside_places(self._settings, self._store)
        if found:
            kinds = {"databases": found.databases, "tables": found.tables, "partitions": found.partitions}
            named: dict[str, Any] = {kind: {"count": one.count, "first": one.examples} for kind, one in kinds.items()}
            yield _Found("outside_roots", {**named, "file_roots": list(found.roots), "text": str(found)})

    def _missing(self) -> Iterator[_Found]:
        missing = MissingDirectories(self._store, self._files)
        for one in missing.find():
            yield _Found("missing_directory", {"kind": one.kind, "name": one.name, "location": one.location})
        self._report.external_outside = missing.external_outside

    def _unknown(self) -> Iterator[_Found]:
        known = KnownPlaces(self._store, self._files)
        removal = DirectoryRemoval(
            self._store, self._files, known, self._is_old, with_files=self._options.removes_files
        )
        root = normalize_location(self._settings.warehouse_location)
        options = self._options
        unknown = UnknownDirectories(self._store, self._files, root, self._problem, puts_back=options.removes_any)
        for group in unknown.find(known):
            old = self._old_ones(group)
            while found := list(islice(old, _REMOVED_AT_ONCE)):
                is_doomed = [options.removes_any and removal.takes(one.tree) for one in found]
                spared = compress(found, map(not_, is_doomed))
                yield from map(self._unknown_directory, [*spared, *removal.remove(list(compress(found, is_doomed)))])
                yield from self._taken_problems()
        yield from self._taken_problems()

    def _orphans(self) -> Iterator[_Found]:
        """Files of Iceberg's commits that never were."""
        for table in table_places(self._store):
            if not table.has_metadata_file:
                continue
            try:
                for one in find_orphans(self._store, self._files, self._settings.limits, table.db_name, table.name):
                    age_seconds = time.time() - one.since_ms / 1000
                    if age_seconds >= self._options.older_than_seconds:
                        if self._options.removes_files:
                            self._files.delete_file(one.location)
                        fields = {"table": str(table), "location": one.location, "age_seconds": round(age_seconds)}
                        removed = self._options.removes_files
                        yield _Found("orphan_file", {**fields, "removed": removed}, is_left=not removed)
            except (IcebergError, FileSystemError) as error:
                self._problem(table.location or str(table), str(error))
        yield from self._taken_problems()

    def _old_ones(self, group: list[Candidate]) -> Iterator[UnknownDirectory]:
        for one in group:
            try:
                tree = self._files.measure(one.location)
            except FileSystemError as error:
                self._problem(one.location, str(error))
                continue
            if tree is not None and self._is_old(tree):
                yield UnknownDirectory(one, tree)
            elif tree is not None:
                self._report.young += 1

    def _is_old(self, tree: Tree) -> bool:
        return time.time() - tree.newest_seconds >= self._options.older_than_seconds

    def _problem(self, location: str, reason: str) -> None:
        self._problems.append(_Found("not_checked", {"location": location, "reason": reason}))

    def _taken_problems(self) -> list[_Found]:
        taken, self._problems = self._problems, []
        return taken

    def _unknown_directory(self, one: UnknownDirectory) -> _Found:
        tree = one.tree
        fields = {
            "kind": one.candidate.kind,
            "location": one.candidate.location,
            "directories": tree.directories,
            "files": tree.files,
            "bytes": tree.total_bytes,
            "age_seconds": round(time.time() - tree.newest_seconds),
            "removed": one.is_removed,
            "kept": one.kept or None,
        }
        return _Found("unknown_directory", fields, is_left=not one.is_removed)


class _Report:
    """Prints each finding when it is found, so that any number takes no memory: rows, or a line for people."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._counts: dict[str, int] = {}
        self._is_clean = True
        self.young = 0
        self.external_outside = CountedPlaces()

    def write(self, findings: Iterator[_Found]) -> None:
        if self._form not in ("", "json"):
            rows = ((found.what, found.is_left, _TEXTS[found.what](found.fields)) for found in self._counted(findings))
            write_rows(sys.stdout, self._form, ("what", "is_left", "text"), rows)
            return
        for what, fields, is_left in self._counted(findings):
            if self._form:
                print(json.dumps({"what": what, **fields}))
            else:
                color = "yellow" if is_left else "green"
                text = escape(_TEXTS[what](fields))
                out.print(f"[{color}]{what.replace('_', ' ')}[/{color}] {text}", **_PLAIN)

    def _counted(self, findings: Iterator[_Found]) -> Iterator[_Found]:
        for found in findings:
            self._counts[found.what] = self._counts.get(found.what, 0) + 1
            self._is_clean = self._is_clean and not found.is_left
            yield found

    def finish(self) -> None:
        """The last line. Ends the command where something is left."""
        external = self.external_outside.count
        if self._form == "json":
            summary = {**self._counts, "too_young": self.young, "external_outside_roots": external}
            print(json.dumps({"what": "summary", "is_clean": self._is_clean, **summary}))
        elif not self._form:
            if self.young:
                print(f"directories without a row that changed just now (--older-than): {self.young:,}")
            if external:
                print(f"external tables and partitions outside the roots, which is allowed: {external:,}")
            if not self._counts:
                out.print("nothing found", style="green", **_PLAIN)
        if not self._is_clean:
            raise click.exceptions.Exit(EXIT_REFUSED)


_PLAIN: Final[Mapping[str, Any]] = {"highlight": False, "soft_wrap": True}


def _unknown_text(fields: Mapping[str, Any]) -> str:
    size = f"{fields['files']:,} files, {fields['bytes']:,} bytes" if fields["files"] else "no files"
    minutes = fields["age_seconds"] // 60
    end = "; removed" if fields["removed"] else f"; kept: {fields['kept']}" if fields["kept"] else ""
    return f"{fields['location']} ({fields['kind']}; {size}; unchanged for {minutes:,} minutes){end}"


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "damaged_database": lambda fields: f"{fields['file']}: {fields['damage']}; restore a backup",
    "outside_roots": lambda fields: fields["text"],
    "missing_directory": lambda fields: f"{fields['location']} ({fields['kind']} {fields['name']})",
    "unknown_directory": _unknown_text,
    "orphan_file": lambda fields: (
        f"{fields['location']} ({fields['table']}; {fields['age_seconds'] // 60:,} minutes)"
        f"{'; removed' if fields['removed'] else ''}"
    ),
    "pending_move": lambda fields: (
        f"{fields['target']} belongs at {fields['source']}; the next start of a gateway moves it back"
    ),
    "not_checked": lambda fields: f"{fields['location']}: {fields['reason']}",
}
