"""Who changed what, kept with the events and after they are forgotten."""

import pytest

from hms_gateway.handlers.service import CHANGES_MAX
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import ChangesRequest, Database, MetaException, SerDeInfo, StorageDescriptor, Table
from tests.handlers.peers import Peer


@pytest.fixture
def peers(metastore) -> dict[str, Peer]:
    peers = {
        name: Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, principal=name)
        for name in ("admin", "ann", "bob")
    }
    peers["ann"].ask("create_database", Database(name="sales"))
    for name in ("ann", "bob"):
        descriptor = StorageDescriptor(cols=[], serdeInfo=SerDeInfo(), location="file:/x")
        table = Table(dbName="sales", tableName=f"of_{name}", sd=descriptor, tableType="EXTERNAL_TABLE")
        peers[name].ask("create_table", table)
    peers["bob"].ask("drop_table", "sales", "of_ann", False)
    return peers


def asked(peers, **fields) -> list[tuple]:
    found = peers["admin"].ask("list_changes", ChangesRequest(**fields))
    return [(change.user, change.event_type, change.table_name) for change in found if change.db_name == "sales"]


DROPPED = ("bob", "DROP_TABLE", "of_ann")
MADE = ("ann", "CREATE_TABLE", "of_ann")


def test_changes_are_found_by_user_object_and_time(peers):
    assert asked(peers) == [
        DROPPED,
        ("bob", "CREATE_TABLE", "of_bob"),
        MADE,
        ("ann", "CREATE_DATABASE", None),
    ]
    assert asked(peers, db_name="SALES", table_name="Of_Ann") == [DROPPED, MADE]
    assert asked(peers, user="ann") == [MADE, ("ann", "CREATE_DATABASE", None)]
    assert asked(peers, limit=1) == [DROPPED]
    assert asked(peers, from_time=2**40) == asked(peers, until_time=1) == asked(peers, user="x\0") == []
    newest = peers["admin"].ask("list_changes", ChangesRequest(limit=1))[0]
    assert newest.method == "drop_table"
    assert asked(peers, before_event_id=newest.event_id, limit=2)[-1] == MADE


def test_changes_stay_known_when_their_events_are_forgotten_until_their_own_time(peers, metastore):
    everything = asked(peers)
    metastore.store.write(lambda tx: tx.delete_events_before(2**40, 1_000))
    assert asked(peers) == everything
    assert metastore.store.forget_changes(2**40) > 0
    assert asked(peers) == [DROPPED]  # the newest event always stays


def test_it_is_for_administrators_and_within_bounds(peers):
    with pytest.raises(MetaException, match="bob is not an administrator"):
        peers["bob"].ask("list_changes", ChangesRequest())
    with pytest.raises(MetaException, match=f"1 to {CHANGES_MAX}"):
        peers["admin"].ask("list_changes", ChangesRequest(limit=0))
