"""What is new, what may be gone, and which directories have the same value, by joins in Spark."""

from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

KEY: Final = ["database", "table", "name"]
_SAME: Final = ["database", "table", "same"]
_REGISTERED, _CANONICAL, _OTHER = 0, 1, 2


def new(found: DataFrame, registered: DataFrame) -> DataFrame:
    """The partitions found that are not registered."""
    return found.join(registered.select(KEY), KEY, "left_anti")


def missing(found: DataFrame, registered: DataFrame) -> DataFrame:
    """The names of registered partitions that were not found."""
    return registered.select(KEY).join(found.select(KEY), KEY, "left_anti")


def twins(found: DataFrame, registered: DataFrame) -> DataFrame:
    """Partitions found whose values another one has in another spelling, with its name as `winner`.

    What is registered wins, then what is spelled as the type spells it, then the first by name.
    """
    rank = F.when(F.col("state") == 0, _CANONICAL).otherwise(_OTHER)
    both = found.select(*_SAME, "name", "location", rank.alias("rank")).unionByName(
        registered.select(*_SAME, "name", F.lit(None).alias("location"), F.lit(_REGISTERED).alias("rank"))
    )
    doubted = both.where(F.col("same") != F.col("name")).select(_SAME).distinct()
    order = Window.partitionBy(_SAME).orderBy("rank", "name")
    ranked = both.join(doubted, _SAME, "left_semi").withColumn("winner", F.first("name").over(order))
    lost = ranked.where((F.col("name") != F.col("winner")) & (F.col("rank") != _REGISTERED))
    return lost.join(registered.select(KEY), KEY, "left_anti").select(*KEY, "location", "winner")


def ordered(frame: DataFrame, *more: str) -> Any:
    """In the order of batches: those of one table are together."""
    return frame.orderBy(*KEY[:2], *more, "name")
