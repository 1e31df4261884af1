"""Statistics of the data itself: exact ones for all columns, distinct values as sketches that merge."""

import random

import pytest

from hms_gateway.pipeline.stats.job import StatsArguments, stats
from tests.pipeline.footers.content import HIVE
from tests.pipeline.stats.content import fill_partitioned
from tests.pipeline.stats.oracles import by_arrow, plain
from tests.pipeline.stats.test_footers import only, statistics_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(("kind", "without"), [("parquet", ("exact",)), ("orc", ("exact", "moment", "day"))])
def test_every_column_has_the_statistics_of_its_data(spark, gateway, options, tmp_path, kind, without):
    """Spark does not read nanoseconds of Parquet, and other times than what C++ wrote in ORC before 1970."""
    table = f"full_{kind}"
    with gateway.client() as client:
        data = fill_partitioned(client, table, kind, tmp_path / "odd {name} %41 é#?", random.Random(5), without)
    result = stats(only(options, table), StatsArguments(is_full=True), spark=spark)
    print(result.as_json())
    found = statistics_of(gateway, table, data)
    for name, rows in data.items():
        for column in set(HIVE) - set(without):
            assert plain(column, found[name][column]) == by_arrow(column, rows[column]), (name, column)
    assert result.coverage.columns_after == len(data) * (len(HIVE) - len(without))
