"""`hms-gateway locks` against a real gateway."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.cli.coordination import locks
from hms_gateway.rpc.structs import (
    CheckLockRequest,
    CommitTxnRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
    ShowLocksRequest,
    TxnAbortedException,
    UnlockRequest,
)
from tests.cli.conftest import OTHER_USER
from tests.cli.hiveql.test_lock_commands import PAGE
from tests.support.catalog import columns, new_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import METASTORE_PATH, PASSWORD, USER

AT_ONCE = ("--hiveconf", "hive.lock.numretries=0")


@pytest.fixture(autouse=True)
def no_locks(client):
    """What another test left would be in the way."""
    yield
    for lock in client.call("show_locks", ShowLocksRequest()).locks:
        client.call("force_release_lock", lock.lockid, "end of test") if lock.txnid else client.call(
            "unlock", UnlockRequest(lock.lockid)
        )


def explain(*words):
    return CliRunner().invoke(application, ["locks", "explain", *words])


def held(client):
    """Type and place of each lock."""
    return sorted(
        f"{LockType(lock.type).name} {'.'.join(filter(None, (lock.dbname, lock.tablename, lock.partname)))}"
        for lock in client.call("show_locks", ShowLocksRequest()).locks
    )


def other_lock(client, table, *, txn_id=0, type=LockType.EXCLUSIVE):
    component = LockComponent(type, LockLevel.TABLE, "default", table, operationType=DataOperationType.UPDATE)
    return client.call("lock", LockRequest([component], txn_id, "bob", "far", "job 7"))


@pytest.mark.parametrize(("statement", "expected"), PAGE.items())
def test_explain_locks_of_every_row_of_hives_page(statement, expected):
    modes = {"S": "SHARED_READ", "X": "EXCLUSIVE"}
    wanted = [lock.split(" ") for lock in expected.split(", ")]
    header, *lines = explain(statement).stdout.splitlines()
    assert header == "LOCK INFORMATION:"
    # A partition's own name has slashes where the page has points.
    assert [line.replace("/", ".") for line in lines] == [f"default.{place} -> {modes[mode]}" for mode, place in wanted]


def test_explain_structured_and_as_hive_does():
    words = ("--operation", "Add  Partition", "--on", "Sales.Orders/ds=1/hr=2", "--reads", "u")
    assert explain(*words).stdout.splitlines()[1:] == [
        "default.u -> SHARED_READ",
        "sales.orders -> SHARED_READ",
        "sales.orders.ds=1 -> SHARED_READ",
        "sales.orders.ds=1/hr=2 -> EXCLUSIVE",
    ]
    assert explain("--as-hive", *words).stdout.splitlines()[1:] == [
        "default -> SHARED_READ",
        "default.u -> SHARED_READ",
        "sales -> SHARED_READ",
        "sales.orders -> SHARED_READ",
    ]
    assert explain("--operation", "drop database", "--on", "sales.*").stdout.splitlines()[1:] == ["sales -> EXCLUSIVE"]
    assert explain("--database", "Sales", "drop table t").stdout.splitlines()[1:] == ["sales.t -> EXCLUSIVE"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give a statement, or --operation"),
        (("drop table t", "--operation", "insert"), "give a statement, or --operation"),
        (("drop table t", "--on", "t"), "belong to --operation"),
        (("make t",), "'make t': expected a statement whose locks are known, found make"),
        (("--operation", "frobnicate"), "unknown operation 'frobnicate'"),
        (("--operation", "insert", "--on", "a.b.c.d"), "'a.b.c.d' is not an object"),
        (("--operation", "insert", "--on", ".t"), "'.t' is not an object"),
        (("--operation", "insert", "--on", "t/"), "'t/' is not an object"),
        (("--operation", "insert", "--on", "d.*/p"), "'d.*/p' is not an object"),
    ],
)
def test_mistakes_are_exit_code_2(words, text):
    result = explain(*words)
    assert result.exit_code == 2
    assert text in result.stderr


def test_acquire_prints_the_id_and_release_takes_it(run, client):
    acquired = run("locks", "acquire", "insert into t2(partition p2) select .. t1 partition p1")
    assert acquired.exit_code == 0
    assert "default.t2.p2 -> EXCLUSIVE" in acquired.stderr
    assert held(client) == ["EXCLUSIVE default.t2.p2", "SHARED_READ default.t1.p1"]
    lock_id = acquired.stdout.strip()
    assert run("locks", "release", lock_id).exit_code == 0
    assert run("locks", "release", lock_id, "999999").exit_code == 0
    assert held(client) == []


@pytest.mark.slow
def test_partitions_are_locked_under_the_names_the_catalog_has_for_them(run, client):
    client.call("create_table", new_table("parted", keys=columns("ds string", "hr int")))
    try:
        for statement, locked in (
            ("alter table parted add partition (hr=2, ds='a/b')", "EXCLUSIVE default.parted.ds=a%2Fb/hr=2"),
            ("alter table parted drop partition (hr=2)", "EXCLUSIVE default.parted"),
            ("insert into parted partition (ds='1', hr) select 1", "EXCLUSIVE default.parted.ds=1"),
        ):
            acquired = run("locks", "acquire", statement)
            assert [lock for lock in held(client) if lock.startswith("EXCLUSIVE")] == [locked]
            run("locks", "release", acquired.stdout.strip())
        structured = run("locks", "acquire", "--operation", "truncate", "--on", "parted/hr=1/ds=2")
        assert held(client)[0] == "EXCLUSIVE default.parted.ds=2/hr=1"
        run("locks", "release", structured.stdout.strip())
        mistyped = run("locks", "acquire", "alter table parted drop partition (sd='1')")
        assert mistyped.exit_code == 2
        assert "sd is not a partition key of default.parted, which has ds, hr" in mistyped.stderr
        assert held(client) == []
    finally:
        client.call("drop_table", "default", "parted", True)


def test_what_is_denied_is_tried_again_as_configured_and_leaves_nothing(run, client):
    in_the_way = other_lock(client, "t")
    pauses = ("--hiveconf", "hive.lock.numretries=2", "--hiveconf", "hive.lock.sleep.between.retries=1ms")
    denied = run("locks", "acquire", *pauses, "drop table t")
    assert (denied.exit_code, denied.stdout) == (1, "")
    assert denied.stderr.count("trying again in 0.001 s") == 2
    assert "not granted in 3 tries: X on default.t" in denied.stderr
    assert held(client) == ["EXCLUSIVE default.t"]
    client.call("unlock", UnlockRequest(in_the_way.lockid))
    assert run("locks", "acquire", *AT_ONCE, "drop table t").exit_code == 0


@pytest.mark.parametrize(
    ("words", "between"), [((), ["EXCLUSIVE default.t"] * 2), (("--no-keep-place",), ["EXCLUSIVE default.t"])]
)
def test_a_place_is_kept_unless_it_is_to_be_given_up(run, client, monkeypatch, words, between):
    in_the_way = other_lock(client, "t")
    seen = []

    def pause(seconds):
        seen.append(held(client))
        client.call("unlock", UnlockRequest(in_the_way.lockid))

    monkeypatch.setattr(locks.time, "sleep", pause)
    acquired = run("locks", "acquire", *words, "drop table t")
    assert (acquired.exit_code, seen) == (0, [between])
    assert held(client) == ["EXCLUSIVE default.t"]


@pytest.mark.slow
def test_a_wait_that_is_ended_by_a_signal_leaves_no_request_behind(gateway, client):
    in_the_way = other_lock(client, "t")
    words = ("locks", "acquire", "-k", "--url", gateway.url, "--user", USER, "drop table t")
    environment = {**os.environ, "HMS_GATEWAY_PASSWORD": PASSWORD}
    with subprocess.Popen(
        [sys.executable, "-m", "hms_gateway", *words], env=environment, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr is not None
            while b"trying again" not in (line := process.stderr.readline()):
                assert line, "it ended"
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert held(client) == ["EXCLUSIVE default.t"]
    client.call("unlock", UnlockRequest(in_the_way.lockid))


def test_the_off_switch(run, client):
    result = run("locks", "acquire", "--hiveconf", "hive.support.concurrency=false", "drop table t")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing is locked: hive.support.concurrency is false" in result.stderr
    off = ("--hiveconf", "hive.support.concurrency=false", "--url", "http://127.0.0.1:1/hms")
    assert run("locks", "acquire", *off, "alter table t drop partition (ds='1')", "--", "true").exit_code == 0
    assert "needs no locks" in run("locks", "acquire", "create database d").stderr
    assert held(client) == []


@pytest.mark.parametrize("setting", ["hive.lock.numretries=x", "hive.lock.numretries", "hive.exec.parallel=true"])
def test_settings_that_are_none(run, setting):
    assert run("locks", "acquire", "--hiveconf", setting, "drop table t").exit_code == 2


@pytest.mark.slow
def test_show_in_both_forms_and_as_json(run, client):
    run("locks", "acquire", "lock table sales.t exclusive")
    other_lock(client, "u", type=LockType.SHARED_READ)
    header, *lines = (line.split("\t") for line in run("locks", "show").stdout.splitlines())
    assert header[:4] == ["lockid", "database", "table", "partition"]
    assert [line[1:3] for line in lines] == [["default", "u"], ["sales", "t"]]
    (line,) = run("locks", "show", "--table", "SALES.T").stdout.splitlines()[1:]
    assert line.split("\t")[4:8] == ["ACQUIRED", "\\N", "EXCLUSIVE", "\\N"]
    assert run("locks", "show", "--legacy").stdout == "default@u\tSHARED\nsales@t\tEXCLUSIVE\n"
    extended = run("locks", "show", "--table", "sales.t", "--extended").stdout.splitlines()
    assert extended[3:] == ["LOCK_MODE:EXPLICIT", "LOCK_QUERYSTRING:lock table sales.t exclusive"]
    (shown,) = json.loads(run("locks", "show", "--json", "--database", "default").stdout)
    assert (shown["user"], shown["hostname"], shown["agentInfo"]) == ("bob", "far", "job 7")
    assert run("locks", "show", "--table", "t", "--partition", "p=1").stdout.count("\n") == 1
    assert run("locks", "show", "--partition", "p=1").exit_code == 2
    run("locks", "acquire", "lock table w partition (ds='a/b', hr=2) shared")
    for partition in ("ds=a%2Fb/hr=2", "DS='a/b', hr=2"):
        found = run("locks", "show", "--table", "w", "--partition", partition, "--legacy").stdout
        assert found == "default@w@ds=a%2Fb/hr=2\tSHARED\n"
    assert run("locks", "show", "--table", "w", "--partition", "ds='a").exit_code == 2
    assert run("locks", "show", "--table", "w", "--partition", "ds='a') x (").exit_code == 2


def test_orphans_are_found_by_what_they_block_and_freed_by_an_administrator(run, client):
    (txn_id,) = client.call("open_txns", OpenTxnRequest(1, "bob", "far")).txn_ids
    orphan = other_lock(client, "t", txn_id=txn_id)
    waiting = other_lock(client, "t")
    other_lock(client, "idle")
    assert waiting.state == LockState.WAITING
    header, *lines = (line.split("\t") for line in run("locks", "show", "--blocking").stdout.splitlines())
    (found,) = (dict(zip(header, line, strict=True)) for line in lines)
    assert (found["lockid"], found["user"], found["hostname"], found["agent_info"], found["blocks"]) == (
        f"{orphan.lockid}.1", "bob", "far", "job 7", str(waiting.lockid),
    )  # fmt: skip
    assert found["acquired_at"] <= found["last_heartbeat"] < found["lost_at"]
    (shown,) = json.loads(run("locks", "show", "--blocking", "--json", "--table", "t").stdout)
    assert (shown["lock"]["lockid"], shown["blocked"]) == (orphan.lockid, [waiting.lockid])
    refused = run("locks", "force-release", str(orphan.lockid), user=OTHER_USER)
    assert refused.exit_code == 1
    assert "user ann is not an administrator" in refused.stderr
    freed = run("locks", "force-release", str(orphan.lockid), "--reason", "bob's host is gone")
    assert freed.stdout.splitlines()[1].split("\t")[7] == str(txn_id)
    assert client.call("check_lock", CheckLockRequest(waiting.lockid)).state == LockState.ACQUIRED
    with pytest.raises(TxnAbortedException, match="bob's host is gone"):
        client.call("commit_txn", CommitTxnRequest(txn_id))
    assert "No such lock" in run("locks", "force-release", str(orphan.lockid)).stderr


def test_two_locks_of_one_transaction_are_freed_together(run, client):
    (txn_id,) = client.call("open_txns", OpenTxnRequest(1, "bob", "far")).txn_ids
    ids = [str(other_lock(client, table, txn_id=txn_id).lockid) for table in ("a", "b")]
    freed = run("locks", "force-release", *ids)
    assert freed.exit_code == 0
    assert freed.stdout.count("\n") == 3


@pytest.mark.parametrize(
    "words",
    [
        ("acquire", "drop table `\udcff`"),
        ("acquire", "--operation", "insert", "--on", "\udcff"),
        ("show", "--table", "\udcff"),
        ("force-release", "1", "--reason", "\udcff"),
    ],
)
def test_words_that_are_no_text(run, words):
    result = run("locks", *words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "is not UTF-8" in result.stderr


@pytest.mark.parametrize("statement", ["drop table `a\0b`", "drop table " + "x" * 5_000])
def test_names_that_cannot_be_locked(run, client, statement):
    result = run("locks", "acquire", statement)
    assert (result.exit_code, result.stdout, held(client)) == (1, "", [])


def test_the_address_of_hive_4_does_as_well(run, gateway, client):
    there = ("--url", f"https://127.0.0.1:{gateway.port}{METASTORE_PATH}")
    other_lock(client, "t", type=LockType.EXCL_WRITE)
    acquired = run("locks", "acquire", "lock table t shared", *there)
    shown = json.loads(run("locks", "show", "--json", *there).stdout)
    assert [each["type"] for each in shown] == ["SHARED_READ", "EXCL_WRITE"]
    assert run("locks", "force-release", acquired.stdout.strip(), *there).exit_code == 0
    assert run("locks", "show", "--blocking", *there).stdout.count("\n") == 1


@pytest.mark.slow
def test_a_command_runs_while_the_locks_are_held(run, client, tmp_path):
    script = f"echo $HMS_LOCK_ID > {tmp_path}/id; exit 3"
    result = run("locks", "acquire", "drop table t", "--", "sh", "-c", script)
    assert result.exit_code == 3
    assert int((tmp_path / "id").read_text()) > 0
    assert held(client) == []
    missing = run("locks", "acquire", "drop table t", "--", "/nonexistent/command")
    assert missing.exit_code == 2
    assert held(client) == []
    structured = run("locks", "acquire", "--operation", "truncate", "--on", "t", "--", "true")
    assert structured.exit_code == 0


def test_a_command_is_told_to_stop_when_its_locks_are_taken_away(run, client, tmp_path):
    (tmp_path / "id").touch()

    def take_away():
        while not (text := (tmp_path / "id").read_text().strip()):
            gone.wait(0.01)
        client.call("force_release_lock", int(text), "test")

    gone = threading.Event()
    thread = threading.Thread(target=take_away)
    thread.start()
    script = f"echo $HMS_LOCK_ID > {tmp_path}/id; exec sleep 60"
    result = run("locks", "acquire", "drop table t", "--heartbeat", "0.05", "--", "sh", "-c", script)
    thread.join()
    assert result.exit_code == 1
    assert "the locks were lost and sh was stopped: No such lock" in result.stderr
