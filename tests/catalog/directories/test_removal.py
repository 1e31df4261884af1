"""Directories without a row: which are found, which go, and what is never touched, whatever happens meanwhile."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.directories.known_places import Candidate, KnownPlaces
from hms_gateway.catalog.directories.unknown import ASIDE, DirectoryRemoval, UnknownDirectories, UnknownDirectory
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Tree
from hms_gateway.rpc.structs import Database, Partition
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories
from tests.support.catalog import Catalog, columns, new_table, open_catalog, to_tjson
from tests.support.partition_calls import PartitionCalls

EXTERNAL = {"EXTERNAL": "TRUE"}


class Checked:
    """A catalog with a database `d`, and what a check finds in it."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.problems: list[str] = []
        self.known = KnownPlaces(catalog.store, catalog.files)
        catalog.databases.create(Database(name="d"))
        self.partitions = PartitionCalls(
            catalog.store, catalog.files, catalog.clock, catalog.settings, to_tjson, Limits()
        )

    def table(self, name: str, keys: str = "", **fields: object) -> TableName:
        self.catalog.tables.create(new_table(name, "d", keys=columns(*keys.split(",")) if keys else None, **fields))  # type: ignore[arg-type]
        return TableName("d", name)

    def add(self, table: str, *values: str, location: str | None = None) -> None:
        stored = self.catalog.tables.get(TableName("d", table))
        assert stored.sd is not None
        descriptor = type(stored.sd)(
            **{**{f: getattr(stored.sd, f) for f in ("cols", "serdeInfo")}, "location": location}
        )
        self.partitions.add(Partition(dbName="d", tableName=table, values=list(values), sd=descriptor))

    def path(self, name: str) -> Path:
        return self.catalog.warehouse / name

    def make(self, *names: str) -> None:
        for name in names:
            self.path(name).mkdir(parents=True)

    def groups(self, *, puts_back: bool = False) -> Iterator[list[Candidate]]:
        unknown = UnknownDirectories(
            self.catalog.store,
            self.catalog.files,
            self.catalog.root,
            lambda place, reason: self.problems.append(f"{place}: {reason}"),
            puts_back=puts_back,
        )
        return unknown.find(self.known)

    def found(self, *, puts_back: bool = False) -> list[Candidate]:
        return [one for group in self.groups(puts_back=puts_back) for one in group]

    def names(self, *, puts_back: bool = False) -> list[str]:
        return sorted(one.location.removeprefix(f"{self.catalog.root}/") for one in self.found(puts_back=puts_back))

    def remove(
        self, found: list[Candidate], *, with_files: bool = False, is_old: Callable[[Tree], bool] = lambda tree: True
    ) -> list[UnknownDirectory]:
        measured = [
            UnknownDirectory(one, self.catalog.files.measure(one.location) or Tree(0, 0, 0, 0)) for one in found
        ]
        removal = DirectoryRemoval(self.catalog.store, self.catalog.files, self.known, is_old, with_files=with_files)
        return removal.remove(measured)


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Checked]:
    with open_catalog(tmp_path) as catalog:
        yield Checked(catalog)


def test_directories_of_each_kind_are_found(checked: Checked) -> None:
    checked.table("t")
    checked.table("p", "y int,m int")
    checked.add("p", "1", "2")
    assert checked.names() == []
    checked.make("x.db", "loose", "d.db/u", "d.db/p/y=1/m=3", "d.db/p/y=4/m=1", "d.db/p/y=5")
    assert checked.names() == ["d.db/p/y=1/m=3", "d.db/p/y=4", "d.db/p/y=5", "d.db/u", "loose", "x.db"]
    assert {one.kind for one in checked.found()} == {"database", "table", "partition"}


def test_what_is_no_directory_of_ours_is_not(checked: Checked) -> None:
    checked.table("p", "y int")
    checked.table("e", parameters=EXTERNAL, table_type="EXTERNAL_TABLE", keys="y int")
    checked.make("lost+found", "_hidden", ".hidden", "d.db/t/deep", "d.db/p/_tmp", "d.db/p/z=1", "d.db/e/y=1")
    checked.path("d.db/link").symlink_to(checked.catalog.warehouse)
    os.mkdir(bytes(checked.path("d.db")) + b"/\xff")
    assert checked.names() == ["d.db/t"]


def test_what_holds_or_lies_in_something_known_is_kept(checked: Checked) -> None:
    """Tables, partitions, databases and pending moves, external ones too, at, in or around the directory."""
    root = checked.catalog.root
    names = ("at", "in/a/b", "moved", "old", "base.db", "db.db/x", "p2/y=1")
    checked.make(*names)
    checked.table("external", location=f"{root}/at", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    checked.table("deep", location=f"{root}/in/a/b", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    checked.table("p", "y int")
    checked.add("p", "1", location=f"{root}/p2/y=1")
    checked.catalog.databases.create(Database(name="b", locationUri=f"{root}/db.db/x"))
    table_id = checked.catalog.store.read(TableName("d", "p").load).table_id
    checked.catalog.store.write(lambda tx: tx.insert_pending_move(table_id, f"{root}/moved", f"{root}/old"))
    assert checked.names() == ["base.db"]
    checked.table("all", location=f"{root}/base.db", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    checked.make("base.db/t")
    assert checked.names() == []


def test_what_lies_in_an_external_table_is_its_own(checked: Checked) -> None:
    checked.table("p", "y int")
    checked.make("d.db/p/y=1")
    assert checked.names() == ["d.db/p/y=1"]
    checked.table("same", location=f"{checked.catalog.root}/d.db/p", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    assert checked.names() == []


def test_links_from_elsewhere_lead_to_what_is_known(checked: Checked, tmp_path_factory: pytest.TempPathFactory) -> None:
    checked.make("t")
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(checked.catalog.warehouse)
    assert checked.names() == ["t"]
    checked.table("e", location=f"file:{link}/t", parameters=EXTERNAL, table_type="EXTERNAL_TABLE")
    assert checked.names() == []


def test_a_default_partition_that_lies_elsewhere_leaves_its_directory(checked: Checked) -> None:
    checked.table("p", "y int")
    checked.add("p", "1", location=f"{checked.catalog.root}/other/one")
    checked.make("d.db/p/y=1")
    assert checked.names() == ["d.db/p/y=1"]


def test_empty_ones_go_with_the_directories_in_them(checked: Checked) -> None:
    checked.make("t/a/b", "u")
    checked.path("u/file").write_text("x")
    before = checked.remove(checked.found())
    assert sorted((one.candidate.location.rpartition("/")[2], one.is_removed) for one in before) == [
        ("t", True),
        ("u", False),
    ]
    assert checked.path("u/file").exists()
    assert [one.is_removed for one in checked.remove(checked.found(), with_files=True)] == [True]
    assert sorted(path.name for path in checked.catalog.warehouse.iterdir()) == ["d.db"]


def test_young_ones_are_put_back(checked: Checked) -> None:
    checked.make("t")
    [one] = checked.remove(checked.found(), is_old=lambda tree: False)
    assert (one.is_removed, one.kept) == (False, "it was changed just now")
    assert [path.name for path in checked.catalog.warehouse.iterdir() if path.name != "d.db"] == ["t"]


@pytest.mark.parametrize("with_files", [False, True])
def test_a_row_that_came_after_the_search_keeps_the_directory(checked: Checked, with_files: bool) -> None:
    checked.table("p", "y int")
    checked.make("d.db/t", "d.db/p/y=1", "n.db")
    found = checked.found()
    checked.table("t")
    checked.add("p", "1")
    checked.catalog.databases.create(Database(name="n"))
    assert len(found) == 3
    assert {one.kept for one in checked.remove(found, with_files=with_files)} == {"it has a row by now"}
    assert all(checked.path(name).is_dir() for name in ("d.db/t", "d.db/p/y=1", "n.db"))


def test_a_table_altered_to_lie_there_keeps_it(checked: Checked) -> None:
    """No new row, so it is seen when the directory is set aside already, and put back."""
    name = checked.table("t")
    checked.make("u")
    checked.path("u/file").write_text("kept")
    found = checked.found()
    checked.catalog.alterations.alter(name, new_table("t", "d", location=f"{checked.catalog.root}/u"))
    [one] = checked.remove(found, with_files=True)
    assert (one.is_removed, one.kept) == (False, "it has a row by now")
    assert checked.path("u/file").read_text() == "kept"


class Interrupting:
    """The files of a catalog, with something that happens right after a directory was set aside."""

    def __init__(self, files: object, then: Callable[[], None]) -> None:
        self._files = files
        self._then = then

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def move_directory(self, source: str, target: str) -> None:
        self._files.move_directory(source, target)  # type: ignore[attr-defined]
        if ASIDE in target:
            self._then()


def test_a_creation_in_between_gets_a_directory_of_its_own(checked: Checked) -> None:
    checked.make("d.db/t")
    found = [UnknownDirectory(one, Tree(0, 0, 0, 0)) for one in checked.found()]
    files = Interrupting(checked.catalog.files, lambda: checked.make("d.db/t"))
    removal = DirectoryRemoval(checked.catalog.store, files, checked.known, lambda tree: True, with_files=True)  # type: ignore[arg-type]
    assert [one.is_removed for one in removal.remove(found)] == [True]
    assert [path.name for path in checked.path("d.db").iterdir()] == ["t"]


def test_what_is_new_is_known_to_each_part_of_a_removal(checked: Checked) -> None:
    """A directory in use is not even moved for a moment, though the first part looked at the catalog after it."""
    checked.make("d.db/t", "d.db/u")
    first, second = sorted(checked.found(), key=lambda one: one.location)
    checked.table("u")
    assert [one.is_removed for one in checked.remove([first])] == [True]
    files = Interrupting(checked.catalog.files, lambda: pytest.fail("it was moved"))
    removal = DirectoryRemoval(checked.catalog.store, files, checked.known, lambda tree: True, with_files=True)  # type: ignore[arg-type]
    assert [one.kept for one in removal.remove([UnknownDirectory(second, Tree(0, 0, 0, 0))])] == ["it has a row by now"]


def test_a_file_in_between_keeps_the_directory(checked: Checked) -> None:
    checked.make("d.db/t")
    found = [UnknownDirectory(one, Tree(0, 0, 0, 0)) for one in checked.found()]
    files = Interrupting(checked.catalog.files, (checked.path(f"d.db/{ASIDE}t") / "file").touch)
    removal = DirectoryRemoval(checked.catalog.store, files, checked.known, lambda tree: True, with_files=False)  # type: ignore[arg-type]
    assert [one.kept for one in removal.remove(found)] == ["it was changed just now"]
    assert checked.path("d.db/t/file").exists()


def test_a_database_that_cannot_be_asked_takes_everything_back(checked: Checked) -> None:
    class Broken(KnownPlaces):
        def unknown_again(self, candidates: object) -> list[Candidate]:
            raise RuntimeError

    checked.make("t")
    found = checked.found()
    checked.known = Broken(checked.catalog.store, checked.catalog.files)
    with pytest.raises(RuntimeError):
        checked.remove(found)
    assert checked.path("t").is_dir()


def test_what_a_killed_removal_has_set_aside_is_put_back_first(checked: Checked) -> None:
    checked.table("t")
    checked.path("d.db/t").rename(checked.path(f"d.db/{ASIDE}t"))
    assert checked.names() == []
    assert "--remove puts it back" in checked.problems[0]
    checked.make(f"d.db/{ASIDE}u")
    assert checked.names(puts_back=True) == ["d.db/u"]
    assert checked.path("d.db/t").is_dir()


def test_roots_are_not_unknown(checked: Checked) -> None:
    """One below the other, for instance."""
    checked.make("d.db/root", "d.db/around/root", "d.db/t")
    below = [f"{checked.catalog.root}/d.db/{name}" for name in ("root", "around/root")]
    checked.catalog.files = Directories(roots=[checked.catalog.root, *below])
    checked.known = KnownPlaces(checked.catalog.store, checked.catalog.files)
    assert checked.names() == ["d.db/t"]
