"""Statements as values, and where reading stops for those that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.cli.hiveql.altering import (
    AddedPartition,
    AddKey,
    AddPartitions,
    AlterDatabase,
    AlterTable,
    Compact,
    DropConstraint,
    DropPartitions,
    ExchangePartition,
    Rename,
    RenamePartition,
    SetBuckets,
    SetLocation,
    SetOwner,
    SetProperties,
    SetSerde,
    Touch,
    UnsetProperties,
)
from hms_gateway.cli.hiveql.defining import (
    AlterViewQuery,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropFunction,
    DropTable,
    Truncate,
)
from hms_gateway.cli.hiveql.granting import (
    CreateRole,
    DropRole,
    GrantPrivileges,
    GrantRoles,
    ShowGrants,
    ShowPrincipals,
    ShowRoles,
)
from hms_gateway.cli.hiveql.locking import (
    AbortTransactions,
    DropLeases,
    ShowCompactions,
    ShowLeases,
    ShowLocks,
    ShowTransactions,
    Unlock,
)
from hms_gateway.cli.hiveql.session import ForEngines, Repair, SetOption, Use
from hms_gateway.cli.hiveql.shell_state import KeyValue, PlaceName, PrincipalName, QualifiedName
from hms_gateway.cli.hiveql.showing import (
    Describe,
    DescribeDatabase,
    DescribeFunction,
    ShowCatalogs,
    ShowColumns,
    ShowCreateDatabase,
    ShowCreateTable,
    ShowDatabases,
    ShowFunctions,
    ShowPartitions,
    ShowTableProperties,
    ShowTables,
)
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.rpc.structs import HiveObjectType, PrincipalType

T = QualifiedName("sales", "t")
DS = (KeyValue("ds", "1"),)
USER = PrincipalName(PrincipalType.USER, "ann")

READ = {
    "show databases like 'a*'": ShowDatabases("a*"),
    "SHOW SCHEMAS": ShowDatabases(),
    "show catalogs": ShowCatalogs(),
    "show tables": ShowTables("sales"),
    "show tables in `@spark#d`": ShowTables("@spark#d"),
    "show tables in D 'a*|b'": ShowTables("d", "a*|b"),
    "show views": ShowTables("sales", kind="VIRTUAL_VIEW"),
    "show partitions T": ShowPartitions(T),
    "show partitions t partition (ds='1')": ShowPartitions(T, DS),
    "show partitions t where ds > '1' and hr = 2 limit 5": ShowPartitions(T, (), "ds > '1' and hr = 2", 5, 24),
    "show columns in t in d": ShowColumns(QualifiedName("d", "t")),
    "show functions like 'f*'": ShowFunctions(None, "f*"),
    "show tblproperties t ('a')": ShowTableProperties(T, "a"),
    "show create table `t`": ShowCreateTable(T),
    "show create database d": ShowCreateDatabase("d"),
    "show transactions": ShowTransactions(),
    "show compactions": ShowCompactions(),
    "show locks": ShowLocks(),
    "show locks extended": ShowLocks(None, True),
    "show locks t partition (ds='1') extended": ShowLocks(PlaceName("sales", "t", DS), True),
    "show locks database d": ShowLocks(PlaceName("d")),
    "show lease *": ShowLeases(),
    "show lease t, database d": ShowLeases((PlaceName("sales", "t"), PlaceName("d"))),
    "show lease hr.*": ShowLeases((PlaceName("hr"),)),
    "drop force lease *": DropLeases(),
    "drop force lease hr.*, d.t": DropLeases((PlaceName("hr"), PlaceName("d", "t"))),
    "drop force lease d.t": DropLeases((PlaceName("d", "t"),)),
    "show grant user ann on table t": ShowGrants(USER, HiveObjectType.TABLE, PlaceName("sales", "t")),
    "show grant role r": ShowGrants(PrincipalName(PrincipalType.ROLE, "r"), None),
    "show grant on database d": ShowGrants(None, HiveObjectType.DATABASE, PlaceName("d")),
    "show roles": ShowRoles(),
    "show role grant user ann": ShowRoles(USER),
    "show principals r": ShowPrincipals("r"),
    "desc t": Describe(T),
    "describe formatted d.t partition (ds='1')": Describe(QualifiedName("d", "t"), DS, is_detailed=True),
    "describe extended t": Describe(T, is_detailed=True),
    "describe t a": Describe(T, column="a"),
    "describe database extended d": DescribeDatabase("d", True),
    "describe function d.f": DescribeFunction("d", "f"),
    "use D": Use("d"),
    "set": SetOption(),
    "set hive.lock.numretries=3": SetOption("hive.lock.numretries", "3"),
    "set metaconf:a.b": SetOption("metaconf:a.b"),
    "drop database if exists d cascade": DropDatabase("d", True, True),
    "drop table t purge": DropTable(T, is_purging=True),
    "drop view if exists t": DropTable(T, True, True),
    "drop function f": DropFunction("sales", "f"),
    "truncate table t partition (ds='1')": Truncate(T, DS),
    "alter table t rename to u": AlterTable(T, Rename(QualifiedName("sales", "u"))),
    "alter table d.t rename to u": AlterTable(QualifiedName("d", "t"), Rename(QualifiedName("d", "u"))),
    "alter view t rename to d.u": AlterTable(T, Rename(QualifiedName("d", "u")), is_view=True),
    "alter table t set tblproperties ('a'='b', 'c'='it\\'s')":
        AlterTable(T, SetProperties({"a": "b", "c": "it's"})),
    "alter table t unset tblproperties if exists ('a')": AlterTable(T, UnsetProperties(["a"], True)),
    "alter table t set serde 'x' with serdeproperties ('a'='b')":
        AlterTable(T, SetSerde("x", {"a": "b"})),
    "alter table t set serdeproperties ('a'='b')": AlterTable(T, SetSerde(None, {"a": "b"})),
    "alter table t partition (ds='1') set location 'x'": AlterTable(T, SetLocation("x"), (DS,)),
    "alter table t set owner role r": AlterTable(T, SetOwner(PrincipalName(PrincipalType.ROLE, "r"))),
    "alter table t not clustered": AlterTable(T, SetBuckets((), (), -1)),
    "alter table t clustered by (a) sorted by (b desc, c) into 4 buckets":
        AlterTable(T, SetBuckets(["a"], [("b", 0), ("c", 1)], 4)),
    "alter table t touch partition (ds='1')": AlterTable(T, Touch(), (DS,)),
    "alter table t partition (ds='1') rename to partition (ds='2')":
        AlterTable(T, RenamePartition((KeyValue("ds", "2"),)), (DS,)),
    "alter table t add if not exists partition (ds='1') location 'x' partition (ds=-2)":
        AddPartitions(T, [AddedPartition(DS, "x"), AddedPartition((KeyValue("ds", "-2"),), None)], True),
    "alter table t drop if exists partition (ds < '1', hr != 2) purge":
        DropPartitions(T, [(KeyValue("ds", "1", "<"), KeyValue("hr", "2", "!="))], True, True),
    "alter table t exchange partition (ds='1') with table d.u":
        ExchangePartition(T, DS, QualifiedName("d", "u")),
    "alter table t partition (ds='1') compact 'major'": Compact(T, DS, "MAJOR"),
    "alter table t drop constraint c": DropConstraint(T, "c"),
    "alter table t add constraint c primary key (a, b) disable novalidate": AddKey(T, "c", ["a", "b"]),
    "alter table t add constraint c foreign key (a) references d.u (b)":
        AddKey(T, "c", ["a"], QualifiedName("d", "u"), ["b"]),
    "alter database d set dbproperties ('a'='b')": AlterDatabase("d", parameters={"a": "b"}),
    "alter database d set owner user ann": AlterDatabase("d", owner=USER),
    "alter view t as select 1": AlterViewQuery(T, "select 1", 16),
    "unlock table t": Unlock(PlaceName("sales", "t")),
    "abort transactions 1 2, 3": AbortTransactions([1, 2, 3]),
    "grant select, all privileges on t to user ann, role r with grant option":
        GrantPrivileges(["SELECT", "ALL"], HiveObjectType.TABLE, PlaceName("sales", "t"),
                            [USER, PrincipalName(PrincipalType.ROLE, "r")], is_option=True),
    "revoke grant option for insert on database d from ann":
        GrantPrivileges(["INSERT"], HiveObjectType.DATABASE, PlaceName("d"), [USER], True, True),
    "grant role r to user ann with admin option": GrantRoles(["r"], [USER], is_option=True),
    "revoke r from ann": GrantRoles(["r"], [USER], True),
    "create role r": CreateRole("r"),
    "drop role r": DropRole("r"),
    "msck repair table t sync partitions": Repair(T, True, True),
    "repair table t": Repair(T),
    "select 1 from t": ForEngines("SELECT"),
    "insert into t values (1)": ForEngines("INSERT"),
    "create table t as select 1": ForEngines("CREATE TABLE … AS SELECT"),
    "alter table t concatenate": ForEngines("ALTER TABLE … CONCATENATE"),
    "explain select 1": ForEngines("EXPLAIN"),
    "create table if not exists t like d.u location 'x'":
        CreateTableLike(T, QualifiedName("d", "u"), True, False, "x"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_what_statements_say(text, expected):
    assert parse_statement(text, "Sales") == expected


# The mark is below the place where reading stops; the text is what was expected there.
WRONG = {
    "show foo": ("     ^", "what to show"),
    "frobnicate": ("^", "a statement (SHOW, DESCRIBE"),
    "show tables in": ("              ^", "the name of a database"),
    "create table t (a in)": ("                  ^", "a type"),
    "create table t (a int": ("                     ^", ", or )"),
    "create table t (a struct<x int>)": ("                           ^", ":"),
    "create table t (a int) stored as foo": ("                                 ^", "a format"),
    "create table t (a int) garbage": ("                       ^", "COMMENT, PARTITIONED"),
    "create table t": ("              ^", "the columns in brackets"),
    "create table t (a int, primary key (a))": ("                               ^", "a type"),
    "alter table t": ("             ^", "RENAME TO, ADD"),
    "alter table t set tblproperties ('a')": ("                                    ^", "="),
    "alter table t set tblproperties ('a'='b": ("                                     ^", "the value of a"),
    "alter table t add partition (ds 1)": ("                                ^", ", or )"),
    "alter table t compact 'huge'": ("                      ^", "'major' or 'minor'"),
    "drop table t cascade": ("             ^", "the end of the statement"),
    "grant select to user x": ("             ^", "ON"),
    "grant on t to x": ("         ^", "TO"),
    "abort transactions x": ("                   ^", "the number of a transaction"),
    "explain locks frobnicate": ("              ^", "a statement whose locks are known"),
    "lock table t": ("            ^", "SHARED or EXCLUSIVE"),
    "select a frm t x y": ("             ^", "another part of a query"),
    "select count(*) from (select a from b": ("                                    ^", ")"),
    "create view v as frobnicate": ("                 ^", "a query"),
    "create view v as select a from": ("                          ^", "another part of a query"),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items())
def test_where_reading_stops(text, expected):
    with pytest.raises(CommandError) as caught:
        parse_statement(text)
    mark, wanted = expected
    assert " " * caught.value.position + "^" == mark
    assert str(caught.value).startswith(f"expected {wanted}")


TYPES = {
    "INT": "int",
    "integer": "int",
    "double precision": "double",
    "decimal": "decimal(10,0)",
    "numeric(5)": "decimal(5,0)",
    "DECIMAL(10, 2)": "decimal(10,2)",
    "varchar(20)": "varchar(20)",
    "array<map<string, struct<A:int comment 'x', b:array<date>>>>": "array<map<string,struct<a:int,b:array<date>>>>",
    "uniontype<int, string>": "uniontype<int,string>",
    "timestamp with local time zone": "timestamp with local time zone",
}


@pytest.mark.parametrize(("text", "expected"), TYPES.items())
def test_types_are_kept_as_the_metastore_keeps_them(text, expected):
    statement = parse_statement(f"create table t (a {text})")
    assert isinstance(statement, CreateTable)
    assert [column.type for column in statement.table.sd.cols] == [expected]


def test_a_table_with_everything():
    statement = parse_statement(
        """create external table if not exists d.t (a int comment 'x') comment 'c' partitioned by (ds date)
           clustered by (a) sorted by (a desc) into 4 buckets skewed by (a) on (1, 2)
           row format delimited fields terminated by ',' null defined as 'n' stored as textfile
           location 'file:/x' tblproperties ('k'='v')"""
    )
    assert isinstance(statement, CreateTable)
    table = statement.table
    assert (table.dbName, table.tableName, table.tableType, statement.if_not_exists) == (
        "d", "t", "EXTERNAL_TABLE", True,
    )  # fmt: skip
    assert table.parameters == {"comment": "c", "k": "v", "EXTERNAL": "TRUE"}
    assert [(key.name, key.type) for key in table.partitionKeys] == [("ds", "date")]
    sd = table.sd
    assert (sd.bucketCols, sd.numBuckets, sd.location) == (["a"], 4, "file:/x")
    assert [(order.col, order.order) for order in sd.sortCols] == [("a", 0)]
    assert sd.skewedInfo.skewedColValues == [["1"], ["2"]]
    assert sd.serdeInfo.parameters == {
        "field.delim": ",", "serialization.format": ",", "serialization.null.format": "n",
    }  # fmt: skip


WORDS = """
    show tables partitions create table external view alter drop database in t d.t ( ) , . ; = 'x' `q` 1 int string
    array < > partition set add columns as select from stored orc grant to user on lock exclusive explain locks lease *
"""


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS.split()), max_size=10))
def test_any_words_are_a_statement_or_say_where_they_stop_being_one(words):
    text = " ".join(words)
    position = 0
    try:
        parse_statement(text)
    except CommandError as error:
        position = error.position
    assert 0 <= position <= len(text)
