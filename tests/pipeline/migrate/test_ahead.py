"""Reading ahead in a thread."""

import itertools
import threading

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.migrate.steps import ahead, tables_of
from hms_gateway.rpc.structs import MetaException, Table


def test_everything_comes_in_order():
    assert list(ahead(lambda: iter(range(100)))) == list(range(100))


def test_it_is_made_in_another_thread_and_not_far_ahead():
    made, threads = [], set()

    def produce():
        for number in itertools.count():
            threads.add(threading.current_thread())
            made.append(number)
            yield number

    values = ahead(produce)
    assert [next(values) for _ in range(3)] == [0, 1, 2]
    values.close()
    assert len(made) <= 3 + 2 + 2
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


def test_an_error_comes_where_it_was_made():
    def produce():
        yield 1
        raise MetaException("broken")

    values = ahead(produce)
    assert next(values) == 1
    with pytest.raises(MetaException, match="broken"):
        next(values)


class BrokenTable:
    """A reader of a metastore that cannot show one table, nor others together with it."""

    def tables(self, database, names):
        if "bad" in names:
            raise MetaException("no such serde")
        return {name: Table(tableName=name, dbName=database) for name in names if name != "gone"}


def test_a_table_that_cannot_be_read_does_not_hide_others():
    rows = [{"database": "d", "table": name} for name in ("one", "bad", "gone", "two")]
    found = tables_of(BrokenTable(), [*rows, {"database": "e", "table": "three"}])
    assert isinstance(found.pop(("d", "bad")), MetaException)
    assert {name: table.tableName for name, table in found.items()} == {
        ("d", "one"): "one",
        ("d", "two"): "two",
        ("e", "three"): "three",
    }
