"""New indexes that lack something, and names that are left out."""

from collections.abc import Iterator
from typing import Any

from hms_gateway.rpc.structs import Index, Table
from tests.comparison.objects import database, descriptor, table
from tests.comparison.servers import Step, call


def steps() -> Iterator[Step]:
    """The whole script. An index that Hive can never drop is not in it."""
    for name in ("sales", "away"):
        yield call("create_database", database(name))
    for name in ("flat", "plain"):
        yield call("create_table", table("sales", name))
    for index, made in (
        (_index(indexTableName=None), _made()),
        (_index(sd=None), _made()),
        (_index(sd=descriptor(serdeInfo=None)), _made()),
        (_index(indexTableName="other"), _made()),
        (_index(indexTableName=""), _made()),
        (_index(), table("away", "idx_table", tableType="INDEX_TABLE")),
        (_index(indexTableName="plain"), table("sales", "plain", tableType="INDEX_TABLE")),
        (_index(), None),
        (_index(indexTableName="plain"), None),
        (_index(), table("sales", None, tableType="INDEX_TABLE")),
    ):
        yield call("add_index", index, made)
        yield call("get_indexes", "sales", "flat", -1)
    for names in (("sales", "flat", None), ("sales", "nosuch", None), ("nosuch", "flat", None), (None, "flat", "idx")):
        yield call("get_index_by_name", *names)
        yield call("drop_index_by_name", *names, True)
    yield call("add_index", _index(indexHandlerClass=None), _made())
    yield call("drop_index_by_name", "sales", "flat", "idx", True)
    yield call("get_all_tables", "sales")
    yield call("get_all_tables", "away")


def _index(**fields: Any) -> Index:
    return Index(
        **{
            "indexName": "idx",
            "indexHandlerClass": "a.Handler",
            "dbName": "sales",
            "origTableName": "flat",
            "createTime": 0,
            "lastAccessTime": 0,
            "indexTableName": "idx_table",
            "sd": descriptor(),
            "parameters": {},
            "deferredRebuild": False,
            **fields,
        }
    )


def _made() -> Table:
    return table("sales", "idx_table", tableType="INDEX_TABLE")
