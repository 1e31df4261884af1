"""Databases: create, read, change, drop, and names of every kind."""

from collections.abc import Iterator

from tests.comparison.objects import database, table
from tests.comparison.scripts.names import ODD_NAMES, PATTERNS
from tests.comparison.servers import Step, call


def steps() -> Iterator[Step]:
    yield from _create()
    yield from _read()
    yield from _change()
    yield from _drop()


def _create() -> Iterator[Step]:
    yield call("create_database", database("sales", description="what was sold"))
    yield call("create_database", database("HR", parameters={"k": "v", "empty": ""}, ownerName="bob", ownerType=2))
    yield call("create_database", database("s_les", locationUri="{elsewhere}//a/b/"))
    yield call("create_database", database("plain", locationUri="{elsewhere path}/plain"))
    for name in ("sales", "SALES", "hr", "default"):
        yield call("create_database", database(name))
    for name in ODD_NAMES:
        yield call("create_database", database(name))
    yield call("create_database", None)
    for location in ("", "file:relative", "nosuchscheme://host/a"):
        yield call("create_database", database("placed", locationUri=location))
    yield call("get_all_databases")


def _read() -> Iterator[Step]:
    for name in ("sales", "SALES", " sales ", "hr", "s_les", "plain", "default", "DEFAULT", "missing", *ODD_NAMES):
        yield call("get_database", name)
    yield call("get_database", None)
    for pattern in (*PATTERNS, "sales|hr", "S*", "s.les", "s_les", "h_"):
        yield call("get_databases", pattern)
    yield call("get_databases", None)


def _change() -> Iterator[Step]:
    changed = database("ignored", description="ignored", locationUri="{elsewhere}/x", parameters={"k2": "v2"})
    yield call("alter_database", "hr", changed)
    yield call("get_database", "hr")
    yield call("alter_database", "HR", database("hr", parameters={}, ownerName="role", ownerType=3))
    yield call("get_database", "hr")
    yield call("alter_database", "hr", database("hr"))
    yield call("get_database", "hr")
    yield call("alter_database", "missing", database("missing"))
    yield call("alter_database", "hr", None)


def _drop() -> Iterator[Step]:
    yield call("create_table", table("sales", "orders"))
    yield call("drop_database", "sales", True, False)
    yield call("drop_database", "SALES", True, True)
    yield call("get_database", "sales")
    for name in ("default", "Default", "missing", "", " hr "):
        yield call("drop_database", name, True, True)
    yield call("drop_database", None, True, True)
    yield call("drop_database", "s_les", False, False)
    yield call("create_database", database("s_les"))
    yield call("get_all_databases")
