"""Statements as values, and where reading stops for those that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.cli.hiveql.statements import KeyValue, PlaceName, PrincipalName, QualifiedName
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.rpc.structs import HiveObjectType, PrincipalType

T = QualifiedName("sales", "t")
DS = (KeyValue("ds", "1"),)
USER = PrincipalName(PrincipalType.USER, "ann")

READ = {
    "show databases like 'a*'": say.ShowDatabases("a*"),
    "SHOW SCHEMAS": say.ShowDatabases(),
    "show tables": say.ShowTables("sales"),
    "show tables in D 'a*|b'": say.ShowTables("d", "a*|b"),
    "show views": say.ShowTables("sales", kind="VIRTUAL_VIEW"),
    "show partitions T": say.ShowPartitions(T),
    "show partitions t partition (ds='1')": say.ShowPartitions(T, DS),
    "show partitions t where ds > '1' and hr = 2 limit 5": say.ShowPartitions(T, (), "ds > '1' and hr = 2", 5, 24),
    "show columns in t in d": say.ShowColumns(QualifiedName("d", "t")),
    "show functions like 'f*'": say.ShowFunctions(None, "f*"),
    "show tblproperties t ('a')": say.ShowTableProperties(T, "a"),
    "show create table `t`": say.ShowCreateTable(T),
    "show create database d": say.ShowCreateDatabase("d"),
    "show transactions": say.ShowTransactions(),
    "show compactions": say.ShowCompactions(),
    "show locks": say.ShowLocks(),
    "show locks extended": say.ShowLocks(None, True),
    "show locks t partition (ds='1') extended": say.ShowLocks(PlaceName("sales", "t", DS), True),
    "show locks database d": say.ShowLocks(PlaceName("d")),
    "show lease *": say.ShowLeases(),
    "show lease t, database d": say.ShowLeases((PlaceName("sales", "t"), PlaceName("d"))),
    "show lease hr.*": say.ShowLeases((PlaceName("hr"),)),
    "drop force lease *": say.DropLeases(),
    "drop force lease hr.*, d.t": say.DropLeases((PlaceName("hr"), PlaceName("d", "t"))),
    "drop force lease d.t": say.DropLeases((PlaceName("d", "t"),)),
    "show grant user ann on table t": say.ShowGrants(USER, HiveObjectType.TABLE, PlaceName("sales", "t")),
    "show grant role r": say.ShowGrants(PrincipalName(PrincipalType.ROLE, "r"), None),
    "show grant on database d": say.ShowGrants(None, HiveObjectType.DATABASE, PlaceName("d")),
    "show roles": say.ShowRoles(),
    "show role grant user ann": say.ShowRoles(USER),
    "show principals r": say.ShowPrincipals("r"),
    "desc t": say.Describe(T),
    "describe formatted d.t partition (ds='1')": say.Describe(QualifiedName("d", "t"), DS, is_detailed=True),
    "describe extended t": say.Describe(T, is_detailed=True),
    "describe t a": say.Describe(T, column="a"),
    "describe database extended d": say.DescribeDatabase("d", True),
    "describe function d.f": say.DescribeFunction("d", "f"),
    "use D": say.Use("d"),
    "set": say.SetOption(),
    "set hive.lock.numretries=3": say.SetOption("hive.lock.numretries", "3"),
    "set metaconf:a.b": say.SetOption("metaconf:a.b"),
    "drop database if exists d cascade": say.DropDatabase("d", True, True),
    "drop table t purge": say.DropTable(T, is_purging=True),
    "drop view if exists t": say.DropTable(T, True, True),
    "drop function f": say.DropFunction("sales", "f"),
    "truncate table t partition (ds='1')": say.Truncate(T, DS),
    "alter table t rename to u": say.AlterTable(T, say.Rename(QualifiedName("sales", "u"))),
    "alter table d.t rename to u": say.AlterTable(QualifiedName("d", "t"), say.Rename(QualifiedName("d", "u"))),
    "alter view t rename to d.u": say.AlterTable(T, say.Rename(QualifiedName("d", "u")), is_view=True),
    "alter table t set tblproperties ('a'='b', 'c'='it\\'s')":
        say.AlterTable(T, say.SetProperties({"a": "b", "c": "it's"})),
    "alter table t unset tblproperties if exists ('a')": say.AlterTable(T, say.UnsetProperties(["a"], True)),
    "alter table t set serde 'x' with serdeproperties ('a'='b')":
        say.AlterTable(T, say.SetSerde("x", {"a": "b"})),
    "alter table t set serdeproperties ('a'='b')": say.AlterTable(T, say.SetSerde(None, {"a": "b"})),
    "alter table t partition (ds='1') set location 'x'": say.AlterTable(T, say.SetLocation("x"), (DS,)),
    "alter table t set owner role r": say.AlterTable(T, say.SetOwner(PrincipalName(PrincipalType.ROLE, "r"))),
    "alter table t not clustered": say.AlterTable(T, say.SetBuckets((), (), -1)),
    "alter table t clustered by (a) sorted by (b desc, c) into 4 buckets":
        say.AlterTable(T, say.SetBuckets(["a"], [("b", 0), ("c", 1)], 4)),
    "alter table t touch partition (ds='1')": say.AlterTable(T, say.Touch(), (DS,)),
    "alter table t partition (ds='1') rename to partition (ds='2')":
        say.AlterTable(T, say.RenamePartition((KeyValue("ds", "2"),)), (DS,)),
    "alter table t add if not exists partition (ds='1') location 'x' partition (ds=-2)":
        say.AddPartitions(T, [say.AddedPartition(DS, "x"), say.AddedPartition((KeyValue("ds", "-2"),), None)], True),
    "alter table t drop if exists partition (ds < '1', hr != 2) purge":
        say.DropPartitions(T, [(KeyValue("ds", "1", "<"), KeyValue("hr", "2", "!="))], True, True),
    "alter table t exchange partition (ds='1') with table d.u":
        say.ExchangePartition(T, DS, QualifiedName("d", "u")),
    "alter table t partition (ds='1') compact 'major'": say.Compact(T, DS, "MAJOR"),
    "alter table t drop constraint c": say.DropConstraint(T, "c"),
    "alter table t add constraint c primary key (a, b) disable novalidate": say.AddKey(T, "c", ["a", "b"]),
    "alter table t add constraint c foreign key (a) references d.u (b)":
        say.AddKey(T, "c", ["a"], QualifiedName("d", "u"), ["b"]),
    "alter database d set dbproperties ('a'='b')": say.AlterDatabase("d", parameters={"a": "b"}),
    "alter database d set owner user ann": say.AlterDatabase("d", owner=USER),
    "alter view t as select 1": say.AlterViewQuery(T, "select 1", 16),
    "unlock table t": say.Unlock(PlaceName("sales", "t")),
    "abort transactions 1 2, 3": say.AbortTransactions([1, 2, 3]),
    "grant select, all privileges on t to user ann, role r with grant option":
        say.GrantPrivileges(["SELECT", "ALL"], HiveObjectType.TABLE, PlaceName("sales", "t"),
                            [USER, PrincipalName(PrincipalType.ROLE, "r")], is_option=True),
    "revoke grant option for insert on database d from ann":
        say.GrantPrivileges(["INSERT"], HiveObjectType.DATABASE, PlaceName("d"), [USER], True, True),
    "grant role r to user ann with admin option": say.GrantRoles(["r"], [USER], is_option=True),
    "revoke r from ann": say.GrantRoles(["r"], [USER], True),
    "create role r": say.CreateRole("r"),
    "drop role r": say.DropRole("r"),
    "msck repair table t sync partitions": say.Repair(T, True, True),
    "repair table t": say.Repair(T),
    "select 1 from t": say.ForEngines("SELECT"),
    "insert into t values (1)": say.ForEngines("INSERT"),
    "create table t as select 1": say.ForEngines("CREATE TABLE … AS SELECT"),
    "alter table t concatenate": say.ForEngines("ALTER TABLE … CONCATENATE"),
    "explain select 1": say.ForEngines("EXPLAIN"),
    "create table if not exists t like d.u location 'x'":
        say.CreateTableLike(T, QualifiedName("d", "u"), True, False, "x"),
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
    assert isinstance(statement, say.CreateTable)
    assert [column.type for column in statement.table.sd.cols] == [expected]


def test_a_table_with_everything():
    statement = parse_statement(
        """create external table if not exists d.t (a int comment 'x') comment 'c' partitioned by (ds date)
           clustered by (a) sorted by (a desc) into 4 buckets skewed by (a) on (1, 2)
           row format delimited fields terminated by ',' null defined as 'n' stored as textfile
           location 'file:/x' tblproperties ('k'='v')"""
    )
    assert isinstance(statement, say.CreateTable)
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
