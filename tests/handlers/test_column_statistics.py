"""The Thrift methods on column statistics, and the two shapes of their structs, through real messages."""

from typing import Any

import pytest

from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsMethods
from hms_gateway.catalog.statistics.shapes import received
from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.processor import Processor
from hms_gateway.rpc.structs import (
    METHODS,
    AddPartitionsRequest,
    AggrStats,
    AggrStats_v4,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatistics_v4,
    ColumnStatisticsData,
    ColumnStatisticsData_v4,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    ColumnStatisticsObj_v4,
    CompactionInfoStruct,
    CreateTableRequest,
    DeleteColumnStatisticsRequest,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    InvalidInputException,
    LongColumnStatsData,
    LongColumnStatsData_v4,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    PartitionsStatsResult_v4,
    SetPartitionsStatsRequest,
    SetPartitionsStatsRequest_v4,
    SetPartitionsStatsResponse,
    TableStatsRequest,
    TableStatsResult,
    TableStatsResult_v4,
    Timestamp,
    TimestampColumnStatsData,
)
from hms_gateway.rpc.wire import ProtocolError, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.handlers.peers import Peer
from tests.metastore.statistics_world import P, T, longs, make_service, partitions, refusal, statistics
from tests.support.catalog import Catalog, columns, new_table, to_tjson, transactional_table
from tests.support.statistics_calls import StatisticsCalls

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)
CODECS = make_codecs(Limits())


@pytest.fixture
def service(catalog: Catalog) -> StatisticsCalls:
    return make_service(catalog)


@pytest.fixture
def methods(service: StatisticsCalls) -> ColumnStatisticsMethods:
    methods: ColumnStatisticsMethods = service.methods
    return methods


def old(part_name: str | None = None, table: str = "t", db_name: str = "default", **sketch: Any) -> ColumnStatistics:
    """As a client of 2.3 sends them."""
    data = ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4, **sketch))
    description = ColumnStatisticsDesc(part_name is None, db_name, table, part_name)
    return ColumnStatistics(description, [ColumnStatisticsObj("a", "int", data)])


def test_every_way_to_store_those_of_a_table(methods: ColumnStatisticsMethods) -> None:
    request = TableStatsRequest("default", "t", ["a"])
    stored = TableStatsResult(old().statsObj)
    assert methods.update_table_column_statistics(CALL, old(db_name="@hive#default")) is True
    assert methods.get_table_statistics_req(CALL, request) == stored
    methods.delete_table_column_statistics(CALL, "@hive#default", "t", None, None)
    newer = SetPartitionsStatsRequest_v4([received(old())])
    assert methods.update_table_column_statistics_req(NEWER, newer) == SetPartitionsStatsResponse(True)
    assert methods.get_table_statistics_req(CALL, request) == stored
    methods.delete_table_column_statistics(CALL, "default", "t", "a", "hive")
    assert methods.set_aggr_stats_for(CALL, SetPartitionsStatsRequest([old()])) is True
    assert methods.get_table_statistics_req(CALL, request) == stored
    assert methods.get_table_column_statistics(CALL, "default", "t", "a").statsObj == old().statsObj


def test_every_way_to_store_those_of_a_partition(methods: ColumnStatisticsMethods) -> None:
    given = old("ds=a/hr=1", "p")
    request = PartitionsStatsRequest("default", "p", ["a"], ["ds=a/hr=1"])
    stored = PartitionsStatsResult({"ds=a/hr=1": given.statsObj})
    assert methods.update_partition_column_statistics(CALL, given) is True
    assert methods.get_partitions_statistics_req(CALL, request) == stored
    assert methods.delete_partition_column_statistics(CALL, "default", "p", "ds=a/hr=1", "a", None) is True
    newer = SetPartitionsStatsRequest_v4([received(given)])
    assert methods.update_partition_column_statistics_req(NEWER, newer) == SetPartitionsStatsResponse(True)
    assert methods.get_partitions_statistics_req(CALL, request) == stored
    delete = DeleteColumnStatisticsRequest("hive", "default", "p", ["ds=a/hr=1"])
    assert methods.delete_column_statistics_req(NEWER, delete) is True
    assert methods.set_aggr_stats_for(CALL, SetPartitionsStatsRequest([given], needMerge=True)) is True
    assert methods.get_partitions_statistics_req(CALL, request) == stored
    assert methods.get_partition_column_statistics(CALL, "default", "p", "ds=a/hr=1", "a").statsObj == given.statsObj
    given.statsObj[0].statsData.longStats.numDVs = 2  # there are no more values from 1 to 2
    assert methods.get_aggr_stats_for(CALL, request) == AggrStats(given.statsObj, 1)


def test_engine_of_a_request_counts_for_all_it_carries(
    methods: ColumnStatisticsMethods, service: StatisticsCalls
) -> None:
    methods.set_aggr_stats_for(NEWER, SetPartitionsStatsRequest_v4([received(old())], engine="impala"))
    assert service.of_table(T, ["a"]) == []
    assert methods.get_table_statistics_req(
        CALL, TableStatsRequest("default", "t", ["a"], engine="impala")
    ) == TableStatsResult(old().statsObj)


ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}


@pytest.mark.parametrize(
    ("parameters", "write_id", "seen", "holds"),
    [
        ({"transactional": "true"} | ACCURATE, 5, None, None),
        ({"transactional": "true"} | ACCURATE, 5, "default.x:5:9::", True),
        ({"transactional": "true"} | ACCURATE, 5, "default.x:4:9::", False),
        ({"transactional": "true"} | ACCURATE, 5, "default.x:6:5:5:", False),
        ({"transactional": "true"} | ACCURATE, 5, "default.x:6:9::5", False),
        # Something was written since.
        ({"transactional": "true"}, 5, "default.x:9:9::", False),
        # Nothing is known about when they were computed.
        ({"transactional": "true"}, None, "default.x:1:9::", True),
        ({"transactional": "true"}, -1, "default.x:1:9::", True),
        ({}, 5, "default.x:1:9::", True),
    ],
)
@pytest.mark.parametrize("call", [CALL, NEWER])
def test_whether_statistics_hold_for_a_reader(
    methods: ColumnStatisticsMethods,
    catalog: Catalog,
    call: Call,
    parameters: dict[str, str],
    write_id: int | None,
    seen: str | None,
    holds: bool | None,
) -> None:
    make = transactional_table if "transactional" in parameters else new_table
    of_partitions, plain = make("x", keys=columns("ds string")), make("y")
    plain.parameters = parameters
    catalog.tables.create(plain)
    catalog.tables.create(of_partitions)
    partition = Partition(["1"], "default", "x", sd=of_partitions.sd, parameters=parameters)
    partitions(catalog).add(partition)
    for given in (old(table="y"), old("ds=1", "x")):
        assert methods.set_aggr_stats_for(call, SetPartitionsStatsRequest([given], False, write_id))
    listed = seen and seen.replace(".x", ".y")
    of_table = methods.get_table_statistics_req(call, TableStatsRequest("default", "y", ["a"], None, listed))
    request = PartitionsStatsRequest("default", "x", ["a"], ["ds=1"], None, seen)
    of_partition = methods.get_partitions_statistics_req(call, request)
    summed = methods.get_aggr_stats_for(call, request)
    assert [one.isStatsCompliant for one in (of_table, of_partition, summed)] == [holds] * 3  # type: ignore[attr-defined]
    assert (len(of_table.tableStats), len(of_partition.partStats), summed.partsFound) == (holds is not False,) * 3  # type: ignore[attr-defined]


def test_a_list_that_is_none_is_refused(methods: ColumnStatisticsMethods, catalog: Catalog) -> None:
    catalog.tables.create(transactional_table("y"))
    request = TableStatsRequest("default", "y", ["a"], None, "nonsense")
    assert isinstance(refusal(lambda: methods.get_table_statistics_req(CALL, request)), MetaException)


def test_another_catalog_has_no_tables(methods: ColumnStatisticsMethods) -> None:
    given = old()
    given.statsDesc.catName = "spark"
    error = NoSuchObjectException("Specified database/table does not exist : @spark#default.t")
    assert refusal(lambda: methods.update_table_column_statistics(CALL, given)) == error
    request = TableStatsRequest("default", "t", ["a"], catName="spark")
    assert refusal(lambda: methods.get_table_statistics_req(CALL, request)) == error


@pytest.mark.parametrize(
    ("call", "db_name", "shown"),
    [(CALL, "default", None), (CALL, "@hive#default", "hive"), (NEWER, "default", "hive")],
)
def test_newer_callers_see_the_catalog(
    methods: ColumnStatisticsMethods, call: Call, db_name: str, shown: str | None
) -> None:
    methods.update_table_column_statistics(CALL, old())
    methods.update_partition_column_statistics(CALL, old("ds=a/hr=1", "p"))
    found = [
        methods.get_table_column_statistics(call, db_name, "t", "a"),
        methods.get_partition_column_statistics(call, db_name, "p", "ds=a/hr=1", "a"),
    ]
    assert [one.statsDesc.catName for one in found] == [shown, shown]


def test_sketches_are_text_or_bytes_by_dialect(methods: ColumnStatisticsMethods) -> None:
    methods.update_table_column_statistics(CALL, old(bitVectors="{1, ü}"))
    request = TableStatsRequest("default", "t", ["a"])
    assert methods.get_table_statistics_req(CALL, request).tableStats[0].statsData.longStats.bitVectors == "{1, ü}"
    newer = methods.get_table_statistics_req(NEWER, request)
    assert isinstance(newer, TableStatsResult_v4)
    assert newer.tableStats[0].statsData.longStats == LongColumnStatsData_v4(1, 2, 3, 4, "{1, ü}".encode())


def test_a_sketch_that_is_no_text_is_not_sent_to_old_clients(methods: ColumnStatisticsMethods) -> None:
    given = statistics(P, "ds=a/hr=1", a=longs(1, 2))
    given.statsObj[0].statsData.longStats.bitVectors = b"\xff\xfe"
    methods.update_partition_column_statistics(NEWER, given)
    request = PartitionsStatsRequest("default", "p", ["a"], ["ds=a/hr=1"])
    shown = methods.get_partitions_statistics_req(CALL, request).partStats["ds=a/hr=1"][0].statsData.longStats
    assert (type(shown), shown.bitVectors) == (LongColumnStatsData, None)
    newer = methods.get_partitions_statistics_req(NEWER, request)
    assert isinstance(newer, PartitionsStatsResult_v4)
    assert newer.partStats["ds=a/hr=1"][0].statsData.longStats.bitVectors == b"\xff\xfe"
    assert isinstance(methods.get_aggr_stats_for(NEWER, request), AggrStats_v4)
    one = methods.get_partition_column_statistics(NEWER, "default", "p", "ds=a/hr=1", "a")
    assert isinstance(one, ColumnStatistics_v4)


def test_timestamps_are_whole_numbers_to_old_clients(methods: ColumnStatisticsMethods) -> None:
    given = old()
    given.statsObj[0].statsData = ColumnStatisticsData(
        timestampStats=TimestampColumnStatsData(Timestamp(5), None, 1, 2)
    )
    methods.update_table_column_statistics(CALL, given)
    request = TableStatsRequest("default", "t", ["a"])
    assert methods.get_table_statistics_req(CALL, request).tableStats[0].statsData == ColumnStatisticsData(
        longStats=LongColumnStatsData(5, None, 1, 2)
    )
    newer = methods.get_table_statistics_req(NEWER, request).tableStats[0].statsData
    assert newer.timestampStats == TimestampColumnStatsData(Timestamp(5), None, 1, 2)


def test_statistics_of_no_known_kind(methods: ColumnStatisticsMethods) -> None:
    given = old()
    given.statsObj[0].statsData = ColumnStatisticsData()
    assert isinstance(refusal(lambda: methods.update_table_column_statistics(CALL, given)), MetaException)
    given.statsObj[0].statsData = None
    assert isinstance(refusal(lambda: methods.update_table_column_statistics(CALL, given)), MetaException)


def test_merging_is_for_aggregates_only(methods: ColumnStatisticsMethods) -> None:
    request = SetPartitionsStatsRequest_v4([received(old())], needMerge=True)
    for method in (methods.update_table_column_statistics_req, methods.update_partition_column_statistics_req):
        assert isinstance(refusal(lambda method=method: method(NEWER, request)), InvalidInputException)


def test_what_is_left_out_is_a_meta_exception(methods: ColumnStatisticsMethods) -> None:
    for method in (
        methods.update_table_column_statistics,
        methods.update_partition_column_statistics,
        methods.update_table_column_statistics_req,
        methods.update_partition_column_statistics_req,
        methods.get_table_statistics_req,
        methods.get_partitions_statistics_req,
        methods.get_aggr_stats_for,
        methods.set_aggr_stats_for,
        methods.delete_column_statistics_req,
    ):
        assert isinstance(refusal(lambda method=method: method(CALL, None)), MetaException)
    for arguments in ((None, "t", "a"), ("default", None, "a"), ("default", "t", None)):
        action = lambda arguments=arguments: methods.get_table_column_statistics(CALL, *arguments)  # noqa: E731
        assert isinstance(refusal(action), MetaException)


@pytest.mark.parametrize("codec_name", ["tjson", "binary", "compact"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_through_every_codec_in_both_dialects(
    methods: ColumnStatisticsMethods, codec_name: str, dialect: Dialect
) -> None:
    handled = [name for name in dir(methods) if not name.startswith("_")]
    processor = Processor([methods], answered=handled)
    codec = getattr(CODECS, codec_name)
    call = Call("tester", dialect=dialect)
    bound = processor._bound[dialect]

    def ask(name: str, *arguments: Any) -> Any:
        method = bound[name].method
        before, after = codec.envelope(name, 1, 7)
        body = before + codec.encode(method.arguments(*arguments)) + after
        reply = processor.process(codec, codec.read_message(body), call)
        assert reply.outcome == "ok"
        return codec.decode(method.result, reply.payload).success

    if dialect is Dialect.HIVE_4:
        sketch: Any = b"\xff\x00"
        given: Any = received(old())
        given.statsObj[0].statsData.longStats.bitVectors = sketch
    else:
        sketch = "{1, 2}"
        given = old(bitVectors=sketch)
    assert ask("update_table_column_statistics", given) is True
    result = ask("get_table_statistics_req", TableStatsRequest("default", "t", ["a"]))
    assert result.tableStats[0].statsData.longStats.bitVectors == sketch
    assert ask("get_table_column_statistics", "default", "t", "a").statsObj[0].colName == "a"


def test_the_json_of_an_event_has_sketches_in_base64(catalog: Catalog, methods: ColumnStatisticsMethods) -> None:
    methods.update_table_column_statistics(CALL, old(bitVectors="{1}"))
    assert '"5":{"str":"ezF9"}' in catalog.last_event()[3]["colStatsJson"]
    assert to_tjson(BooleanColumnStatsData(1, 2, 3, "{1}")).count(b"{1}") == 1


def test_tables_and_partitions_that_carry_their_statistics(
    catalog: Catalog, service: StatisticsCalls, methods: ColumnStatisticsMethods
) -> None:
    methods.update_table_column_statistics(CALL, old())
    methods.update_partition_column_statistics(CALL, old("ds=a/hr=1", "p"))
    tables = catalog.tables.methods
    found = tables.get_table_req(NEWER, GetTableRequest("default", "t", getColumnStats=True)).table
    assert found.colStats.statsObj[0].statsData == longs(1, 2, 3, 4)
    assert tables.get_table_req(NEWER, GetTableRequest("default", "t")).table.colStats is None
    assert tables.get_table_req(NEWER, GetTableRequest("default", "p", getColumnStats=True)).table.colStats is None
    by_names = partitions(catalog).reads.get_partitions_by_names_req
    request = GetPartitionsByNamesRequest("default", "p", ["ds=a/hr=1", "ds=b/hr=1"], get_col_stats=True)
    first, second = by_names(NEWER, request).partitions
    assert first.colStats.statsObj[0].statsData == longs(1, 2, 3, 4)
    assert second.colStats is None


def test_compaction_workers_ask_which_columns_have_statistics(newer: Peer) -> None:
    newer.ask("create_table", new_table("t", cols=columns("a int", "b int"), keys=columns("p string")))
    newer.ask("add_partition", Partition(["1"], "default", "t", sd=new_table().sd))
    for part_name, names in ((None, ("b", "a")), ("p=1", ("a",))):
        described = ColumnStatisticsDesc(part_name is None, "default", "t", part_name)
        figures = ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(1, 2, 3, 4))
        objects = [ColumnStatisticsObj_v4(name, "int", figures) for name in names]
        method = f"update_{'table' if part_name is None else 'partition'}_column_statistics"
        for engine in ("hive", "impala"):
            newer.ask(method, ColumnStatistics_v4(described, objects, engine=engine))

    def known(table: str, part_name: str | None = None) -> list[str]:
        info = CompactionInfoStruct(1, "default", table, part_name, type=1)
        return list(newer.ask("find_columns_with_stats", info))

    assert known("T") == ["a", "b"]
    assert known("t", "P=1") == ["a"]
    assert known("t", "p=2") == known("nowhere") == []


def test_a_new_table_comes_with_statistics(newer: Peer) -> None:
    figures = ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(1, 2, 3, 4, b"\xff\x01"))
    given = ColumnStatistics_v4(
        ColumnStatisticsDesc(True, "elsewhere", "x"), [ColumnStatisticsObj_v4("a", "int", figures)]
    )
    newer.ask("create_table_req", CreateTableRequest(new_table("t", colStats=given)))
    found = newer.ask("get_table_statistics_req", TableStatsRequest("default", "t", ["a", "b"], engine="hive"))
    assert found.tableStats == [ColumnStatisticsObj_v4("a", "int", figures)]
    table = newer.ask("get_table_req", GetTableRequest("default", "t", getColumnStats=True)).table
    assert table.colStats.statsObj == found.tableStats
    assert "COLUMN_STATS_ACCURATE" in table.parameters
    unknown = [ColumnStatisticsObj_v4("z", "int", figures)]
    wrong = ColumnStatistics_v4(ColumnStatisticsDesc(True, "default", "u"), unknown)
    with pytest.raises(MetaException, match="Column z doesn't exist in table u"):
        newer.ask("create_table", new_table("u", colStats=wrong))
    with pytest.raises(NoSuchObjectException):
        newer.ask("get_table", "default", "u")


@pytest.mark.slow
@pytest.mark.parametrize("codec_name", ["binary", "compact"])
def test_sketches_of_newer_clients_pass_through_the_shape_of_2_3(metastore: Metastore, codec_name: str) -> None:
    old = Peer(metastore, getattr(metastore.codecs, codec_name), Dialect.HIVE_2_3)
    new = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)
    sketch = b"HL\xff\x00\xfe"
    old.ask("create_table", new_table("t", viewOriginalText="größe"))
    # The same bytes as a client of 3.1 sends: its struct says binary.
    figures = ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4, sketch))  # type: ignore[arg-type]
    described = ColumnStatisticsDesc(True, "default", "t", catName="hive")
    old.ask("update_table_column_statistics", ColumnStatistics(described, [ColumnStatisticsObj("a", "int", figures)]))

    def asked(peer: Peer, catalog: str | None) -> Any:
        request = TableStatsRequest("default", "t", ["a"], catName=catalog)
        return peer.ask("get_table_statistics_req", request).tableStats[0].statsData.longStats.bitVectors

    assert asked(new, None) == asked(new, "hive") == sketch
    assert asked(old, "hive") == sketch
    assert asked(old, None) is None
    assert old.ask("get_table_column_statistics", "@hive#default", "t", "a").statsObj[0].statsData == figures


def test_other_texts_still_have_to_be_texts(metastore: Metastore) -> None:
    codec = metastore.codecs.binary
    arguments = METHODS["update_table_column_statistics"].arguments(
        ColumnStatistics(
            ColumnStatisticsDesc(True, "default", b"\xff"),  # type: ignore[arg-type]
            [ColumnStatisticsObj("a", "int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4)))],
        )
    )
    with pytest.raises(ProtocolError, match="a string is not valid UTF-8"):
        codec.decode(type(arguments), codec.encode(arguments))


def test_new_partitions_come_with_statistics(newer: Peer) -> None:
    newer.ask("create_table", new_table("t", keys=columns("p string")))

    def partition(value: str, column: str = "a") -> Partition:
        figures = ColumnStatisticsData_v4(longStats=LongColumnStatsData_v4(1, 2, 3, len(value)))
        sent = ColumnStatistics_v4(
            ColumnStatisticsDesc(False, "default", "t"), [ColumnStatisticsObj_v4(column, "int", figures)], engine="hive"
        )
        return Partition([value], "default", "t", sd=new_table().sd, colStats=sent)

    newer.ask("add_partitions_req", AddPartitionsRequest("default", "t", [partition("1"), partition("22")], False))
    newer.ask("add_partition", Partition(["3"], "default", "t", sd=new_table().sd))
    request = PartitionsStatsRequest("default", "t", ["a"], ["p=1", "p=22", "p=3"], engine="hive")
    found = newer.ask("get_partitions_statistics_req", request).partStats
    assert {name: one[0].statsData.longStats.numDVs for name, one in found.items()} == {"p=1": 1, "p=22": 2}
    with pytest.raises(MetaException, match="Column z doesn't exist"):
        newer.ask("add_partition", partition("4", "z"))
    assert newer.ask("get_partition_names", "default", "t", -1) == ["p=1", "p=22", "p=3"]
