"""Columns of the files: the key of an object, all of it as JSON, and what the data source shows of its kind."""

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final

from pyspark.sql.types import StructField, StructType

from hms_gateway.pipeline.snapshot.objects import KEYS
from hms_gateway.pipeline.source.columns import TEXT, Column
from hms_gateway.pipeline.source.objects import COLUMNS

# `kind` is the name of the folder.
_OWN: Final = (*KEYS[1:], "object")


@cache
def columns_of(kind: str) -> Mapping[str, Column]:
    """Of a kind of objects; its rows are `ObjectRow`s."""
    own = {name: Column(TEXT, attrgetter(name)) for name in _OWN}
    shown = {name: _of_said(column) for name, column in COLUMNS.get(kind, {}).items() if name not in own}
    return {**own, **shown}


def schema_of(kind: str) -> StructType:
    return StructType([StructField(name, column.type) for name, column in columns_of(kind).items()])


def _of_said(column: Column) -> Column:
    get = column.get

    def of_said(row: Any) -> Any:
        return get(row.said)

    return Column(column.type, of_said)
