"""The soak: what it believes of objects, that it tells a lost change and a second holder, and three minutes of it."""

import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest

from benchmarks.soak_clients import Door, Holders, LockHolder, Reader, Writer, new_table
from benchmarks.soak_objects import Believed
from benchmarks.soak_rest import RestClient
from hms_gateway.rpc.structs import LockComponent, LockLevel, LockRequest, LockType
from hms_gateway.testing import RunningMetastore

ROOT = Path(__file__).parents[2]
ROUNDS = 40


def test_a_read_sees_what_was_acknowledged_when_it_began() -> None:
    believed = Believed()
    before = believed.look()
    believed.ask_for(1)
    assert believed.may_be(None, before)
    assert believed.may_be(1, before)
    believed.acknowledge()
    assert believed.may_be(None, before)
    after = believed.look()
    assert believed.may_be(1, after)
    assert not believed.may_be(None, after)
    assert believed.may_exist(True, after)
    assert not believed.may_exist(False, after)


def test_a_change_without_an_answer_may_be_made_or_not_until_it_shows() -> None:
    believed = Believed()
    believed.ask_for(1)
    believed.acknowledge()
    believed.ask_for(2)
    assert not believed.is_certain
    believed.found(1)
    assert believed.may_be(2, believed.look())
    believed.found(2)
    assert not believed.may_be(1, believed.look())
    believed.ask_for(None)
    believed.ask_for(3)
    believed.acknowledge()
    assert believed.is_certain
    assert believed.may_be(3, believed.look())


def test_holders_at_once_are_told_but_not_those_whose_lock_may_have_ended() -> None:
    holders = Holders(sure_seconds=3_600)
    assert holders.take("one") is None
    assert holders.take("other") == "one"
    holders.leave()
    assert holders.take("one") is None
    unsure = Holders(sure_seconds=-1)
    assert unsure.take("one") is None
    assert unsure.take("other") is None


@pytest.mark.slow
def test_changes_behind_the_back_of_a_writer_are_told(metastore: RunningMetastore) -> None:
    stop, wrong = threading.Event(), list[str]()
    door = Door("HTTPS", lambda: nullcontext(metastore.client))
    writer = Writer(door, stop, wrong, "soaked")
    reader = Reader(door, stop, wrong, [writer])
    for _ in range(ROUNDS):
        writer.round()
        reader.round()
    assert wrong == []
    assert {"calls", "reads", "changes"} <= writer.counts.keys()

    present = next(name for (kind, name), it in writer.objects.items() if kind == "table" and it.is_there)
    metastore.client.call("alter_table", "soaked", present, new_table("soaked", present, 1_000_000))
    reader.check_one(writer, "table", present)
    metastore.client.call("drop_table", "soaked", present, True)
    reader.check_one(writer, "table", present)
    reader.check_list(writer)
    assert [f"has {value}, not" in text for value, text in zip((1_000_000, None), wrong, strict=False)] == [True, True]
    assert f"but {present} is" in wrong[2]


@pytest.mark.slow
def test_tables_of_an_iceberg_door_are_checked_at_all_doors(metastore: RunningMetastore) -> None:
    stop, wrong = threading.Event(), list[str]()
    url, login = f"https://127.0.0.1:{metastore.port}/iceberg/v1", (metastore.user, metastore.password)
    with RestClient(httpx.Client(base_url=url, auth=login, verify=metastore.ssl_context())) as client:
        doors = [
            Door("Iceberg REST", lambda: nullcontext(client), is_icebergs=True),
            Door("HTTPS", lambda: nullcontext(metastore.client)),
        ]
        writers = [Writer(door, stop, wrong, f"soaked_{number}") for number, door in enumerate(doors)]
        readers = [Reader(door, stop, wrong, writers) for door in doors]
        for _ in range(ROUNDS):
            for worker in writers:
                worker.round()
        for reader in readers:
            reader.check_all()
        assert wrong == []
        assert [writer.counts["no answer"] for writer in writers] == [0, 0]
        metastore.client.call("drop_database", "soaked_0", True, True)
        for reader in readers:
            reader.check_one(writers[0], *next(kept for kept, it in writers[0].objects.items() if it.is_there))
    assert len(wrong) == 2


@pytest.mark.slow
def test_a_holder_finds_the_lock_that_it_got_without_an_answer(metastore: RunningMetastore) -> None:
    stop, wrong = threading.Event(), list[str]()
    holder = LockHolder(Door("HTTPS", lambda: nullcontext(metastore.client)), stop, wrong, Holders(10))
    wanted = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "default", "soaked")
    metastore.client.call("lock", LockRequest([wanted], None, "soak", holder.name))
    holder._has_lost_one = True
    holder.round()
    assert (wrong, holder.counts["changes"]) == ([], 1)


@pytest.mark.whole
@pytest.mark.postgres
def test_three_minutes_with_each_fault() -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "benchmarks", "soak", "--hours", "0.05"]
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    faults = ran.stdout.partition("## Faults")[2].partition("##")[0]
    assert len([line for line in faults.splitlines() if line.startswith("| ")]) - 2 == 10, ran.stdout
