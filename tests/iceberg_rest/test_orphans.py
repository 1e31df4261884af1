"""Files of commits that never were: which are found in the folder of a table, and which are not."""

import uuid
from pathlib import Path

import msgspec
import pytest

from hms_gateway.composition.places import directories
from hms_gateway.iceberg.appends import REBASE
from hms_gateway.iceberg.orphans import find_orphans
from hms_gateway.rpc.call import Dialect
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import USER
from tests.iceberg_rest.test_appends import Writer

PATH = "namespaces/sales/tables/orders"


def path_of(location):
    return Path(location.removeprefix("file:"))


@pytest.fixture
def orphans(metastore, tmp_path):
    """The names of those that are found."""
    settings = Settings(data_dir=tmp_path)
    place = metastore.store, directories(settings), settings.limits
    return lambda: [path_of(one.location).name for one in find_orphans(*place, "sales", "orders")]


def left_by_a_crash(loaded):
    """The file of a commit that began from this state; its name."""
    base = loaded["metadata-location"]
    number = int(path_of(base).name.partition("-")[0]) + 1
    log = [*loaded["metadata"]["metadata-log"], {"timestamp-ms": 1, "metadata-file": base}]
    file = path_of(base).with_name(f"{number:05}-{uuid.uuid4()}.metadata.json")
    file.write_bytes(msgspec.json.encode({**loaded["metadata"], "metadata-log": log}))
    return file.name


def set_on(rest, value):
    status, found = rest.commit("orders", {"action": "set-properties", "updates": {"a": value}})
    assert status == 200
    return found


def test_a_metadata_file_is_one_once_another_has_its_place(rest, orphans):
    made = rest.table()
    left = left_by_a_crash(made)
    assert orphans() == []
    set_on(rest, "b")
    assert orphans() == [left]
    half = path_of(made["metadata-location"]).with_name(f"00001-{uuid.uuid4()}.metadata.json")
    half.write_bytes(b'{"format-version"')
    half.with_name(f"snap-5-{uuid.uuid4()}.avro").write_bytes(b"Obj")
    assert orphans() == [left]


def test_the_history_is_read_beyond_the_log(rest, orphans):
    left = left_by_a_crash(rest.table(properties={"write.metadata.previous-versions-max": "1"}))
    for number in range(4):
        found = set_on(rest, str(number))
    assert len(found["metadata"]["metadata-log"]) == 1
    assert orphans() == [left]


def test_states_that_somebody_left_behind_are_none(rest, orphans):
    first = rest.table(properties={REBASE: "true"})
    late = Writer(rest, first)
    set_on(rest, "one")
    assert Writer(rest, first).append(1)[0] == 200
    left = late.append(2)[1]["metadata"]["snapshots"][-1]["manifest-list"]
    body = {"name": "orders", "metadata-location": first["metadata-location"], "overwrite": True}
    assert rest.post("namespaces/sales/register", body)[0] == 200
    assert Writer(rest, first).append(3)[0] == 200
    assert late.append(4)[0] == 200
    assert path_of(left).exists()
    assert orphans() == []


def test_a_list_is_one_once_another_has_its_number(rest, orphans):
    table = rest.table(properties={REBASE: "true"})
    writer = Writer(rest, table)
    body = writer.request(1)
    names = [f"snap-1-{uuid.uuid4()}.avro", f"snap-1-0-{uuid.uuid4()}.avro", "other.avro"]
    for name in names:
        (writer.folder / name).write_bytes((writer.folder / "1.avro").read_bytes())
    assert orphans() == []
    assert Writer(rest, table).append(2)[0] == 200
    assert orphans() == names[:1]
    again = f"snap-2-{uuid.uuid4()}.avro"
    (writer.folder / again).write_bytes((writer.folder / "2.avro").read_bytes())
    assert sorted(orphans()) == sorted([names[0], again])
    assert rest.post(PATH, body)[0] == 200
    assert sorted(orphans()) == sorted([names[0], again])


def test_a_place_with_a_second_table_has_none(rest, orphans, metastore):
    left = left_by_a_crash(rest.table())
    set_on(rest, "b")
    assert orphans() == [left]
    hive = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER)
    row = hive.ask("get_table", "sales", "orders")
    hive.ask("create_table", msgspec.structs.replace(row, tableName="copy"))
    assert orphans() == []


def test_what_is_no_table_of_iceberg_has_none(rest, orphans):
    assert orphans() == []
