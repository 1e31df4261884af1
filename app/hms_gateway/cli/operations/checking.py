"""`hms-gateway check`: where the catalog and the directories differ."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import compress, islice
from operator import not_
from typing import Any, Final

import click
import msgspec
from rich.markup import escape

from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, fail_for_store, out
from hms_gateway.composition.main import database_url, directories, find_outside_places
from hms_gateway.files import Directories
from hms_gateway.metastore.directories.known_places import Candidate, KnownPlaces
from hms_gateway.metastore.directories.missing import MissingDirectories
from hms_gateway.metastore.directories.outside_places import Counted
from hms_gateway.metastore.directories.removal import DirectoryRemoval, UnknownDirectory
from hms_gateway.metastore.directories.unknown import UnknownDirectories
from hms_gateway.metastore.ports.places import Tree
from hms_gateway.metastore.ports.store import FileSystemError, StoreError
from hms_gateway.metastore.vocabulary.locations import normalize_location
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage import REVISION, SqlStore, open_store, revision_of
from hms_gateway.storage.dialects.integrity import IntegrityCheck, sqlite_file

_REMOVED_AT_ONCE: Final = 500


class CheckOptions(msgspec.Struct, frozen=True):
    removes: bool
    removes_files: bool
    older_than_seconds: float
    as_json: bool


def run_check(settings: Settings, options: CheckOptions) -> None:
    """Print what was found; exit code 1 where something is left, 2 where the check is not possible."""
    report = _Report(as_json=options.as_json or not out.is_terminal)
    try:
        _check_database(settings, report)
        files = directories(settings)
        store = open_store(database_url(settings), SystemClock(), settings.limits, 1)
        try:
            _Check(settings, options, files, store, report).run()
        finally:
            store.close()
    except StoreError as error:
        fail_for_store(error)
    except SettingsError as error:
        fail(str(error))
    report.finish()


def _check_database(settings: Settings, report: "_Report") -> None:
    """Without making or changing anything, which opening the store would do. Raises StoreError."""
    url = database_url(settings)
    file = sqlite_file(url)
    if file is not None and not file.exists():
        raise StoreError(f"database {file} not found; --data-dir or --database says where it is")
    damage = None if file is None else IntegrityCheck(file).find_damage()
    if damage is not None:
        report.add("damaged_database", file=str(file), damage=damage)
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

    def run(self) -> None:
        moves = self._store.read(lambda snapshot: snapshot.pending_moves())
        self._outside()
        self._missing()
        self._unknown()
        # One that is being made is over by now.
        still = {move.move_id for move in self._store.read(lambda snapshot: snapshot.pending_moves())}
        for move in moves:
            if move.move_id in still:
                self._report.add("pending_move", source=move.source, target=move.target)

    def _outside(self) -> None:
        found = find_outside_places(self._settings, self._store)
        if found:
            kinds = {"databases": found.databases, "tables": found.tables, "partitions": found.partitions}
            named: dict[str, Any] = {kind: {"count": one.count, "first": one.examples} for kind, one in kinds.items()}
            self._report.add("outside_roots", **named, file_roots=list(found.roots), text=str(found))

    def _missing(self) -> None:
        missing = MissingDirectories(self._store, self._files, self._files)
        for one in missing.find():
            self._report.add("missing_directory", kind=one.kind, name=one.name, location=one.location)
        self._report.external_outside = missing.external_outside

    def _unknown(self) -> None:
        known = KnownPlaces(self._store, self._files)
        removal = DirectoryRemoval(
            self._store, self._files, known, self._is_old, with_files=self._options.removes_files
        )
        root = normalize_location(self._settings.warehouse_location)
        options = self._options
        unknown = UnknownDirectories(self._store, self._files, root, self._problem, puts_back=options.removes)
        for group in unknown.find(known):
            old = self._old_ones(group)
            while found := list(islice(old, _REMOVED_AT_ONCE)):
                is_doomed = [options.removes and removal.takes(one.tree) for one in found]
                spared = compress(found, map(not_, is_doomed))
                for one in [*spared, *removal.remove(list(compress(found, is_doomed)))]:
                    self._add_unknown(one)

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
        self._report.add("not_checked", location=location, reason=reason)

    def _add_unknown(self, one: UnknownDirectory) -> None:
        tree = one.tree
        self._report.add(
            "unknown_directory",
            is_left=not one.is_removed,
            kind=one.candidate.kind,
            location=one.candidate.location,
            directories=tree.directories,
            files=tree.files,
            bytes=tree.total_bytes,
            age_seconds=round(time.time() - tree.newest_seconds),
            removed=one.is_removed,
            kept=one.kept or None,
        )


class _Report:
    """Prints each finding when it is found, so that any number takes no memory: a line for people, or JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._counts: dict[str, int] = {}
        self._is_clean = True
        self.young = 0
        self.external_outside = Counted()

    def add(self, what: str, *, is_left: bool = True, **fields: Any) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1
        self._is_clean = self._is_clean and not is_left
        if self._as_json:
            print(json.dumps({"what": what, **fields}))
        else:
            color = "yellow" if is_left else "green"
            text = escape(_TEXTS[what](fields))
            out.print(f"[{color}]{what.replace('_', ' ')}[/{color}] {text}", **_PLAIN)

    def finish(self) -> None:
        """The last line. Ends the command where something is left."""
        external = self.external_outside.count
        if self._as_json:
            summary = {**self._counts, "too_young": self.young, "external_outside_roots": external}
            print(json.dumps({"what": "summary", "is_clean": self._is_clean, **summary}))
        else:
            if self.young:
                out.print(f"directories without a row that changed just now (--older-than): {self.young:,}", **_PLAIN)
            if external:
                out.print(f"external tables and partitions outside the roots, which is allowed: {external:,}", **_PLAIN)
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
    "pending_move": lambda fields: (
        f"{fields['target']} belongs at {fields['source']}; the next start of a gateway moves it back"
    ),
    "not_checked": lambda fields: f"{fields['location']}: {fields['reason']}",
}
