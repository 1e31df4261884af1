"""What earlier runs found, kept in the state: statistics of whole tables are made of it where partitions are unchanged.

A file for each table names the runs that know about its partitions, the newest first.
"""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from hms_gateway.pipeline.jobs.run import Run
from hms_gateway.pipeline.jobs.stored import Stored
from hms_gateway.pipeline.stats.measuring import FRESH, NEW

_RUNS_MAX: Final = 10
_KEYS: Final = ("database", "table", "partition")
_KEPT: Final = ("of", "rows", "raw", "figures", "sketches")


def has_any(run: Run, names: Stored) -> bool:
    """Whether an earlier run knows about one of the tables."""
    return any(True for table in _tables(names) for _ in _runs(run, table))


def with_kept(run: Run, names: Stored) -> DataFrame:
    """The names, each with what the newest run that knows it found."""
    by_place: dict[str, tuple[int, list[str]]] = {}
    for table in _tables(names):
        for age, place in enumerate(_runs(run, table)):
            by_place.setdefault(place, (age, []))[1].append(".".join(table))
    found = [part for place, (age, of) in by_place.items() if (part := _part(run, place, age, of)) is not None]
    bare = names.frame(run.spark).select(*_KEYS)
    if not found:
        return names.frame(run.spark)
    together = found[0]
    for part in found[1:]:
        together = together.unionByName(part)
    newest = Window.partitionBy(*_KEYS).orderBy("age")
    newest_only = together.withColumn("place", sql.row_number().over(newest)).where("place = 1").drop("place", "age")
    return bare.join(newest_only, list(_KEYS), "left").orderBy(*_KEYS)


def keep(run: Run, found: Stored, *, is_part: bool) -> None:
    """Note that this run knows about its tables; where it looked at a part only, others before it do too."""
    for table in _tables(found):
        before = _runs(run, table) if is_part else []
        places = [run.id, *(place for place in before if place != run.id)][:_RUNS_MAX]
        run.state.write_json(_file(table), {"runs": places})


def _tables(stored: Stored) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(batch.of for batch in stored.batches))


def _runs(run: Run, table: Sequence[Any]) -> list[str]:
    noted = run.state.read_json(_file(table))
    return [] if noted is None else [str(place) for place in noted["runs"]]


def _file(table: Sequence[Any]) -> str:
    return f"kept/{quote('.'.join(map(str, table)), safe='')}.json"


def _part(run: Run, place: str, age: int, tables: Sequence[str]) -> DataFrame | None:
    """None where the run was removed."""
    wanted = set(tables)
    stored = next(
        (each for name in ("read", "found") if (each := Stored.find(run.state, f"{place}/plan/{name}")) is not None),
        None,
    )
    if stored is None:
        return None
    kept = stored.where(lambda of: ".".join(map(str, of)) in wanted).frame(run.spark)
    columns = [sql.col(name).alias(f"kept_{name}") for name in _KEPT]
    return kept.where(sql.col("state").isin(NEW, FRESH)).select(*_KEYS, *columns, sql.lit(age).alias("age"))
