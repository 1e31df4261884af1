"""The lease service over a whole metastore; its rules are tested with `txn.rules.leases`."""

import msgspec
import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import InvalidArgumentsException, LeaseAlreadyExistsException, LeaseObject, MetaException
from tests.handlers.peers import Peer

TABLE = LeaseObject("@hive#sales", "orders", None, "x")


def test_a_lease_is_granted_listed_extended_and_dropped(older: Peer, newer: Peer) -> None:
    lease_id = older.ask("grab_lease", [TABLE], 60, 0)
    with pytest.raises(LeaseAlreadyExistsException):
        newer.ask("grab_lease", [LeaseObject("SALES")], 60, 0)
    [found] = newer.ask("list_lease", [LeaseObject("sales")])
    assert (found.lease_id, found.db_name, found.table_name, found.user) == (lease_id, "sales", "orders", "ann")
    assert older.ask("extend_lease", lease_id, [], 120) >= found.end_utc
    older.ask("drop_lease", lease_id, [])
    assert newer.ask("list_lease", []) == []
    with pytest.raises(InvalidArgumentsException):
        older.ask("extend_lease", lease_id, [], 60)


def test_a_lease_that_was_listed_is_an_argument(older: Peer) -> None:
    lease_id = older.ask("grab_lease", [TABLE, LeaseObject("sales", "items", "ds=1", "x")], 60, 0)
    partition, table = older.ask("list_lease", [])
    assert [(one.table_name, one.partition_name) for one in (partition, table)] == [("items", "ds=1"), ("orders", "")]
    assert older.ask("extend_lease", lease_id, [table], 3_600) > table.end_utc
    older.ask("drop_lease", lease_id, [partition])
    [left] = older.ask("list_lease", [table])
    assert left == msgspec.structs.replace(table, end_utc=left.end_utc)


def test_a_lease_is_taken_away_by_administrators_only(older: Peer, metastore: Metastore) -> None:
    older.ask("grab_lease", [TABLE], 60, 0)
    with pytest.raises(MetaException):
        Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, "bob").ask("force_drop_lease", [TABLE])
    assert len(older.ask("list_lease", [])) == 1
