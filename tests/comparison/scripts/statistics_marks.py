"""The mark DO_NOT_UPDATE_STATS, of a table and of a call: where statistics stay, and where the mark does."""

from collections.abc import Iterator
from typing import Any

from hms_gateway.rpc.structs import EnvironmentContext, Table
from tests.comparison.objects import SOME_KEYS, database, partition, table, view
from tests.comparison.servers import Step, call

MARK = "DO_NOT_UPDATE_STATS"
KINDS = ("flat", "partitioned", "seen", "foreign")


def steps() -> Iterator[Step]:
    """The whole script."""
    yield call("create_database", database("sales"))
    for kind in KINDS:
        for value in ("true", "false", "TRUE"):
            yield from _table(kind, value)
    yield call("create_table", _made("flat", "renamed"))
    moved = _made("flat", "moved", parameters={MARK: "true"}, location="{warehouse}/sales.db/renamed")
    yield call("alter_table", "sales", "renamed", moved)
    yield call("get_table", "sales", "moved")
    yield from _partitions()


def _table(kind: str, value: str) -> Iterator[Step]:
    name = f"{kind}_{value}"
    yield call("create_table", _made(kind, name, parameters={MARK: value}))
    yield call("get_table", "sales", name)
    for environment in (None, "true", "TRUE"):
        altered = _made(kind, name, parameters={MARK: value}, location=f"{{warehouse}}/sales.db/{name}")
        context = None if environment is None else EnvironmentContext({MARK: environment})
        yield call("alter_table_with_environment_context", "sales", name, altered, context)
        yield call("get_table", "sales", name)


def _partitions() -> Iterator[Step]:
    yield call("create_table", _made("partitioned", "part"))
    yield call("add_partition", partition("sales", "part", ["a", "1"]))
    place = "{warehouse}/sales.db/part/ds=a/hr=1"
    for environment in ("true", "TRUE", "false"):
        altered = partition("sales", "part", ["a", "1"], location=place, parameters={MARK: "true"})
        context = EnvironmentContext({MARK: environment})
        yield call("alter_partition_with_environment_context", "sales", "part", altered, context)
        yield call("get_partition", "sales", "part", ["a", "1"])


def _made(kind: str, name: str, **fields: Any) -> Table:
    if kind == "seen":
        return view("sales", name, **{**fields, "location": None})
    if kind == "foreign":
        parameters = {"EXTERNAL": "TRUE", **fields.pop("parameters", {})}
        return table("sales", name, **{**fields, "tableType": "EXTERNAL_TABLE", "parameters": parameters})
    return table("sales", name, SOME_KEYS if kind == "partitioned" else (), **fields)
