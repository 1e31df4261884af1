"""Basic statistics of tables and partitions: under which write id they were written, and for whom they hold."""

from typing import Any

import pytest

from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    AlterPartitionsRequest,
    AlterTableRequest,
    ColumnStatistics_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj_v4,
    EnvironmentContext,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    MetaException,
    Partition,
    Table,
    TruncateTableRequest,
)
from tests.metastore.statistics_world import longs, partitions, refusal
from tests.support.catalog import Catalog, columns, new_table, transactional_table
from tests.support.statistics_calls import StatisticsCalls

NEWER = Call("tester", dialect=Dialect.HIVE_4)
ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
KEPT = {"DO_NOT_UPDATE_STATS": "true"}


class World:
    """The methods of a catalog whose table `y` has statistics of its own, and `x` has partitions that have."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.statistics = StatisticsCalls(catalog.store, catalog.clock, catalog.event_maker)
        self.tables, self.alterations = catalog.tables.methods, catalog.alterations.methods
        calls = partitions(catalog)
        self.reads, self.additions, self.changes, self.exchanges = (
            calls.reads,
            calls.additions,
            calls.changes,
            calls.exchanges,
        )

    def create(self, parameters: dict[str, str], write_id: int | None) -> None:
        make = transactional_table if "transactional" in parameters else new_table
        of_partitions, plain = make("x", keys=columns("ds string")), make("y")
        plain.parameters, plain.writeId = {**parameters, **KEPT}, write_id
        self.tables.create_table(NEWER, plain)
        self.tables.create_table(NEWER, of_partitions)
        partition = Partition(["1"], "default", "x", sd=of_partitions.sd, parameters=parameters, writeId=write_id)
        self.additions.add_partition(NEWER, partition)

    def table(self, seen: str | None, name: str = "y", **more: Any) -> Table:
        listed = seen and f"default.{name}:{seen}"
        answer: Any = self.tables.get_table_req(
            NEWER, GetTableRequest("default", name, validWriteIdList=listed, **more)
        )
        found: Table = answer.table
        return found

    def partition(self, seen: str | None) -> Partition:
        listed = seen and f"default.x:{seen}"
        request = GetPartitionRequest(None, "default", "x", ["1"], validWriteIdList=listed)
        found: Partition = self.reads.get_partition_req(NEWER, request).partition
        return found

    def alter(self, parameters: dict[str, str], write_id: int | None, seen: str | None) -> None:
        """Both of them, without counting files."""
        table, partition = self.table(None), self.partition(None)
        table.parameters = partition.parameters = {"transactional": "true", **parameters}
        context = EnvironmentContext(KEPT)
        lists = [seen and f"default.{name}:{seen}" for name in "yx"]
        self.alterations.alter_table_req(
            NEWER, AlterTableRequest(None, "default", "y", table, context, write_id, lists[0])
        )
        self.changes.alter_partitions_req(
            NEWER, AlterPartitionsRequest(None, "default", "x", [partition], context, write_id, lists[1])
        )


@pytest.fixture
def world(catalog: Catalog) -> World:
    return World(catalog)


@pytest.mark.parametrize(
    ("parameters", "write_id", "seen", "holds"),
    [
        ({"transactional": "true"} | ACCURATE, 5, None, None),
        ({"transactional": "true"} | ACCURATE, 5, "5:9::", True),
        ({"transactional": "true"} | ACCURATE, 5, "4:9::", False),
        ({"transactional": "true"} | ACCURATE, 5, "6:5:5:", False),
        ({"transactional": "true"} | ACCURATE, 5, "6:9::5", False),
        # Something was written since.
        ({"transactional": "true"}, 5, "9:9::", False),
        # Nothing is known about when they were computed.
        ({"transactional": "true"} | ACCURATE, None, "1:9::", True),
        ({"transactional": "true"} | ACCURATE, -1, "1:9::", True),
        # No write ids, so no verdict.
        (ACCURATE, 5, "1:9::", None),
    ],
)
def test_whether_basic_statistics_hold_for_a_reader(
    world: World, parameters: dict[str, str], write_id: int | None, seen: str | None, holds: bool | None
) -> None:
    world.create(parameters, write_id)
    for one in (world.table(seen), world.partition(seen)):
        assert one.isStatsCompliant is holds
        is_accurate = "COLUMN_STATS_ACCURATE" in parameters and holds is not False
        assert ("COLUMN_STATS_ACCURATE" in (one.parameters or {})) is is_accurate
        assert one.writeId == (5 if write_id == 5 and "transactional" in parameters else None)
    # What readers without a list are answered is as it was.
    assert ("COLUMN_STATS_ACCURATE" in world.table(None).parameters) is ("COLUMN_STATS_ACCURATE" in parameters)


def test_a_partitioned_table_has_no_statistics_of_its_own(world: World) -> None:
    world.create({"transactional": "true"} | ACCURATE, 5)
    assert world.table("4:9::", "x").isStatsCompliant is None


def test_a_list_that_is_none_is_refused(world: World) -> None:
    world.create({"transactional": "true"}, 5)
    for read in (world.table, world.partition):
        assert isinstance(refusal(lambda read=read: read("nonsense")), MetaException)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("write_id", "seen", "kept", "is_accurate"),
    [
        (7, "7:9::", 7, True),
        # It did not see 5, whose rows are not in its figures.
        (7, "7:5:5:", 7, False),
        (7, "4:9::", 7, False),
        # Aborted: there is nothing of it that the figures could miss.
        (7, "7:9::5", 7, True),
        (7, None, 7, True),
        # Clients that know no write ids.
        (None, None, 5, True),
        (-1, None, 5, True),
    ],
)
def test_a_change_is_kept_with_its_write_id(
    world: World, write_id: int | None, seen: str | None, kept: int, is_accurate: bool
) -> None:
    world.create({"transactional": "true"} | ACCURATE, 5)
    world.alter(ACCURATE, write_id, seen)
    for one in (world.table(None), world.partition(None)):
        assert one.writeId == kept
        assert ("COLUMN_STATS_ACCURATE" in (one.parameters or {})) is is_accurate
    assert [world.table(each).isStatsCompliant for each in ("5:9::", "9:9::")] == [
        kept == 5 and is_accurate,
        is_accurate,
    ]


def test_who_empties_a_table_says_under_which_write_id(world: World) -> None:
    world.create({"transactional": "true"} | ACCURATE, 5)
    for name in ("y", "x"):
        world.catalog.truncations.methods.truncate_table_req(NEWER, TruncateTableRequest("default", name, writeId=7))
    assert [one.writeId for one in (world.table(None), world.partition(None))] == [7, 7]
    world.catalog.truncations.methods.truncate_table(NEWER, "default", "y", None)  # type: ignore[arg-type]
    assert world.table(None).writeId == 7


def test_a_partition_that_goes_to_another_table_has_none_of_its_write_ids(world: World) -> None:
    world.create({"transactional": "true"} | ACCURATE, 5)
    world.tables.create_table(NEWER, transactional_table("z", keys=columns("ds string")))
    moved = world.exchanges.exchange_partitions(NEWER, {"ds": "1"}, "default", "x", "default", "z")
    assert moved[0].writeId is None
    assert world.reads.get_partition(NEWER, "default", "z", ["1"]).writeId is None


def test_statistics_of_columns_that_go_out_with_a_table_or_partition(world: World) -> None:
    world.create({"transactional": "true"} | ACCURATE, 5)
    objects = [ColumnStatisticsObj_v4("a", "int", longs(1, 2))]
    of_table = ColumnStatistics_v4(ColumnStatisticsDesc(True, "default", "y"), objects)
    of_partition = ColumnStatistics_v4(ColumnStatisticsDesc(False, "default", "x", "ds=1"), objects)
    world.statistics.update_table(of_table, write_id=6)
    world.statistics.update_partitions([of_partition], write_id=6)

    def found(seen: str | None) -> list[ColumnStatistics_v4 | None]:
        request = GetPartitionsByNamesRequest(
            "default", "x", ["ds=1"], get_col_stats=True, validWriteIdList=seen and f"default.x:{seen}"
        )
        (partition,) = world.reads.get_partitions_by_names_req(NEWER, request).partitions
        return [world.table(seen, getColumnStats=True).colStats, partition.colStats]

    assert [one.isStatsCompliant for one in found(None) if one] == [None, None]
    assert [one.isStatsCompliant for one in found("6:9::") if one] == [True, True]
    assert found("5:9::") == [None, None]
