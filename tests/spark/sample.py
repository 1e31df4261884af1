"""The scenarios as parameters of tests: one of each kind is in the sample of `make test`."""

import pytest

from tests.spark.scenarios import SCENARIOS

# The same statements in another format, or with keys of another type.
ALIKE = frozenset({
    "partitioned_parquet_string", "partitioned_parquet_date", "partitioned_orc_string", "partitioned_orc_int",
    "partitioned_orc_date", "partitioned_text_string", "partitioned_text_int", "unpartitioned_parquet",
    "unpartitioned_orc", "filters_parquet", "filters_text", "special_characters_parquet", "special_characters_text",
    "concurrent_inserts_orc", "concurrent_inserts_text", "many_partitions_orc", "many_partitions_text",
    "partitioned_text_date", "external_parquet", "external_orc", "odd_keys_parquet", "odd_keys_text",
    "column_types_orc", "column_types_text", "many_partitions_parquet", "unpartitioned_text", "special_characters_orc",
})  # fmt: skip
SAMPLE = [pytest.param(name, marks=[pytest.mark.whole] if name in ALIKE else []) for name in SCENARIOS]
