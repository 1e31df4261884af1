"""Expressions as Hive's compiler sends them and the partitions Hive selects (hive_expressions/HiveExpressions.java)."""

import gzip
from base64 import b64decode
from pathlib import Path
from typing import NamedTuple

from hms_gateway.metastore.vocabulary.partition_names import parse_name

KEYS = (
    ("ds", "string"), ("hr", "int"), ("n", "bigint"), ("d", "date"), ("m", "decimal(10,2)"), ("x", "double"),
    ("v", "varchar(10)"),
)  # fmt: skip
_FOLDER = Path(__file__).with_name("hive_expressions")
PARTITIONS = (_FOLDER / "partitions.txt").read_text().splitlines()
VALUES = [parse_name([name for name, _ in KEYS], partition) for partition in PARTITIONS]


class Recorded(NamedTuple):
    """`is_unsure` is Hive's flag that some of the selected partitions may not match."""

    sql: str
    data: bytes
    is_unsure: bool
    selected: list[int]


def recorded() -> list[Recorded]:
    lines = gzip.decompress((_FOLDER / "recorded.tsv.gz").read_bytes()).decode().splitlines()
    return [
        Recorded(sql, b64decode(data), unsure == "true", [int(number) for number in selected.split()])
        for sql, data, unsure, selected in (line.split("\t") for line in lines)
    ]
