"""Reads of transactional tables without a list of write ids, where they are refused."""

import pytest

from hms_gateway.handlers.required_lists import RequiredLists
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    METHODS,
    ForeignKeysRequest,
    GetTableRequest,
    MetaException,
    PartitionsRequest,
)
from tests.support.catalog import Catalog, columns, new_table, transactional_table

CALL = Call("tester")
LISTED = "default.acid:1:1::"


@pytest.fixture
def lists(catalog: Catalog) -> RequiredLists:
    catalog.tables.create(transactional_table("acid", columns("ds string")))
    catalog.tables.create(new_table("plain", keys=columns("ds string")))
    return RequiredLists(catalog.store)


def check(lists: RequiredLists, call: Call, method: str, *values: object) -> None:
    lists.check(METHODS[method], call, METHODS[method].arguments(*values))


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("get_table", ("default", "acid")),
        ("get_table", ("@hive#Default", " ACID ")),
        ("get_fields", ("default", "acid.ds")),
        ("get_table_req", (GetTableRequest("default", "acid"),)),
        ("get_partitions_req", (PartitionsRequest(dbName="default", tblName="acid", validWriteIdList=""),)),
        ("get_foreign_keys", (ForeignKeysRequest(None, None, "default", "acid"),)),
    ],
)
def test_a_read_without_a_list_is_refused(lists: RequiredLists, method: str, values: tuple[object, ...]) -> None:
    with pytest.raises(MetaException, match=r"table default\.acid is transactional .* send validWriteIdList"):
        check(lists, CALL, method, *values)
    check(lists, Call("tester", valid_write_ids=LISTED), method, *values)


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("get_table", ("default", "plain")),
        ("get_table", ("default", "missing")),
        ("get_table_req", (GetTableRequest("default", "acid", validWriteIdList=LISTED),)),
        ("get_table_req", (None,)),
        # Not a read of one table.
        ("get_all_tables", ("default",)),
        ("get_table_objects_by_name", ("default", ["acid"])),
    ],
)
def test_other_calls_are_not(lists: RequiredLists, method: str, values: tuple[object, ...]) -> None:
    check(lists, CALL, method, *values)
