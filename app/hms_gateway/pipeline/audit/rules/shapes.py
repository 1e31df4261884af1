"""What the name of a directory says: hidden, left over by an engine, a part of a partition's name."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME, make_name, unescape
from hms_gateway.pipeline.audit.rules.values import Key

# Where engines put what is not yet, or no longer, data: Hadoop's committers, Hive, Spark, Impala, distcp.
_LEFTOVER: Final = re.compile(
    r"_temporary|_temporary_.*|_tmp\..*|_task_tmp\..*|\.hive-staging.*|\.spark-staging.*|_impala_insert_staging"
    r"|\.distcp\.tmp\..*|-ext-[0-9]+|_hive_tmp.*|\.hive-staging_hive.*|__magic.*|_scratchdir.*"
)
# Where Hive puts the branches of a UNION ALL, and the values of a skewed column, inside of a table or partition.
_BRANCH: Final = re.compile(r"HIVE_UNION_SUBDIR_[0-9]+|HIVE_DEFAULT_LIST_BUCKETING_DIR_NAME|[0-9]+")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BITS: Final = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def is_hidden(name: str) -> bool:
    """Whether engines take no notice of a directory: `_a=1` is a partition all the same."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_leftover(name: str) -> bool:
    """Whether an engine has made it for work in progress and should have removed it."""
    return _LEFTOVER.fullmatch(name) is not None


def is_branch(name: str) -> bool:
    """Whether it is a part of a table or partition that Hive makes by itself."""
    return _BRANCH.fullmatch(name) is not None


def leftover_in(path: Sequence[str]) -> int | None:
    """How many names of a path lead to the first leftover in it."""
    return next((number for number, name in enumerate(path, 1) if is_leftover(name)), None)


def spec_of(path: Sequence[str]) -> list[tuple[str, str]] | None:
    """Keys, in lower case, and values of `key=value` names; None where one of them is something else."""
    found = [name.partition("=") for name in path]
    if not all(head and mark and rest for head, mark, rest in found):
        return None
    return [(unescape(head).lower(), unescape(rest)) for head, _, rest in found]


def is_written_well(value: str, type: str) -> bool:
    """Whether the value of a key reads back as it is written: `01` is the same int as `1`, and `x` is none."""
    if value == DEFAULT_PARTITION_NAME:
        return True
    if type == "date":
        return _is_date(value)
    if type not in _BITS:
        return True
    found = _INTEGER.fullmatch(value)
    return found is not None and value != "-0" and -(1 << _BITS[type]) <= int(value) < 1 << _BITS[type]


def partition_name(keys: Sequence[Key], values: Sequence[str]) -> str:
    """The name of the partition with these values."""
    return make_name([key.name for key in keys], values)


def _is_date(value: str) -> bool:
    try:
        return _DATE.fullmatch(value) is not None and date.fromisoformat(value) is not None
    except ValueError:
        return False
