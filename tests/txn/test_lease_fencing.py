"""Leases and fencing from outside: a real server, its clients, and one that is stopped past the end of its lease."""

import os
import signal
import threading
from pathlib import Path

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import (
    EnvironmentContext,
    InvalidOperationException,
    LeaseAlreadyExistsException,
    LeaseObject,
    MetaException,
)
from hms_gateway.testing import RunningMetastore
from tests.support.catalog import columns, new_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.warm_program import WarmModule

pytestmark = pytest.mark.slow


@pytest.fixture
def client(metastore: RunningMetastore) -> MetastoreClient:
    metastore.client.call("create_table", new_table("t", keys=columns("ds string")))
    return metastore.client


def client_of(metastore: RunningMetastore, lease_id: int | None = None) -> MetastoreClient:
    headers = {} if lease_id is None else {"X-HMS-Lease-Id": str(lease_id)}
    login = (metastore.user, metastore.password)
    return MetastoreClient(metastore.url, login, metastore.ssl_context(), headers=headers)


def lease(table: str | None = "t", partition: str | None = None, kind: str = "x") -> list[LeaseObject]:
    return [LeaseObject("default", table, partition, kind)]


def test_the_writes_of_a_holder_that_slept_past_its_lease_are_all_refused(metastore, client):
    process = WarmModule("tests.txn.writing_process", metastore.url, metastore.user, metastore.password, "2", "20")
    try:
        first_id = int(process.stdout.readline().split()[1])
        assert process.stdout.readline() == "written 1\n"
        os.kill(process.pid, signal.SIGSTOP)
        # The server waits for the end of the first lease.
        second_id = client.call("grab_lease", lease(), 60, 10)
        assert second_id > first_id
        table = client.call("get_table", "default", "t")
        table.parameters["writer"] = "second"
        with client_of(metastore, second_id) as second:
            second.call("alter_table", "default", "t", table)
        os.kill(process.pid, signal.SIGCONT)
        rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    outcomes = rest.splitlines()
    refused = [line for line in outcomes if line.startswith("refused")]
    assert len(refused) == 20
    assert all(f"Refused: lease {first_id} is not held any more" in line for line in refused)
    # What was written was so before the holder fell asleep.
    assert outcomes[-20:] == refused
    assert client.call("get_table", "default", "t").parameters["writer"] == "second"


def test_a_partition_may_be_changed_under_its_lease_and_nothing_else(metastore, client):
    lease_id = client.call("grab_lease", lease(partition="ds=1"), 60, 0)
    with client_of(metastore, lease_id) as fenced:
        fenced.call("append_partition", "default", "t", ["1"])
        with pytest.raises(MetaException, match=f"lease {lease_id} does not hold default.t/ds=2"):
            fenced.call("append_partition", "default", "t", ["2"])
        with pytest.raises(MetaException, match=r"does not hold default\.t\)"):
            fenced.call("drop_table", "default", "t", True)
        assert fenced.call("get_partition_names", "default", "t", -1) == ["ds=1"]
        assert fenced.call("drop_partition", "default", "t", ["1"], True)


def test_a_partition_is_renamed_under_a_lease_on_both_names(metastore, client):
    renamed = client.call("append_partition", "default", "t", ["1"])
    renamed.values = ["2"]
    for held, missing in (("ds=1", "ds=2"), ("ds=2", "ds=1")):
        lease_id = client.call("grab_lease", lease(partition=held), 60, 0)
        refused = pytest.raises(InvalidOperationException, match=f"does not hold default.t/{missing}")
        with client_of(metastore, lease_id) as fenced, refused:
            fenced.call("rename_partition", "default", "t", ["1"], renamed)
        client.call("drop_lease", lease_id, [])
    both = client.call("grab_lease", lease(partition="ds=1") + lease(partition="ds=2"), 60, 0)
    with client_of(metastore, both) as fenced:
        fenced.call("rename_partition", "default", "t", ["1"], renamed)
    assert client.call("get_partition_names", "default", "t", -1) == ["ds=2"]


def test_the_environment_context_presents_a_lease_as_well(client):
    stale = EnvironmentContext({"hms.lease.id": "999999"})
    table = client.call("get_table", "default", "t")
    with pytest.raises(InvalidOperationException, match="lease 999999 is not held"):
        client.call("alter_table_with_environment_context", "default", "t", table, stale)
    lease_id = client.call("grab_lease", lease(), 60, 0)
    held = EnvironmentContext({"hms.lease.id": str(lease_id)})
    client.call("alter_table_with_environment_context", "default", "t", table, held)


def test_nothing_of_a_refused_rename_is_left_behind(metastore, client):
    lease_id = client.call("grab_lease", lease(table="other"), 60, 0)
    table = client.call("get_table", "default", "t")
    location = Path(table.sd.location.removeprefix("file:"))
    table.tableName = "renamed"
    for presented in (lease_id, 999999):
        with (
            client_of(metastore, presented) as fenced,
            pytest.raises(InvalidOperationException, match="Refused: lease"),
        ):
            fenced.call("alter_table", "default", "t", table)
        assert client.call("get_table", "default", "t").sd.location == f"file:{location}"
        assert location.is_dir()
        assert not location.with_name("renamed").exists()


def test_a_waiting_grab_is_granted_as_soon_as_the_lease_is_dropped(metastore, client):
    first = client.call("grab_lease", lease(), 3_600, 0)
    outcomes = []

    def wait():
        with client_of(metastore) as other:
            outcomes.append(other.call("grab_lease", lease(), 60, 300))

    waiter = threading.Thread(target=wait)
    waiter.start()
    with pytest.raises(LeaseAlreadyExistsException):
        client.call("grab_lease", lease(kind="s"), 60, 0)
    client.call("drop_lease", first, [])
    waiter.join(PATIENCE_SECONDS)
    assert outcomes
    assert outcomes[0] > first
