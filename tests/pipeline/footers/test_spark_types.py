"""Spark reads Parquet files of two types as the type that holds both, and refuses what footers call unread."""

import itertools
from datetime import date, datetime
from decimal import Decimal

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow
import pyarrow.parquet
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from hms_gateway.pipeline.footers.footer import TypesConflict, widened

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VALUES = {
    "boolean": pyarrow.array([True]),
    "tinyint": pyarrow.array([1], pyarrow.int8()),
    "smallint": pyarrow.array([1], pyarrow.int16()),
    "int": pyarrow.array([1], pyarrow.int32()),
    "bigint": pyarrow.array([1], pyarrow.int64()),
    "float": pyarrow.array([1.0], pyarrow.float32()),
    "double": pyarrow.array([1.0]),
    "decimal(5,2)": pyarrow.array([Decimal(1)], pyarrow.decimal128(5, 2)),
    "decimal(30,4)": pyarrow.array([Decimal(1)], pyarrow.decimal128(30, 4)),
    "string": pyarrow.array(["1"]),
    "date": pyarrow.array([date(2024, 1, 1)]),
    "timestamp": pyarrow.array([datetime(2024, 1, 1)], pyarrow.timestamp("us")),
    "array<int>": pyarrow.array([[1]], pyarrow.list_(pyarrow.int32())),
    "array<bigint>": pyarrow.array([[1]], pyarrow.list_(pyarrow.int64())),
    "struct<x:int>": pyarrow.array([{"x": 1}], pyarrow.struct([("x", pyarrow.int32())])),
    "struct<x:double>": pyarrow.array([{"x": 1.0}], pyarrow.struct([("x", pyarrow.float64())])),
}


def read(spark, folder, schema, **columns):
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "file.parquet")
    [row] = spark.read.schema(schema).parquet(str(folder)).collect()
    return row


def test_spark_reads_both_as_the_wider_type(spark, tmp_path):
    columns, schema = {}, []
    for one, other in itertools.product(VALUES, repeat=2):
        try:
            schema.append(f"c{len(columns)} {widened(one, other)}")
        except TypesConflict:
            continue
        columns[f"c{len(columns)}"] = VALUES[one]
    row = read(spark, tmp_path, ", ".join(schema), **columns)
    assert len(row) == len(columns) > 2 * len(VALUES)
    assert None not in row


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ("string", VALUES["int"]),
        ("double", VALUES["bigint"]),
        ("timestamp", VALUES["date"]),
        ("timestamp", VALUES["timestamp"].cast(pyarrow.timestamp("ns"))),
        ("float", VALUES["float"].cast(pyarrow.float16())),
    ],
)
def test_spark_refuses_the_others(spark, tmp_path, table, file):
    with pytest.raises((PySparkException, Py4JJavaError), match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        read(spark, tmp_path, f"c {table}", c=file)


def test_spark_refuses_names_that_differ_in_case_only(spark, tmp_path):
    with pytest.raises((PySparkException, Py4JJavaError), match="duplicate"):
        read(spark, tmp_path, "a int", a=VALUES["int"], A=VALUES["int"])
