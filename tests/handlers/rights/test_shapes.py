"""All methods with arguments of all shapes: what changes in the database is what the caller may change, and no more.

Covered: each value of each argument absent, empty, unknown, of every kind of its enumeration and every branch of its
union, alone and beside another element, and many values at once; of users without any right, with one right on one
table, with a grant option, and with a database of their own. After each call that commits something, the rows of the
database are compared with those before, in the very unit of work, which is then undone.
Not covered: what is read (`test_as_if_missing` compares the answers for the same shapes), directories (no files are
managed here), and what takes several calls: the random histories of `test_oracle` do, with arguments of one shape.
A sample of each method's shapes is tried, one at a time and as many random ones.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import Database, HiveObjectType, OpenTxnRequest, PrincipalType
from hms_gateway.runtime.settings import Settings
from tests.handlers.bad_catalog import fill
from tests.handlers.rights.privileges import bag
from tests.handlers.rights.rows import About, Change, Rows, read_rows
from tests.handlers.rights.shapes import every_kind, every_shape, random_shape
from tests.handlers.rights.test_as_if_missing import ask
from tests.handlers.test_bad_input import METHOD_AND_DIALECT, Undone
from tests.support.catalog import columns, new_table, place_empty_database
from tests.support.sample import sample

pytestmark = pytest.mark.slow

EACH = sample(3, of=None)
# So many times as many with other kinds of objects, which few methods have.
KINDS = 10
# Of one user's own: no object of the catalog is in them but by its name.
OF_USERS = {"txns", "locks", "leases", "lease_waiters", "txn_components", "completed_txn_components", "write_sets"}
T = About("default", "t")


class Shaken:
    """A catalog in which nothing lasts, and the rows that the last call changed."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.changes: list[Change] = []
        self._before: Rows | None = None
        write = metastore.store._writer.write

        def undone(work: Callable[[Any], Any]) -> Any:
            given: list[Any] = []

            def attempt(transaction: Any) -> None:
                if self._before is None:
                    self._before = read_rows(transaction._connection)
                given[:] = [work(transaction)]
                self.changes += self._before.changes(read_rows(transaction._connection))
                raise Undone

            try:
                return write(attempt)
            except Undone:
                return given[0]

        metastore.store._writer.write = undone  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaken]:
    folder: Path = tmp_path_factory.mktemp("shapes")
    place_empty_database(folder / DATABASE_FILE)
    settings = Settings(
        data_dir=folder, file_systems={"file": "ignore"}, administrators=["ann"], authorization="grants"
    )
    metastore = build_metastore(settings)
    fill(metastore)
    given = new_table("other", keys=columns("ds string"), location="file:/warehouse/own.db/other")
    own = msgspec.structs.replace(given, dbName="own", owner="dana")
    prepared = (
        ("alter_database", "default", Database(name="default", ownerName="ann", ownerType=PrincipalType.USER)),
        ("create_database", Database("own", None, "file:/warehouse/own.db", ownerName="dana")),
        ("create_table", own),
        ("get_metastore_db_uuid",),
        ("grant_privileges", bag("ALTER", "default.t", "dana", PrincipalType.USER)),
        ("grant_privileges", bag("SELECT", "default.t", "eve", PrincipalType.USER, option=True)),
    )
    for name, *values in prepared:
        assert ask(metastore, "ann", name, *values)[0] == "ok"
    for user in MAY:
        assert ask(metastore, user, "open_txns", OpenTxnRequest(1, user, "host"))[0] == "ok"
    yield Shaken(metastore)
    metastore.store.close()


def _cases() -> Iterator[Any]:
    """In a sample one user of each method, in turns."""
    for place, (name, dialect) in enumerate(METHOD_AND_DIALECT):
        for number, user in enumerate(("mallory", "eve", "dana")):
            marks = [pytest.mark.whole] if (place + number) % 3 else []
            yield pytest.param(name, dialect, user, marks=marks, id=f"{name}-{dialect.value}-{user}")


@pytest.mark.parametrize(("name", "dialect", "user"), list(_cases()))
def test_a_call_changes_what_the_caller_may(shaken: Shaken, name: str, dialect: Dialect, user: str) -> None:
    for values in chosen(name, dialect):
        shaken.changes.clear()
        outcome, _ = ask(shaken.metastore, user, name, *values, dialect=dialect)
        assert outcome != "INTERNAL_ERROR", values
        wrong = [change for change in shaken.changes if not MAY[user](change)]
        assert not wrong, values


def chosen(name: str, dialect: Dialect) -> Iterator[list[Any]]:
    method, source = methods_of(dialect)[name], random.Random(name)
    every, kinds = list(every_shape(method)), list(every_kind(method))
    each = EACH or len(every)
    yield from source.sample(every, min(each, len(every)))
    yield from source.sample(kinds, min(KINDS * each, len(kinds)))
    for _ in range(each):
        yield random_shape(method, source)


def _is_of_user(user: str, change: Change) -> bool:
    return change.kind in OF_USERS and all(about.user in ("", user) for about in change.about)


def _mallory(change: Change) -> bool:
    """No right on anything: transactions of its own."""
    return _is_of_user("mallory", change)


def _eve(change: Change) -> bool:
    """`select` on a table, which may be granted on, and taken away where eve has granted it."""
    if change.kind == "privileges":
        rows = [row for row in (change.before, change.after) if row is not None]
        return all(row["grantor_name"] == "eve" and row["privilege"].lower() == "select" for row in rows) and all(
            (about.database, about.table) == T[:2] for about in change.about
        )
    return _is_of_user("eve", change)


def _dana(change: Change) -> bool:
    """All of a database, and `alter` on a table of another one, which stays there and its owner's."""
    if {about.database for about in change.about} == {"own"}:
        return True
    if not all((about.database, about.table) == T[:2] for about in change.about):
        return _is_of_user("dana", change)
    if change.kind in ("tables", "partitions"):
        stays = ("database_id", "name", "owner") if change.kind == "tables" else ("table_id",)
        return (
            change.before is not None
            and change.after is not None
            and all(change.before[name] == change.after[name] for name in stays)
        )
    if change.kind in ("table_statistics", "partition_statistics"):
        return change.after is None
    return change.kind in ALTERED | OF_USERS


ALTERED = {
    *("descriptors", "constraints", "table_indexes", "further_keys", "compactions", "view_sources"),
    "materialization_rebuilds",
}
MAY: dict[str, Callable[[Change], bool]] = {"mallory": _mallory, "eve": _eve, "dana": _dana}


def test_the_shapes_have_what_opened_the_catalog_once() -> None:
    """A grant on everything, by a user who may grant nothing."""
    kinds = {
        entry.hiveObject.objectType
        for values in every_kind(methods_of(Dialect.HIVE_2_3)["grant_privileges"])
        for entry in (values[0].privileges or () if values[0] is not None else ())
        if entry.hiveObject is not None
    }
    assert kinds >= {None, 0, *HiveObjectType}


@pytest.mark.parametrize("user", MAY)
def test_the_rows_of_others_are_told_apart(shaken: Shaken, user: str) -> None:
    """The check itself: what an administrator changes is not what any of them may."""
    shaken.changes.clear()
    ask(shaken.metastore, "ann", "grant_privileges", bag("ALL", "", user, PrincipalType.USER))
    ask(shaken.metastore, "ann", "drop_table", "default", "t", False)
    assert {change.kind for change in shaken.changes} >= {"privileges", "tables", "partitions"}
    assert len([change for change in shaken.changes if not MAY[user](change)]) >= 3


def test_every_shape_is_sampled_from() -> None:
    assert all(list(itertools.islice(chosen(name, dialect), 1)) for name, dialect in METHOD_AND_DIALECT)
