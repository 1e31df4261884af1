"""Statements of `hms-gateway sql` against a real gateway: what each prints, in one session."""

import io
import json
import re

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.cli.hiveql.shell_state import ShellState
from hms_gateway.cli.hiveql.statement_reader import parse_statement
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.rpc.structs import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    LongColumnStatsData,
    OpenTxnRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.support.iceberg_tables import FIRST_SNAPSHOT, plant_snapshots

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
ID = re.compile(r"hms-gateway_[0-9a-f-]{36}")

# Statement and what it prints, as tsv without its header and with bars for tabs; `!` is an error.
SESSION = r"""
create database shop comment 'it\'s' with dbproperties ('a' = 'b');
create database shop;
    ! Database shop already exists; IF NOT EXISTS leaves it as it is
drop database nowhere;
    ! database nowhere does not exist
create database if not exists shop;
use nowhere;
    ! database nowhere does not exist; SHOW DATABASES lists those that do
use shop;
show databases like 'sh*';
    shop
show databases like 'sh%';
    shop
create table t (a int comment 'x', b string) partitioned by (ds date, hr int) stored as orc tblproperties ('k' = 'v');
show tables;
    t
alter table t add partition (ds = '2024-01-01', hr = 1) partition (hr = 2, ds = '2024-01-02');
show partitions t;
    ds=2024-01-01/hr=1
    ds=2024-01-02/hr=2
show partitions t partition (hr = 2);
    ds=2024-01-02/hr=2
show partitions t where hr < 2;
    ds=2024-01-01/hr=1
show partitions t where hr in (1, 3) or not ds < '2024-01-02' limit 1;
    ds=2024-01-01/hr=1
show partitions t where hour = 1;
    ! hour is not a partition key; the table is partitioned by ds, hr
alter table t add partition (ds = 'banana', hr = 1);
    ! 'banana' is not of type date, the type of ds
alter table t drop partition (ds > 'banana');
    ! 'banana' is not of type date, the type of ds
show partitions t limit 1;
    ds=2024-01-01/hr=1
alter table t add partition (ds = '2024-01-01');
    ! table shop.t is partitioned by ds, hr; give a value for hr
alter table t add partition (ds = '2024-01-01', x = 1);
    ! x is not a partition key of table shop.t; it is partitioned by ds, hr
alter table t add columns (c double comment 'y');
alter table t add columns (c double);
    ! table shop.t has a column c already
alter table t change column a a bigint comment 'new';
alter table t change nothing x int;
    ! table shop.t does not have the column nothing; it has a, b, c
describe t;
    a | bigint | new
    b | string | \N
    c | double | y
    ds | date | \N
    hr | int | \N
    # Partition Information |  |
    ds | date | \N
    hr | int | \N
describe t a;
    a | bigint | new
show columns in t like 'h*';
    hr
show tblproperties t ('k');
    k | v
alter table t set tblproperties ('x' = 'y');
alter table t unset tblproperties ('x', 'nothing');
    ! table shop.t does not have the property nothing
alter table t unset tblproperties if exists ('x', 'nothing');
show tblproperties t ('x');
    ! table shop.t does not have the property x
alter table t partition (hr = 1) set fileformat parquet;
alter table t partition (ds = '2024-01-01', hr = 1) rename to partition (ds = '2024-01-03', hr = 3);
alter table t drop partition (hr < 3);
alter table t partition (ds = '2024-01-03', hr = 3) rename to partition (ds = '2024-13-03', hr = 3);
    ! '2024-13-03' is not of type date, the type of ds
show partitions t;
    ds=2024-01-03/hr=3
alter table t drop partition (hr = 7);
    ! table shop.t does not have such a partition; SHOW PARTITIONS shop.t lists those it has
alter table t drop if exists partition (hr = 7);
create view v (id comment 'the id', ds) comment 'c' as select a, ds from t where hr = 3;
show views;
    v
describe v;
    id | bigint | the id
    ds | date | \N
create or replace view v as select b from t;
describe v;
    b | string | \N
drop table v;
    ! shop.v is a view; DROP VIEW drops it
drop view v;
drop view v;
    ! table shop.v does not exist; SHOW TABLES IN shop lists those that do
drop view if exists v;
explain locks insert into t partition (hr = 1, ds = '2024-01-01') select * from u;
    shop | t | \N | SHARED | false
    shop | t | ds=2024-01-01 | SHARED | true
    shop | t | ds=2024-01-01/hr=1 | EXCLUSIVE | true
    shop | u | \N | SHARED | true
explain locks select * from t where hr = 1 and ds = '2024-01-01' and a > 5;
    shop | t | \N | SHARED | false
    shop | t | ds=2024-01-01 | SHARED | true
    shop | t | ds=2024-01-01/hr=1 | SHARED | true
lock table t exclusive;
    1
lock table t shared;
    ! not granted in 1 try: S on shop.t; SHOW LOCKS lists the holders
show locks t extended;
    1.1 | shop | t | \N | ACQUIRED | \N | EXCLUSIVE | \N | TIME | TIME | admin | HOST | ID | EXPLICIT | lock …
unlock table t;
unlock table t;
    ! table shop.t is not locked by admin on HOST; SHOW LOCKS shows all
create role auditors;
grant role auditors to user ann;
grant select on t to role auditors with grant option;
show grant role auditors on t;
    shop | t | \N | \N | auditors | ROLE | SELECT | true | TIME | admin
show role grant user ann;
    auditors | false | TIME | admin
    public | false | \N | \N
revoke select on t from role auditors;
show grant role auditors;
drop role auditors;
create table w like t location 'file:/elsewhere';
    ! MetaException
create table w like t;
alter table w add constraint pk primary key (b);
alter table w drop constraint pk;
alter table w compact 'huge';
    ! expected 'major' or 'minor', found 'huge'
alter table w rename to x;
show tables;
    t
    x
drop table if exists nothing;
set hive.lock.numretries = 2;
set;
    hive.lock.numretries | 2
set spark.x = 1;
    ! setting spark.x is not known here
set metaconf:hive.metastore.try.direct.sql = false;
show lease nowhere.t partition (hr = 1, ds = '1');
drop force lease nowhere.t partition (ds = '1'), nowhere.*;
drop force lease *;
show lease *;
select * from t;
    ! SELECT needs an engine that reads and writes data, and a metastore is not one; run it in spark-sql
analyze table t compute statistics;
    ! behind it; hms-gateway pipeline stats writes statistics
export table t to '/x';
    ! behind it; hms-gateway export writes definitions without data
drop database shop;
    ! CASCADE drops what is in it, too
drop database shop cascade;
show tables;
"""


def steps(text):
    """Statement and what it prints."""
    found = []
    for line in text.strip().split("\n"):
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        else:
            found.append((line, []))
    return found


@pytest.fixture
def state(gateway, client):
    yield ShellState(client, "admin", "HOST")
    for lock in client.call("show_locks", ShowLocksRequest()).locks:
        client.call("unlock", UnlockRequest(lock.lockid))


@pytest.mark.slow
def test_a_session(state):
    for statement, expected in steps(SESSION):
        stream = io.StringIO()
        try:
            found = parse_statement(statement, state.database).run(state)
            if found is not None:
                write_rows(stream, "tsv", found.columns, found.rows)
        except Exception as error:
            stream.write(f"header\n! {type(error).__name__} {error}")
        lines = ID.sub("ID", TIME.sub("TIME", stream.getvalue())).rstrip("\n").replace("\t", " | ").split("\n")[1:]
        if expected and expected[0].startswith("! "):
            assert len(lines) == 1, statement
            assert expected[0][2:] in lines[0].removeprefix("! "), statement
        else:
            if statement.startswith("lock table"):
                lines = ["1"]
            if statement.startswith("show locks"):
                lines = [re.sub(r"^\d+\.1", "1.1", line).replace("lock table t exclusive", "lock …") for line in lines]
            assert [line.rstrip() for line in lines] == expected, statement


def test_transactions_are_shown_and_aborted(state, client):
    def run(statement):
        return parse_statement(statement, state.database).run(state)

    def shown():
        return {row[0]: row[1] for row in run("show transactions").rows}

    [txn_id] = client.call("open_txns", OpenTxnRequest(1, "eve", "near")).txn_ids
    assert shown()[txn_id] == "OPEN"
    run(f"abort transactions {txn_id}")
    assert shown().get(txn_id, "ABORTED") == "ABORTED"


def test_an_iceberg_table_shows_snapshots_and_refs(state, gateway):
    def shown(statement):
        found = parse_statement(statement).run(state)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    plant_snapshots(gateway, "kept", 3)
    newest, *earlier = shown("show snapshots from ice.kept")
    assert newest == {
        "committed_at": "2026-09-21T14:13:20Z", "snapshot_id": FIRST_SNAPSHOT + 2, "parent_id": None,
        "operation": "append", "added_records": 1000, "deleted_records": None, "total_records": 1000,
        "total_data_files": None, "total_files_size": 2048,
    }  # fmt: skip
    assert [each["snapshot_id"] for each in earlier] == [FIRST_SNAPSHOT + 1, FIRST_SNAPSHOT]
    assert shown("show snapshots ice.kept limit 1") == [newest]
    assert shown("show snapshots ice.kept limit 0") == []
    kept = dict.fromkeys(("max_reference_age_in_ms", "min_snapshots_to_keep", "max_snapshot_age_in_ms"))
    aged = {**kept, "max_reference_age_in_ms": 86_400_000}
    assert shown("show refs ice.kept") == [
        {"name": "main", "type": "branch", "snapshot_id": FIRST_SNAPSHOT + 2, **kept},
        {"name": "audited", "type": "tag", "snapshot_id": FIRST_SNAPSHOT, **aged},
    ]
    parse_statement("create table ice.plain (a int)").run(state)
    refused = run_sql(gateway, "--keep-going", "-e", "show snapshots ice.plain; show refs ice.gone").stderr
    assert "ice.plain is not an Iceberg table" in refused
    assert "table ice.gone does not exist; SHOW TABLES IN ice lists those that do" in refused
    parse_statement("drop database ice cascade").run(state)


def test_a_column_is_described_with_its_statistics(state, client):
    def described(statement):
        return dict(parse_statement(statement, state.database).run(state).rows)

    parse_statement("create table measured (n int comment 'c', d date, p decimal(5,2))").run(state)
    try:
        assert described("describe formatted measured n") == {
            "col_name": "n", "data_type": "int", "comment": "c", "min": None, "max": None, "num_nulls": None,
            "distinct_count": None, "avg_col_len": None, "max_col_len": None, "num_trues": None, "num_falses": None,
        }  # fmt: skip
        data = [
            ("n", "int", ColumnStatisticsData(longStats=LongColumnStatsData(-1, 7, 2, 5))),
            ("d", "date", ColumnStatisticsData(dateStats=DateColumnStatsData(Date(0), Date(19723), 0, 2))),
            ("p", "decimal(5,2)", ColumnStatisticsData(
                decimalStats=DecimalColumnStatsData(Decimal(b"\xff", 2), Decimal(b"\x04\xd2", 2), 0, 2)
            )),
        ]  # fmt: skip
        description = ColumnStatisticsDesc(True, "default", "measured")
        objects = [ColumnStatisticsObj(*each) for each in data]
        client.call("update_table_column_statistics", ColumnStatistics(description, objects))
        found = described("describe formatted measured n")
        assert [found[name] for name in ("min", "max", "num_nulls", "distinct_count")] == ["-1", "7", "2", "5"]
        for column, limits in (("d", ["1970-01-01", "2024-01-01"]), ("p", ["-0.01", "12.34"])):
            found = described(f"describe extended measured {column}")
            assert [found["min"], found["max"]] == limits
    finally:
        client.call("drop_table", "default", "measured", True)


def run_sql(gateway, *words, stdin=""):
    environment = {"HMS_GATEWAY_PASSWORD": gateway.password}
    return CliRunner().invoke(application, ["sql", "-k", "--url", gateway.url, *words], input=stdin, env=environment)


def test_statements_of_the_command_line_of_files_and_of_standard_input(gateway, tmp_path):
    (tmp_path / "a.sql").write_text("show databases like 'default';\n-- end\n")
    for words, stdin in ((["-e", "show databases like 'default'"], ""), (["-f", str(tmp_path / "a.sql")], "")):
        result = run_sql(gateway, *words, stdin=stdin)
        assert (result.exit_code, result.stdout) == (0, "database_name\ndefault\n")
    assert run_sql(gateway, stdin="show databases like 'default';").stdout == "database_name\ndefault\n"


def test_the_first_error_ends_it_with_its_place(gateway, tmp_path):
    file = tmp_path / "a.sql"
    file.write_text("show databases like 'default';\nshow\n  foo;\nshow databases;")
    result = run_sql(gateway, "-f", str(file))
    assert (result.exit_code, result.stdout) == (1, "database_name\ndefault\n")
    place, line, mark = result.stderr.rstrip("\n").split("\n")
    assert place.startswith(f"error: {file}:3:3: expected what to show (DATABASES")
    assert (line, mark.index("^") - line.index("foo")) == ("line 3:   foo;", 0)


def test_a_refused_statement_of_a_file_has_its_place(gateway, tmp_path):
    file = tmp_path / "a.sql"
    file.write_text("show databases;\n\n-- of another team\nshow tables\n  in nowhere; drop database gone;")
    result = run_sql(gateway, "--keep-going", "-f", str(file))
    first, second = result.stderr.rstrip("\n").split("\n")
    assert first.startswith(f"error: {file}:4:1: database nowhere does not exist")
    assert second.startswith(f"error: {file}:5:15: ")
    assert run_sql(gateway, "-e", "show tables in nowhere").stderr.startswith("error: database nowhere does not exist")


@pytest.mark.parametrize(
    ("statement", "text", "place"),
    [
        ("selct 1", "found selct; did you mean SELECT?", "selct"),
        ("show tabels", "found tabels; did you mean TABLES?", "tabels"),
        ("alter tabel t add columns (a int)", "found tabel; did you mean TABLE?", "tabel"),
        ("create table x (a strng)", "expected a type, found strng; did you mean STRING?", "strng"),
        (r"\d default", r"found \d", r"\d"),
        ("show databases drop table hr.t", "expected the end of the statement, found table", "table"),
    ],
)
def test_an_error_shows_the_word_as_it_is_written(gateway, statement, text, place):
    result = run_sql(gateway, "-e", statement)
    error, line, mark = result.stderr.rstrip("\n").split("\n")
    assert (result.exit_code, line, mark) == (1, statement, " " * statement.index(place) + "^")
    assert error.endswith(text)


@pytest.mark.parametrize("word", ["exit", "QUIT"])
def test_a_text_ends_where_it_leaves(gateway, word):
    result = run_sql(gateway, "-e", f"show databases like 'default'; {word}; show foo")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "database_name\ndefault\n", "")


def test_the_place_in_a_condition_is_one_in_the_statement(gateway):
    run_sql(gateway, "-e", "create table if not exists placed (a int) partitioned by (d date)")
    for rest, wrong in (
        ("where d > 'banana'", "'banana'"),
        ("where x = 1", "x ="),
        ("where d = '2024", "'2024"),
        ("where d is null or d < '2024-1-1'", "is null"),
    ):
        statement = f"show partitions placed {rest}"
        result = run_sql(gateway, "-e", statement)
        assert result.stderr.rstrip("\n").split("\n")[-2:] == [statement, " " * statement.index(wrong) + "^"]


@pytest.mark.parametrize("change", ["add partition (d='banana')", "drop partition (d > 'banana')"])
def test_the_place_of_a_value_of_the_wrong_type_is_one_in_the_statement(gateway, change):
    run_sql(gateway, "-e", "create table if not exists placed (a int) partitioned by (d date)")
    statement = f"alter table placed {change}"
    error, *place = run_sql(gateway, "-e", statement).stderr.rstrip("\n").split("\n")
    assert error.endswith("'banana' is not of type date, the type of d")
    assert place == [statement, " " * statement.index("'banana'") + "^"]


@pytest.mark.slow
def test_what_a_filter_cannot_say_is_decided_by_the_shell(gateway):
    """NOT LIKE and IS NULL have no filter, and the values are in the names."""
    parts = " ".join(
        f"partition (region='{region}', d='{d}')"
        for region, d in (("east", "2024-01-01"), ("west", "2024-01-02"), (DEFAULT_PARTITION_NAME, "2024-01-03"))
    )
    nameless = f"partition (region='east', d='{DEFAULT_PARTITION_NAME}')"
    run_sql(gateway, "-e", "create table checked (a int) partitioned by (region string, d date)")
    run_sql(gateway, "-e", f"alter table checked add {parts} {nameless}")

    def found(condition):
        result = run_sql(gateway, "-e", f"show partitions checked where {condition}")
        assert result.exit_code == 0, result.stderr
        return [name.replace(DEFAULT_PARTITION_NAME, "-") for name in result.stdout.splitlines()[1:]]

    assert found("region not like '%st' and d > '2024-01-01'") == ["region=-/d=2024-01-03"]
    assert found("region not like 'e%t'") == ["region=-/d=2024-01-03", "region=west/d=2024-01-02"]
    assert found("d is null") == ["region=east/d=-"]
    assert found("not (d is not null or region = 'west') limit 1") == ["region=east/d=-"]
    assert found("d is not null and region like 'e%'") == ["region=east/d=2024-01-01"]
    assert found("region is null or d = '2024-01-02'") == ["region=-/d=2024-01-03", "region=west/d=2024-01-02"]
    assert found("region is not null and d is null") == ["region=east/d=-"]


def test_keep_going_runs_what_comes_behind_an_error(gateway):
    result = run_sql(gateway, "--keep-going", "-e", "show foo; show databases like 'default'")
    assert (result.exit_code, result.stdout) == (1, "database_name\ndefault\n")


def test_an_answer_that_does_not_come_is_another_status(tmp_path):
    result = CliRunner().invoke(
        application, ["sql", "--url", "http://127.0.0.1:9/x", "-e", "show databases"], env={"HMS_GATEWAY_PASSWORD": "x"}
    )
    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr


def test_a_statement_as_text_is_as_it_is_and_in_json_a_value(gateway):
    text = run_sql(gateway, "-e", "show create database default").stdout
    assert text.startswith("CREATE DATABASE `default`\n")
    found = run_sql(gateway, "--format", "json", "-e", "show create database default").stdout
    assert json.loads(found)["createdb_stmt"] + "\n" == text


def test_help_is_a_statement(gateway):
    for word in ("help", "?", "HELP;"):
        assert run_sql(gateway, "-e", word).stdout.startswith("Statements end with a semicolon")


def test_what_the_metastore_says_comes_without_the_name_of_a_class(gateway):
    statements = "create role twice; grant select on database default to user t; "
    result = run_sql(gateway, "-e", f"{statements} grant select on database default to user t with grant option")
    assert "SELECT is already granted" in result.stderr
    assert result.stderr.endswith("to change its grant option, REVOKE it first\n")
    assert run_sql(gateway, "-e", "create role twice").stderr == "error: Role twice already exists.\n"


def test_a_lock_that_nothing_keeps_alive_is_named(gateway, client):
    statements = "create table if not exists held (a int); lock table held exclusive"
    text = run_sql(gateway, "-e", statements).stderr
    lock_id = int(re.search(r"nothing keeps the locks (\d+) alive now", text)[1])
    client.call("unlock", UnlockRequest(lock_id))
    assert "nothing keeps" not in run_sql(gateway, "-e", f"{statements}; unlock table held").stderr
    client.call("drop_table", "default", "held", True)


def test_hiveconf_is_checked(gateway):
    result = run_sql(gateway, "--hiveconf", "hive.lock.retries=1", "-e", "set")
    assert result.exit_code == 2
    assert "hive.lock.numretries" in result.stderr
