"""Parameters the metastore itself reads and writes: DDL time, basic statistics, compare-and-set.

Parameters are dictionaries of text; every function returns a new one. Environment contexts are such dictionaries too.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.table_types import is_transactional, is_view

DDL_TIME: Final = "transient_lastDdlTime"
FILE_COUNT: Final = "numFiles"
TOTAL_BYTES: Final = "totalSize"
FAST_STATISTICS: Final = (FILE_COUNT, TOTAL_BYTES)
ROW_COUNT: Final = "numRows"
RAW_BYTES: Final = "rawDataSize"
# Spark's own counts: its prefix before the names of Hive.
SPARK: Final = "spark.sql.statistics."
COLUMN_STATS_ACCURATE: Final = "COLUMN_STATS_ACCURATE"

# Partitions of one call mostly say the same.
_ACCURACIES_KEPT: Final = 8

# Keys of environment contexts.
DO_NOT_UPDATE_STATS: Final = "DO_NOT_UPDATE_STATS"
STATS_GENERATED: Final = "STATS_GENERATED"
STATS_GENERATED_BY_TASK: Final = "TASK"
STATS_GENERATED_BY_USER: Final = "USER"
CASCADE: Final = "CASCADE"
EXPECTED_KEY: Final = "expected_parameter_key"
UNCHANGED_SINCE: Final = "hms.unchanged.since"
EXPECTED_VALUE: Final = "expected_parameter_value"

_BASIC_STATS: Final = "BASIC_STATS"
_COLUMN_STATS: Final = "COLUMN_STATS"


class ParameterConflict(ValueError):
    """A compare-and-set found another value; the text is that of the MetaException clients see."""


def says_true(parameters: Mapping[str, str] | None, key: str) -> bool:
    """Whether a parameter or environment property is `true`, in any case."""
    return (parameters or {}).get(key, "").lower() == "true"


def with_ddl_time(parameters: Mapping[str, str], now_seconds: int) -> dict[str, str]:
    """With the DDL time set unless it was given (create, alter_table, add_partition; semantics §2.7 item 2)."""
    return {**parameters, DDL_TIME: parameters.get(DDL_TIME, str(now_seconds))}


def with_partition_ddl_time(parameters: Mapping[str, str], now_seconds: int) -> dict[str, str]:
    """With the DDL time set where it is absent or `0` (alter_partition; semantics §2.11).

    Raises ValueError with Java's text when the given time is not a number.
    """
    given = parameters.get(DDL_TIME, "0")
    if not given.removeprefix("-").isascii() or not given.removeprefix("-").isdigit():
        raise ValueError(f'java.lang.NumberFormatException: For input string: "{given}"')
    return {**parameters, DDL_TIME: str(now_seconds) if given == "0" else given}


def with_new_ddl_time(parameters: Mapping[str, str], now_seconds: int) -> dict[str, str]:
    """With the DDL time set whatever was there (append_partition; semantics §2.8)."""
    return {**parameters, DDL_TIME: str(now_seconds)}


def without_nulls(parameters: Mapping[str, str | None] | None) -> dict[str, str]:
    """Without entries that have no value: they would be gone on the next read anyway (semantics §3.3)."""
    return {key: value for key, value in (parameters or {}).items() if value is not None}


def check_expected(parameters: Mapping[str, str], key: str, expected: str) -> None:
    """Compare-and-set of alter_table (semantics §2.7 item 12). Raises ParameterConflict."""
    if parameters.get(key) == expected:
        return
    raise ParameterConflict(
        f"The table has been modified. The parameter value for key '{key}' is '{parameters.get(key, 'null')}'."
        f" The expected was value was '{expected}'"
    )


class StatisticsAccuracy(msgspec.Struct, frozen=True):
    """What COLUMN_STATS_ACCURATE says: whether the basic statistics are right, and those of which columns."""

    basic: bool = False
    columns: tuple[str, ...] = ()


@lru_cache(_ACCURACIES_KEPT)
def parse_accuracy(text: str | None) -> StatisticsAccuracy:
    """Read COLUMN_STATS_ACCURATE: JSON, or the `true` of old versions; anything else says nothing (semantics §3.6)."""
    if text is None:
        return StatisticsAccuracy()
    if text.lower() == "true":
        return StatisticsAccuracy(basic=True)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return StatisticsAccuracy()
    if not isinstance(parsed, dict):
        return StatisticsAccuracy()
    columns = parsed.get(_COLUMN_STATS)
    accurate = (name for name, value in columns.items() if _is_json_true(value)) if isinstance(columns, dict) else ()
    return StatisticsAccuracy(_is_json_true(parsed.get(_BASIC_STATS)), tuple(accurate))


@lru_cache(_ACCURACIES_KEPT)
def render_accuracy(accuracy: StatisticsAccuracy) -> str | None:
    """Write COLUMN_STATS_ACCURATE, or None when there is nothing to say."""
    sections: dict[str, object] = {}
    if accuracy.basic:
        sections[_BASIC_STATS] = "true"
    if accuracy.columns:
        sections[_COLUMN_STATS] = dict.fromkeys(sorted(accuracy.columns), "true")
    return json.dumps(sections, ensure_ascii=False, separators=(",", ":")) if sections else None


def with_accurate_columns(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """After column statistics were stored: their columns are accurate, too (semantics §3.6)."""
    accuracy = parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE))
    merged = tuple(dict.fromkeys([*accuracy.columns, *columns]))
    return _with_accuracy(parameters, msgspec.structs.replace(accuracy, columns=merged))


def without_accurate_columns(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """After column statistics were dropped with their columns (semantics §2.7 item 10)."""
    accuracy = parse_accuracy(parameters.get(COLUMN_STATS_ACCURATE))
    lost = set(columns)
    kept = tuple(name for name in accuracy.columns if name not in lost)
    if kept == accuracy.columns:
        return dict(parameters)
    return _with_accuracy(parameters, msgspec.structs.replace(accuracy, columns=kept))


def written_under(parameters: Mapping[str, str], sent: int | None, before: int | None = None) -> int | None:
    """The write id that a table or a partition keeps: the one sent, or else that of before.

    `parameters` are the table's; only transactional ones have write ids. Clients send -1 for none.
    """
    if not is_transactional(parameters):
        return None
    return sent if sent is not None and sent > 0 else before


def without_accuracy(parameters: Mapping[str, str]) -> dict[str, str]:
    """Nothing is known to be accurate."""
    return _with_accuracy(parameters, StatisticsAccuracy())


def with_fast_statistics(
    parameters: Mapping[str, str], file_count: int, total_bytes: int, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """After the files were counted.

    Statistics generated by a task are accurate; after any other recount nothing is known to be (semantics §3.6).
    """
    counted = {**parameters, FILE_COUNT: str(file_count), TOTAL_BYTES: str(total_bytes)}
    if (environment or {}).get(STATS_GENERATED) == STATS_GENERATED_BY_TASK:
        return _with_accuracy(
            counted, msgspec.structs.replace(parse_accuracy(counted.get(COLUMN_STATS_ACCURATE)), basic=True)
        )
    return without_accuracy(counted)


def take_do_not_update(parameters: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The parameters without DO_NOT_UPDATE_STATS, which is consumed, and whether it said true (semantics §3.6)."""
    kept = {key: value for key, value in parameters.items() if key != DO_NOT_UPDATE_STATS}
    return kept, says_true(parameters, DO_NOT_UPDATE_STATS)


def create_counts_files(
    table_type: str | None, parameters: Mapping[str, str], *, is_partitioned: bool, directory_existed: bool
) -> bool:
    """Whether create_table counts the files: only of an unpartitioned table over a directory that was there before."""
    has_both = all(key in parameters for key in FAST_STATISTICS)
    return not is_view(table_type) and not is_partitioned and directory_existed and not has_both


def add_partition_counts_files(table_type: str | None, environment: Mapping[str, str] | None) -> bool:
    """Tells if adding or appending a partition counts the files of a directory that was there (semantics §3.6)."""
    return not is_view(table_type) and not says_true(environment, DO_NOT_UPDATE_STATS)


def alter_table_counts_files(
    table_type: str | None, environment: Mapping[str, str] | None, *, is_partitioned: bool
) -> bool:
    """Whether alter_table counts the files: of every unpartitioned table, unless asked not to (semantics §3.6)."""
    return not is_view(table_type) and not is_partitioned and not _keeps_statistics(environment)


def alter_partition_counts_files(
    table_type: str | None,
    old_parameters: Mapping[str, str],
    new_parameters: Mapping[str, str],
    environment: Mapping[str, str] | None,
) -> bool:
    """Whether alter_partition counts the files: unless the statistics sent are the stored ones (semantics §3.6)."""
    if is_view(table_type) or _keeps_statistics(environment):
        return False
    if (environment or {}).get(STATS_GENERATED) in (STATS_GENERATED_BY_TASK, STATS_GENERATED_BY_USER):
        return True
    return any(key not in new_parameters or new_parameters[key] != old_parameters.get(key) for key in FAST_STATISTICS)


def _keeps_statistics(environment: Mapping[str, str] | None) -> bool:
    """Altering compares the property with `true`, exactly."""
    return (environment or {}).get(DO_NOT_UPDATE_STATS) == "true"


def _with_accuracy(parameters: Mapping[str, str], accuracy: StatisticsAccuracy) -> dict[str, str]:
    text = render_accuracy(accuracy)
    kept = {key: value for key, value in parameters.items() if key != COLUMN_STATS_ACCURATE}
    return kept if text is None else {**kept, COLUMN_STATS_ACCURATE: text}


def _is_json_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")
