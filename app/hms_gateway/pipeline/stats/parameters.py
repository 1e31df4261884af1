"""The parameters of tables and partitions that say how much is in them, as Hive and as Spark know them."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.parameters import (
    COLUMN_STATS_ACCURATE,
    FILE_COUNT,
    RAW_BYTES,
    ROW_COUNT,
    SPARK,
    TOTAL_BYTES,
    StatisticsAccuracy,
    parse_accuracy,
    render_accuracy,
)

# When statistics were taken, and of what: how, and a digest of files and columns.
TAKEN_AT: Final = "hms.stats.at"
TAKEN_OF: Final = "hms.stats.of"
SPARK_COLUMNS: Final = f"{SPARK}colStats."
_SPARK_SCHEMA: Final = "spark.sql.sources.schema"
_OURS: Final = (FILE_COUNT, TOTAL_BYTES, ROW_COUNT, RAW_BYTES, COLUMN_STATS_ACCURATE, TAKEN_AT, TAKEN_OF)


class Amounts(msgspec.Struct, frozen=True):
    """How much there is; None is: not known."""

    files: int
    byte_count: int
    rows: int | None
    raw: int | None


def with_amounts(
    before: Mapping[str, str], amounts: Amounts, columns: Iterable[str], at_seconds: int, of: str
) -> dict[str, str]:
    """The parameters of a partition, or of a table without partitions, after its statistics were taken."""
    kept = {name: value for name, value in before.items() if name not in _OURS and not name.startswith(SPARK)}
    kept |= {FILE_COUNT: str(amounts.files), TOTAL_BYTES: str(amounts.byte_count)}
    if amounts.rows is not None:
        kept[ROW_COUNT] = str(amounts.rows)
    if amounts.raw is not None:
        kept[RAW_BYTES] = str(amounts.raw)
    accuracy = render_accuracy(StatisticsAccuracy(amounts.rows is not None, tuple(columns)))
    if accuracy is not None:
        kept[COLUMN_STATS_ACCURATE] = accuracy
    return kept | spark_amounts(amounts) | {TAKEN_AT: str(at_seconds), TAKEN_OF: of}


def spark_amounts(amounts: Amounts) -> dict[str, str]:
    """Spark's own, of a table or partition."""
    found = {f"{SPARK}totalSize": str(amounts.byte_count)}
    return found if amounts.rows is None else found | {f"{SPARK}numRows": str(amounts.rows)}


def spark_columns(columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Spark's properties of columns, by the names that Spark has for them."""
    return {f"{SPARK_COLUMNS}{name}.{key}": value for name, found in columns.items() for key, value in found.items()}


def without_spark(before: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in before.items() if not name.startswith(SPARK)}


def spark_names(parameters: Mapping[str, str]) -> dict[str, str]:
    """How Spark writes the names of columns, which Hive has in lower case; empty where Spark did not make the table."""
    text = parameters.get(_SPARK_SCHEMA) or "".join(
        parameters.get(f"{_SPARK_SCHEMA}.part.{part}", "")
        for part in range(_whole(parameters.get(f"{_SPARK_SCHEMA}.numParts")))
    )
    try:
        fields = json.loads(text)["fields"] if text else []
        return {str(field["name"]).lower(): str(field["name"]) for field in fields}
    except (ValueError, TypeError, KeyError):
        return {}


def covered(parameters: Mapping[str, str], columns: Iterable[str]) -> tuple[bool, int]:
    """Whether the number of rows is known, and of how many columns there are statistics that hold."""
    accurate = set(parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE)).columns)
    return parameters.get(ROW_COUNT, "-1").isdecimal(), sum(column in accurate for column in columns)


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 6 else 0
