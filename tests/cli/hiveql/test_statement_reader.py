"""Statements as values, and where reading stops for those that are none."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.cli.hiveql import altering, defining, granting, locking, session, showing
from hms_gateway.cli.hiveql.shell_state import KeyValue, PlaceName, PrincipalName, QualifiedName
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.rpc.structs import HiveObjectType, Order, PrincipalType

T = QualifiedName("sales", "t")
DS = (KeyValue("ds", "1"),)
USER = PrincipalName(PrincipalType.USER, "ann")

READ = {
    "show databases like 'a*'": showing.show_databases("a*"),
    "SHOW SCHEMAS": showing.show_databases(),
    "show catalogs": showing.show_catalogs(),
    "show tables": showing.show_tables("sales"),
    "show tables in `@spark#d`": showing.show_tables("@spark#d"),
    "show tables in D 'a*|b'": showing.show_tables("d", "a*|b"),
    "show views": showing.show_tables("sales", kind="VIRTUAL_VIEW"),
    "show partitions T": showing.show_partitions(T),
    "show partitions t partition (ds='1')": showing.show_partitions(T, DS),
    "show partitions t where ds > '1' and hr = 2 limit 5": showing.show_partitions(T, (), "ds > '1' and hr = 2", 5, 24),
    "show columns in t in d": showing.show_columns(QualifiedName("d", "t")),
    "show snapshots t": showing.show_snapshots(T, None),
    "show snapshots from t limit 5": showing.show_snapshots(T, 5),
    "show refs in d.t": showing.show_refs(QualifiedName("d", "t")),
    "show functions like 'f*'": showing.show_functions(None, "f*"),
    "show tblproperties t ('a')": showing.show_table_properties(T, "a"),
    "show create table `t`": showing.show_create_table(T),
    "show create database d": showing.show_create_database("d"),
    "show transactions": locking.show_transactions(),
    "show compactions": locking.show_compactions(),
    "show locks": locking.show_locks(),
    "show locks extended": locking.show_locks(None, True),
    "show locks t partition (ds='1') extended": locking.show_locks(PlaceName("sales", "t", DS), True),
    "show locks database d": locking.show_locks(PlaceName("d")),
    "show lease *": locking.show_leases(),
    "show lease t, database d": locking.show_leases((PlaceName("sales", "t"), PlaceName("d"))),
    "show lease hr.*": locking.show_leases((PlaceName("hr"),)),
    "drop force lease *": locking.drop_leases(),
    "drop force lease hr.*, d.t": locking.drop_leases((PlaceName("hr"), PlaceName("d", "t"))),
    "drop force lease d.t": locking.drop_leases((PlaceName("d", "t"),)),
    "show grant user ann on table t": granting.show_grants(USER, HiveObjectType.TABLE, PlaceName("sales", "t")),
    "show grant role r": granting.show_grants(PrincipalName(PrincipalType.ROLE, "r"), None),
    "show grant on database d": granting.show_grants(None, HiveObjectType.DATABASE, PlaceName("d")),
    "show roles": granting.show_roles(),
    "show role grant user ann": granting.show_roles(USER),
    "show principals r": granting.show_principals("r"),
    "desc t": showing.describe(T),
    "describe formatted d.t partition (ds='1')": showing.describe(QualifiedName("d", "t"), DS, is_detailed=True),
    "describe extended t": showing.describe(T, is_detailed=True),
    "describe t a": showing.describe(T, column="a"),
    "describe database extended d": showing.describe_database("d", True),
    "describe function d.f": showing.describe_function("d", "f"),
    "use D": session.use("d"),
    "set": session.set_option(),
    "set hive.lock.numretries=3": session.set_option("hive.lock.numretries", "3"),
    "set metaconf:a.b": session.set_option("metaconf:a.b"),
    "drop database if exists d cascade": defining.drop_database("d", True, True),
    "drop table t purge": defining.drop_table(T, is_purging=True),
    "drop view if exists t": defining.drop_table(T, True, True),
    "drop function f": defining.drop_function("sales", "f"),
    "truncate table t partition (ds='1')": defining.truncate(T, DS),
    "alter table t rename to u": altering.alter_table(T, altering.rename(QualifiedName("sales", "u"))),
    "alter table d.t rename to u":
        altering.alter_table(QualifiedName("d", "t"), altering.rename(QualifiedName("d", "u"))),
    "alter view t rename to d.u": altering.alter_table(T, altering.rename(QualifiedName("d", "u")), is_view=True),
    "alter table t set tblproperties ('a'='b', 'c'='it\\'s')":
        altering.alter_table(T, altering.set_properties({"a": "b", "c": "it's"})),
    "alter table t unset tblproperties if exists ('a')":
        altering.alter_table(T, altering.unset_properties(["a"], True)),
    "alter table t set serde 'x' with serdeproperties ('a'='b')":
        altering.alter_table(T, altering.set_serde("x", {"a": "b"})),
    "alter table t set serdeproperties ('a'='b')": altering.alter_table(T, altering.set_serde(None, {"a": "b"})),
    "alter table t partition (ds='1') set location 'x'": altering.alter_table(T, altering.set_location("x"), (DS,)),
    "alter table t set owner role r":
        altering.alter_table(T, altering.set_owner(PrincipalName(PrincipalType.ROLE, "r"))),
    "alter table t not clustered": altering.alter_table(T, altering.set_buckets((), (), -1)),
    "alter table t clustered by (a) sorted by (b desc, c) into 4 buckets":
        altering.alter_table(T, altering.set_buckets(["a"], [Order("b", 0), Order("c", 1)], 4)),
    "alter table t touch partition (ds='1')": altering.alter_table(T, altering.touch(), (DS,)),
    "alter table t partition (ds='1') rename to partition (ds='2')":
        altering.rename_partition(T, DS, (KeyValue("ds", "2"),)),
    "alter table t add if not exists partition (ds='1') location 'x' partition (ds=-2)":
        altering.add_partitions(
            T, [altering.AddedPartition(DS, "x"), altering.AddedPartition((KeyValue("ds", "-2"),), None)], True),
    "alter table t drop if exists partition (ds < '1', hr != 2) purge":
        altering.drop_partitions(T, [(KeyValue("ds", "1", "<"), KeyValue("hr", "2", "!="))], True, True),
    "alter table t exchange partition (ds='1') with table d.u":
        altering.exchange_partition(T, DS, QualifiedName("d", "u")),
    "alter table t partition (ds='1') compact 'major'": altering.compact(T, DS, "MAJOR"),
    "alter table t drop constraint c": altering.drop_constraint(T, "c"),
    "alter table t add constraint c primary key (a, b) disable novalidate": altering.add_key(T, "c", ["a", "b"]),
    "alter table t add constraint c foreign key (a) references d.u (b)":
        altering.add_key(T, "c", ["a"], QualifiedName("d", "u"), ["b"]),
    "alter database d set dbproperties ('a'='b')": altering.alter_database("d", parameters={"a": "b"}),
    "alter database d set owner user ann": altering.alter_database("d", owner=USER),
    "alter view t as select 1": defining.alter_view_query(T, "select 1", 16),
    "unlock table t": locking.unlock(PlaceName("sales", "t")),
    "abort transactions 1 2, 3": locking.abort_transactions([1, 2, 3]),
    "grant select, all privileges on t to user ann, role r with grant option":
        granting.grant_privileges(["SELECT", "ALL"], HiveObjectType.TABLE, PlaceName("sales", "t"),
                            [USER, PrincipalName(PrincipalType.ROLE, "r")], is_option=True),
    "revoke grant option for insert on database d from ann":
        granting.grant_privileges(["INSERT"], HiveObjectType.DATABASE, PlaceName("d"), [USER], True, True),
    "grant role r to user ann with admin option": granting.grant_roles(["r"], [USER], is_option=True),
    "revoke r from ann": granting.grant_roles(["r"], [USER], True),
    "create role r": granting.create_role("r"),
    "drop role r": granting.drop_role("r"),
    "msck repair table t sync partitions": session.repair(T, True, True),
    "repair table t": session.repair(T),
    "select 1 from t": session.for_engines("SELECT"),
    "insert into t values (1)": session.for_engines("INSERT"),
    "create table t as select 1": session.for_engines("CREATE TABLE … AS SELECT"),
    "alter table t concatenate": session.for_engines("ALTER TABLE … CONCATENATE"),
    "explain select 1": session.for_engines("EXPLAIN"),
    "create table if not exists t like d.u location 'x'":
        defining.create_table_like(T, QualifiedName("d", "u"), True, False, "x"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_what_statements_say(text, expected):
    assert words_of(parse_statement(text, "Sales")) == words_of(expected)


def words_of(statement):
    """The function of a statement, and all words as the function gets them."""
    words = inspect.signature(statement.work).bind(None, *statement.given, **statement.named)
    words.apply_defaults()
    named = {name: words_of_change(value) for name, value in words.arguments.items()}
    return statement.work, named


def words_of_change(value):
    if not isinstance(value, altering.Change):
        return value
    words = inspect.signature(value.work).bind(None, None, *value.given, **value.named)
    words.apply_defaults()
    return value._replace(given=tuple(words.arguments.items()))


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
    table, _ = statement.given
    assert [column.type for column in table.sd.cols] == [expected]


def test_a_table_with_everything():
    statement = parse_statement(
        """create external table if not exists d.t (a int comment 'x') comment 'c' partitioned by (ds date)
           clustered by (a) sorted by (a desc) into 4 buckets skewed by (a) on (1, 2)
           row format delimited fields terminated by ',' null defined as 'n' stored as textfile
           location 'file:/x' tblproperties ('k'='v')"""
    )
    table, if_not_exists = statement.given
    assert (table.dbName, table.tableName, table.tableType, if_not_exists) == (
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
