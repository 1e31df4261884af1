"""Statements as commands: the operation, what it changes and, behind `<`, what it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.cli.hiveql.lock_commands import parse_command
from hms_gateway.client.concurrency import in_key_order, needed_locks
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.metastore.vocabulary.partition_names import make_name

# As they stand in the table of Hive's page.
PAGE = {
    "select .. T1 partition P1": "S t1, S t1.P1",
    "insert into T2(partition P2) select .. T1 partition P1": "S t1, S t1.P1, S t2, X t2.P2",
    "insert into T2(partition P2), select .. T1 partition P1": "S t1, S t1.P1, S t2, X t2.P2",
    "insert into T2(partition P.Q) select .. T1 partition P1": "S t1, S t1.P1, S t2, S t2.P, X t2.P.Q",
    "alter table T1 rename T2": "X t1",
    "alter table T1 add cols": "X t1",
    "alter table T1 replace cols": "X t1",
    "alter table T1 change cols": "X t1",
    "alter table T1 concatenate": "X t1",
    "alter table T1 add partition P1": "S t1, X t1.P1",
    "alter table T1 drop partition P1": "S t1, X t1.P1",
    "alter table T1 touch partition P1": "S t1, X t1.P1",
    "alter table T1 set serdeproperties": "S t1",
    "alter table T1 set serializer": "S t1",
    "alter table T1 set file format": "S t1",
    "alter table T1 set tblproperties": "X t1",
    "alter table T1 partition P1 concatenate": "S t1, X t1.P1",
    "drop table T1": "X t1",
}

STATEMENTS = {
    "SELECT a, b FROM sales.orders o WHERE ds = '1'": "select < sales.orders",
    "select * from t": "select < default.t",
    "select count(*) from a join b on a.x = b.y left outer join c using (z)": "select < default.a default.b default.c",
    "select 1 from a x, d.b as y, c": "select < default.a d.b default.c",
    "select * from (select * from inner_t) q join other": "select < default.inner_t default.other",
    "with q as (select * from t) select * from q join u": "select < default.t default.u",
    "with q as (select * from u) insert into t select * from q": "insert default.t < default.u",
    "from u insert overwrite table t partition (ds='1') select * insert into d.v select a":
        "insert default.t.ds=1 d.v < default.u",
    "from (select * from u where a in (select b from w)) q insert into t select *":
        "insert default.t < default.u default.w",
    "from u select *": "select < default.u",
    "insert overwrite local directory '/x' select * from t": "select < default.t",
    "insert overwrite directory '/x' select * from t": "select < default.t",
    "insert into t select * from u union all select * from v": "insert default.t < default.u default.v",
    "load data local inpath '/x' overwrite into table t partition (ds='1')": "insert default.t.ds=1 <",
    "load data inpath '/x'": None,
    "load data inpath '/x' into t": None,
    "select trim(both 'x' from a), extract(year from b) from t": "select < default.t",
    "select (select max(a) from u) from t where exists (select 1 from (from v select *) w)":
        "select < default.u default.t default.v",
    "select count(*) from t)": "select < default.t",
    "select 1": "select <",
    "select 'from nowhere' from `odd name` -- from comment": "select < default.odd name",
    "select a from t lateral view explode(x) e as y": "select < default.t",
    "insert into table d.t values (1, 'x')": "insert d.t <",
    "INSERT OVERWRITE TABLE t PARTITION (ds='1', hr=2) SELECT * FROM u": "insert default.t.ds=1.hr=2 < default.u",
    "insert into t partition (ds='1', hr) select * from u": "insert default.t.ds=1 < default.u",
    "insert into t partition (ds=date '2026-01-02', n=-1.5)": "insert default.t.ds=2026-01-02.n=-1.5 <",
    "insert into t partition (ds, hr) select * from u": "insert default.t < default.u",
    "insert into t (a, b) select a, b from u": "insert default.t < default.u",
    "alter table t partition (ds='1') rename to partition (ds='2')":
        "rename partition default.t.ds=1 default.t.ds=2 <",
    "ALTER TABLE d.t RENAME TO d.u": "rename table d.t <",
    "alter table t add if not exists partition (ds='1') location '/x' partition (ds='2')":
        "add partition default.t.ds=1 default.t.ds=2 <",
    "alter table t drop if exists partition (ds='1'), partition (ds='2')":
        "drop partition default.t.ds=1 default.t.ds=2 <",
    "alter table t drop partition (ds='1', hr > 5)": "drop partition default.t.ds=1 <",
    "alter table t drop partition (ds < '1')": "drop partition default.t <",
    "alter table t touch": "touch default.t <",
    "alter table t partition (DS='a/b c:d') concatenate": "concatenate default.t.ds=a%2Fb c%3Ad <",
    "alter table t partition (n=-5, x=1.5) set fileformat orc": "set file format default.t.n=-5.x=1.5 <",
    "alter table t partition (s='it''s') set location 'x'": None,
    "alter table t partition (s='it\\'s') set location 'x'": "set location default.t.s=it%27s <",
    "alter table t partition column (ds bigint)": "partition column default.t <",
    "alter table t set serdeproperties ('a'='b')": "set serdeproperties default.t <",
    "alter table t set serde 'x' with serdeproperties ('a'='b')": "set serializer default.t <",
    "alter table t unset tblproperties ('a')": "unset tblproperties default.t <",
    "alter table t clustered by (a) into 4 buckets": "clustered, sorted or skewed by default.t <",
    "alter table t archive partition (ds='1')": "archive default.t.ds=1 <",
    "alter table t drop constraint c": "constraint default.t <",
    "alter table t compact 'major'": "compact default.t <",
    "truncate table t partition (ds='1')": "truncate default.t.ds=1 <",
    "create external table if not exists t (a int)": "create table default.t <",
    "create table t as select * from u": "create table default.t < default.u",
    "create table t like d.u": "create table default.t < d.u",
    "create view v as select * from u": "create table default.v < default.u",
    "create database if not exists d": "create database d <",
    "drop schema d cascade": "drop database d <",
    "drop table if exists D.T;": "drop table d.t <",
    "lock table t partition (ds='1') exclusive": "lock exclusive default.t.ds=1 <",
    "lock table t shared": "lock shared default.t <",
    "lock database d shared": "lock shared d <",
    "": None,
    "update d.t set a = 1 where b = 2": "update d.t <",
    "update t set a = (select max(a) from u)": "update default.t < default.u",
    "delete from t where a in (select a from u)": "delete default.t < default.u",
    "merge into t using u": "merge default.t < default.u",
    "merge into d.t as a using u b on a.k = b.k when matched then delete": "merge d.t < default.u",
    "merge into t using (select * from u join v on x = y) b on t.k = b.k when not matched then insert values (1)":
        "merge default.t < default.u default.v",
    "merge into t": None,
    "analyze table t compute statistics for columns": "analyze default.t <",
    "analyze table t partition (ds='1') compute statistics": "analyze default.t.ds=1 <",
    "msck repair table d.t": "msck repair d.t <",
    "msck table t sync partitions": "msck repair default.t <",
    "export table t partition (ds='1') to '/x'": "export < default.t.ds=1",
    "alter table t": None,
    "alter table t frobnicate": None,
    "alter table": None,
    "insert t": None,
    "lock table t": None,
    "drop table 'x'": None,
    "insert into t partition (ds='1'": None,
    "insert into t(partition p": None,
    "select * from t partition (ds=": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PAGE.items())
def test_the_page_is_understood_as_it_is_written(text, expected):
    locks = needed_locks(parse_command(text, make_name))
    assert ", ".join(f"{mode} {'.'.join(place.path[1:])}" for place, mode in locks) == expected


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items())
def test_statements(text, expected):
    if expected is None:
        with pytest.raises(CommandError, match=r"^expected .*, found "):
            parse_command(text, make_name)
        return
    command = parse_command(text, make_name)
    assert " ".join(map(str, (command.operation, *command.places, "<", *command.reads))) == expected


KEYS = {"ds": "string", "hr": "int", "day": "date"}
WHOLE = "day = '2026-01-02' and ds = 'a' and hr = 7"
PARTITION = "ds=a/hr=7/day=2026-01-02"

# By a statement about t: the partition it is about, None for the whole table.
CONDITIONS = {
    f"select * from t where {WHOLE}": PARTITION,
    "select a from t x where x.hr = '7' and x.ds = 'a' and a > 5 and x.day = '2026-01-02' order by b": PARTITION,
    f"insert into u select * from t where {WHOLE}": PARTITION,
    f"from t insert into u select * where {WHOLE}": PARTITION,
    f"update t set a = 1 where {WHOLE}": PARTITION,
    f"delete from t where {WHOLE};": PARTITION,
    f"select * from t where {WHOLE} group by a having count(*) = 2": PARTITION,
    f"select * from t where (a = 1 or b = 2) and {WHOLE}": None,
    f"select * from t where {WHOLE} or a = 1": None,
    "select * from t where not (a = 1 and ds = 'a' and hr = 7 and day = '2026-01-02' and b = 1)": None,
    f"select * from t where (a = 1 and {WHOLE} and b = 1) is not true": None,
    f"select * from t where {WHOLE} and ds = 'b'": None,
    f"select * from t, t as o where {WHOLE}": None,
    f"select * from t join u on a = b where {WHOLE}": None,
    f"select * from t where {WHOLE} union all select * from t": None,
    f"select * from (select * from t) q where {WHOLE}": None,
    f"select * from t where a between 1 and 2 and {WHOLE}": None,
    "select * from t where ds = 'a' and hr = 7": None,
    "select * from t where ds = 'a'": None,
    WHOLE.join(["select * from t where ", ""]).replace("'a'", "5"): None,
    WHOLE.join(["select * from t where ", ""]).replace("'a'", "''"): None,
    WHOLE.join(["select * from t where ", ""]).replace("7", "07"): None,
    WHOLE.join(["select * from t where ", ""]).replace("7", "7 + 1"): None,
    WHOLE.join(["select * from t where ", ""]).replace("'2026-01-02'", "'2026-1-2'"): None,
    WHOLE.join(["select * from t where ", ""]).replace("'a'", "a"): None,
}


@pytest.mark.parametrize(("text", "partition"), CONDITIONS.items())
def test_a_condition_names_the_partition_where_each_key_has_one_value(text, partition):
    command = in_key_order(parse_command(text, make_name), lambda table: KEYS if table.table_name == "t" else {})
    about = [place.partition_name for place in (*command.places, *command.reads) if place.table_name == "t"]
    assert about == [partition]


def test_a_condition_about_a_table_without_keys_is_about_the_table():
    command = parse_command("select * from t where ds = 'a'", make_name)
    for keys in ({}, None):
        assert [str(place) for place in in_key_order(command, lambda table, keys=keys: keys).reads] == ["default.t"]


WORDS = """
    select insert into overwrite table from join with as alter drop create lock load data like partition ( ) , . ; =
    rename to add set columns exclusive shared where and update delete merge using msck
    analyze export t d.t `q` 'x' 1 - < ds if exists not
"""


@pytest.mark.slow
@given(
    st.sampled_from(["", "select", "insert into t", "alter table t"]),
    st.lists(st.sampled_from(WORDS.split()), max_size=12),
)
def test_any_words_are_a_command_or_say_where_they_stop_being_one(beginning, words):
    try:
        command = parse_command(" ".join([beginning, *words]), make_name)
    except CommandError:
        return
    assert all(place.db_name for place in (*command.places, *command.reads))
    needed_locks(command)


def test_names_without_database_are_in_the_current_one():
    command = parse_command("insert into T select * from e.U", make_name, "Sales")
    assert [str(place) for place in (*command.places, *command.reads)] == ["sales.t", "e.u"]
