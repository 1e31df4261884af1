"""The demo objects in a real store."""

import pytest

from hms_gateway.composition.demo import DATABASE, TABLE, load_demo
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.store import Selection
from hms_gateway.rpc.structs import Database
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from tests.support.catalog import place_empty_database
from tests.support.manual_clock import ManualClock


@pytest.fixture
def store(tmp_path):
    place_empty_database(tmp_path / "catalog.db")
    store = open_store(f"sqlite:///{tmp_path / 'catalog.db'}", ManualClock(), Limits())
    yield store
    store.close()


@pytest.fixture
def events():
    to_tjson = make_codecs(Limits()).tjson.encode
    return EventMaker(ManualClock(), to_tjson)


def event_types(store):
    return [event.event.event_type for event in store.read(lambda snapshot: snapshot.events_after(0))]


def test_the_printed_times_are_kept(store, events):
    assert load_demo(store, events)
    table = store.read(lambda snapshot: snapshot.table(DATABASE, TABLE))
    partitions = store.read(lambda snapshot: snapshot.partitions(table, Selection()))
    assert table.table.createTime == 1566250831
    assert table.table.parameters["transient_lastDdlTime"] == "1566250843"
    assert [(stored.name, stored.partition.createTime) for stored in partitions] == [
        ("hair_color=black", 1566250836),
        ("hair_color=brown", 1566250838),
    ]


def test_every_change_has_its_event(store, events):
    load_demo(store, events)
    assert event_types(store) == ["CREATE_DATABASE", "CREATE_DATABASE", "CREATE_TABLE", "ADD_PARTITION"]


def test_loading_again_changes_nothing(store, events):
    load_demo(store, events)
    before = event_types(store)
    assert not load_demo(store, events)
    assert event_types(store) == before


def test_a_default_that_was_just_made_becomes_the_printed_one(store, events):
    store.write(lambda work: (work.insert_database(Database(name="default", locationUri="file:/w")),
                              work.append_event(events.create_database(Database(name="default")))))  # fmt: skip
    load_demo(store, events)
    stored = store.read(lambda snapshot: snapshot.database("default"))
    assert stored.database.locationUri == "hdfs://nmnode-0-0.nmnode-0-svc:9000/user/hive/warehouse"


def test_a_default_in_use_stays_what_it_is(store, events):
    def fill(work):
        for name in ("default", "sales"):
            work.insert_database(Database(name=name, locationUri=f"file:/w/{name}"))
            work.append_event(events.create_database(Database(name=name)))

    store.write(fill)
    load_demo(store, events)
    stored = store.read(lambda snapshot: snapshot.database("default"))
    assert stored.database.locationUri == "file:/w/default"
    assert store.read(lambda snapshot: snapshot.table(DATABASE, TABLE)) is not None
