"""Tables altered with several mistakes at once: which of them is reported."""

from collections.abc import Iterator
from typing import Any

from hms_gateway.rpc.structs import Table
from tests.comparison.objects import SOME_KEYS, database, descriptor, table
from tests.comparison.servers import Step, call

TRANSACTIONAL = {"transactional": "true"}


def steps() -> Iterator[Step]:
    """The whole script. Nothing is altered by it."""
    yield call("create_database", database("sales"))
    yield call("create_table", table("sales", "t"))
    yield call("create_table", table("sales", "taken"))
    for mistaken in _mistaken():
        mistaken.parameters = TRANSACTIONAL
        yield call("alter_table", "sales", "t", mistaken)
        yield call("alter_table", "sales", "nosuch", mistaken)
    for names in ((None, "t"), ("sales", None)):
        yield call("alter_table", *names, table("sales", "a b"))
    for mistaken in (table("sales", "a b", keys=SOME_KEYS), table("sales", "taken", pairs=(("a", "nonsense"),))):
        yield call("alter_table", "sales", "t", mistaken)
    yield call("get_all_tables", "sales")


def _mistaken() -> Iterator[Table]:
    sales: tuple[Any, ...] = ("sales", "t")
    yield table(*sales)
    yield table(None, None)
    yield table("sales", None)
    yield table("sales", "a b")
    yield table("sales", "taken")
    yield table("nosuch", "t")
    yield table(*sales, keys=SOME_KEYS)
    yield table(*sales, pairs=(("a", "nonsense"),))
    yield table(*sales, sd=descriptor(cols=None))
    yield table(*sales, sd=descriptor(serdeInfo=None))
