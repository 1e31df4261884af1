"""The scenarios of a run: a sample, with HMS_TESTS_LIVE=all every one."""

import os

from tests.spark.scenarios import SCENARIOS

ALL = os.environ.get("HMS_TESTS_LIVE") == "all"
# The same statements in another format, or with keys of another type: one of each kind is a sample.
LONG_RUN_ONLY = frozenset({
    "partitioned_parquet_string", "partitioned_parquet_date", "partitioned_orc_string", "partitioned_orc_int",
    "partitioned_orc_date", "partitioned_text_string", "partitioned_text_int", "unpartitioned_parquet",
    "unpartitioned_orc", "filters_parquet", "filters_text", "special_characters_parquet", "special_characters_text",
    "concurrent_inserts_orc", "concurrent_inserts_text", "many_partitions_orc", "many_partitions_text",
})  # fmt: skip
SAMPLE = tuple(name for name in SCENARIOS if ALL or name not in LONG_RUN_ONLY)
