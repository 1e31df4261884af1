"""The same as `test_bad_input` for statistics, constraints, roles and privileges."""

from pathlib import Path
from typing import Any

import pytest

from app.main import build_metastore
from app.rpc.call import Dialect
from app.settings import Settings
from app.structs import (
    AddCheckConstraintRequest,
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DeleteColumnStatisticsRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    LongColumnStatsData,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SetPartitionsStatsRequest,
    SQLCheckConstraint,
    SQLForeignKey,
    SQLPrimaryKey,
    TableStatsRequest,
)
from app.wire import MessageType
from tests.catalog import new_table
from tests.handlers.test_bad_input import outcome, variants

COLUMN = ColumnStatisticsObj("a", "int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 3, 4)))
OF_TABLE = ColumnStatistics(ColumnStatisticsDesc(True, "default", "t", "p", 5), [COLUMN])
OF_PARTITION = ColumnStatistics(ColumnStatisticsDesc(False, "default", "t", "p=1", 5), [COLUMN])
PARTITIONS = PartitionsStatsRequest("default", "t", ["a"], ["p=1"], engine="hive")
OBJECT = HiveObjectRef(5, "default", "t", ["x"], "a")
ENTRY = HiveObjectPrivilege(OBJECT, "anna", 1, PrivilegeGrantInfo("SELECT", 5, "root", 1, True), "x")
BAG = PrivilegeBag([ENTRY])
CALLS: dict[str, tuple[Any, ...]] = {
    "update_table_column_statistics": (OF_TABLE,),
    "update_partition_column_statistics": (OF_PARTITION,),
    "set_aggr_stats_for": (SetPartitionsStatsRequest([OF_TABLE], True, engine="hive"),),
    "get_table_column_statistics": ("default", "t", "a"),
    "get_partition_column_statistics": ("default", "t", "p=1", "a"),
    "get_table_statistics_req": (TableStatsRequest("default", "t", ["a"], engine="hive"),),
    "get_partitions_statistics_req": (PARTITIONS,),
    "get_aggr_stats_for": (PARTITIONS,),
    "delete_table_column_statistics": ("default", "t", "a", "hive"),
    "delete_partition_column_statistics": ("default", "t", "p=1", "a", "hive"),
    "delete_column_statistics_req": (DeleteColumnStatisticsRequest("hive", "default", "t", ["p=1"], ["a"], "hive"),),
    "add_primary_key": (AddPrimaryKeyRequest([SQLPrimaryKey("default", "t", "a", 1, "k", True, True, True)]),),
    "add_foreign_key": (
        AddForeignKeyRequest([SQLForeignKey("default", "t", "a", "default", "t", "a", 1, 1, 1, "f", "k")]),
    ),
    "add_check_constraint": (
        AddCheckConstraintRequest([SQLCheckConstraint("hive", "default", "t", "a", "a > 1", "c", True)]),
    ),
    "drop_constraint": (DropConstraintRequest("default", "t", "k", "hive"),),
    "get_primary_keys": (PrimaryKeysRequest("default", "t", "hive"),),
    "get_foreign_keys": (ForeignKeysRequest("default", "t", "default", "t"),),
    "create_role": (Role("r", 5, "owner"),),
    "drop_role": ("r",),
    "grant_role": ("r", "anna", 1, "root", 1, True),
    "revoke_role": ("r", "anna", 1),
    "grant_revoke_role": (GrantRevokeRoleRequest(1, "r", "anna", 1, "root", 1, True),),
    "list_roles": ("anna", 1),
    "get_privilege_set": (OBJECT, "anna", ["staff"]),
    "list_privileges": ("anna", 1, OBJECT),
    "grant_privileges": (BAG,),
    "revoke_privileges": (BAG,),
    "grant_revoke_privileges": (GrantRevokePrivilegeRequest(2, BAG, True),),
    "refresh_privileges": (OBJECT, "x", GrantRevokePrivilegeRequest(1, BAG)),
}


@pytest.mark.parametrize("method", CALLS)
def test_the_answer_is_a_result_or_a_declared_exception(
    method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(data_dir=tmp_path, file_systems={"file": "ignore"})
    metastore = build_metastore(settings)
    try:
        outcome(metastore, "create_table", (new_table(),), Dialect.HIVE_2_3)
        for position, value in enumerate(CALLS[method]):
            for variant in variants(value):
                values = (*CALLS[method][:position], variant, *CALLS[method][position + 1 :])
                told, kind = outcome(metastore, method, values, Dialect.HIVE_2_3)
                assert kind is MessageType.REPLY or told == "PROTOCOL_ERROR", (values, told)
    finally:
        metastore.store.close()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
