"""Reads of transactional tables without a list of write ids, where they are refused."""

import pytest

from hms_gateway.handlers.steps import RequiredLists
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import (
    METHODS,
    ForeignKeysRequest,
    GetTableRequest,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    PartitionsRequest,
    PartitionsStatsRequest,
    Table,
    TableMeta,
    TableStatsRequest,
)
from tests.support.catalog import Catalog, columns, new_table, transactional_table
from tests.support.steps import through

CALL = Call("tester")
LISTED = "default.acid:1:1::"


@pytest.fixture
def lists(catalog: Catalog) -> RequiredLists:
    catalog.tables.create(transactional_table("acid", columns("ds string")))
    catalog.tables.create(transactional_table("other"))
    catalog.tables.create(new_table("plain", keys=columns("ds string")))
    return RequiredLists(catalog.store)


def check(lists: RequiredLists, call: Call, method: str, *values: object, answer: object = None) -> None:
    assert through(lists, METHODS[method], call, METHODS[method].arguments(*values), lambda: answer) is answer


OF_ONE = [
    ("get_table", ("default", "acid")),
    ("get_table", ("@hive#Default", " ACID ")),
    ("get_fields", ("default", "acid.ds")),
    ("get_table_req", (GetTableRequest("default", "acid"),)),
    ("get_partitions_req", (PartitionsRequest(dbName="default", tblName="acid", validWriteIdList=""),)),
    ("get_foreign_keys", (ForeignKeysRequest(None, None, "default", "acid"),)),
    ("get_table_column_statistics", ("default", "acid", "a")),
    ("get_partition_column_statistics", ("default", "acid", "ds=1", "a")),
    ("get_table_statistics_req", (TableStatsRequest("default", "acid", ["a"]),)),
    ("get_partitions_statistics_req", (PartitionsStatsRequest("default", "acid", ["a"], ["ds=1"]),)),
    ("get_aggr_stats_for", (PartitionsStatsRequest("default", "acid", ["a"], ["ds=1"]),)),
    ("list_partition_names", ("default", "acid", None, None, False, 10)),
]


@pytest.mark.parametrize(("method", "values"), OF_ONE)
def test_a_read_without_a_list_is_refused(lists: RequiredLists, method: str, values: tuple[object, ...]) -> None:
    with pytest.raises(MetaException, match=r"table default\.acid is transactional .* send validWriteIdList"):
        check(lists, CALL, method, *values)
    check(lists, Call("tester", valid_write_ids=LISTED), method, *values)


ACID = Table("acid", "default", parameters={"transactional": "true"})
PLAIN = Table("plain", "default")
OF_SEVERAL = [
    ("get_table_objects_by_name", ("default", ["acid", "plain"]), [ACID, PLAIN]),
    ("get_table_objects_by_name", ("default", ["acid"]), Uncacheable([ACID])),
    ("get_table_objects_by_name_req", (GetTablesRequest("default", ["acid"]),), GetTablesResult([ACID])),
    ("get_table_objects_by_name_req", (GetTablesRequest("default", None),), GetTablesResult([ACID])),
    ("get_table_meta", ("*", "*", None), [TableMeta("default", "plain", ""), TableMeta("default", "acid", "")]),
]


@pytest.mark.parametrize(("method", "values", "answer"), OF_SEVERAL)
def test_so_is_one_of_several_tables(
    lists: RequiredLists, method: str, values: tuple[object, ...], answer: object
) -> None:
    with pytest.raises(MetaException, match=r"table default\.acid is transactional .* send validWriteIdList"):
        check(lists, CALL, method, *values, answer=answer)
    check(lists, Call("tester", valid_write_ids=LISTED), method, *values, answer=answer)


def test_one_list_is_not_enough_for_two_tables(lists: RequiredLists) -> None:
    with pytest.raises(MetaException, match=r"the list is of table default\.acid; .* the one of default\.other"):
        check(
            lists,
            Call("tester", valid_write_ids=LISTED),
            "get_table_objects_by_name",
            *("default", ["acid", "other"]),
            answer=[ACID, Table("other", "default")],
        )


@pytest.mark.parametrize(
    ("text", "table_id", "problem"),
    [
        ("garbage", None, "'garbage' is not a list of valid write ids"),
        ("default.acid:x::", None, "is not"),
        ("default.other:1:1::", None, r"the list is of table default\.other; .* the one of default\.acid"),
        ("null:1:1::", None, "the list is of table None"),
        (LISTED, 1_000, r"the list is of table default\.acid with the id 1000"),
    ],
)
def test_a_list_that_is_not_one_of_the_table_is_refused(
    lists: RequiredLists, text: str, table_id: int | None, problem: str
) -> None:
    request = GetTableRequest("default", "acid", validWriteIdList=text, id=table_id)
    with pytest.raises(MetaException, match=problem):
        check(lists, CALL, "get_table_req", request)
    sent = text if table_id is None else f"{text};id={table_id}"
    with pytest.raises(MetaException, match=problem):
        check(lists, Call("tester", valid_write_ids=sent), "get_table", "default", "acid")


@pytest.mark.parametrize("rest", ["17", "id=", "id=x", "id=٣", f"id={'9' * 5_000}"])
def test_a_header_with_an_id_that_is_none_is_refused(lists: RequiredLists, rest: str) -> None:
    with pytest.raises(MetaException, match=r"x-hms-valid-write-ids: .* is not the id of a table"):
        check(lists, Call("tester", valid_write_ids=f"{LISTED};{rest}"), "get_table", "default", "acid")


def test_the_list_in_the_request_is_the_one_that_counts(lists: RequiredLists) -> None:
    request = GetTableRequest("default", "acid", validWriteIdList=LISTED, id=-1)
    check(lists, Call("tester", valid_write_ids="default.other:1:1::"), "get_table_req", request)


@pytest.mark.parametrize(
    ("method", "values", "answer"),
    [
        ("get_table", ("default", "plain"), None),
        ("get_table", ("default", "missing"), None),
        ("get_table", (None, None), None),
        ("get_table_req", (None,), None),
        ("get_all_tables", ("default",), ["acid"]),
        ("get_table_objects_by_name", ("default", ["plain"]), [PLAIN]),
        ("get_table_meta", ("*", "p*", None), [TableMeta("default", "plain", "")]),
    ],
)
def test_other_calls_are_not(lists: RequiredLists, method: str, values: tuple[object, ...], answer: object) -> None:
    check(lists, CALL, method, *values, answer=answer)
