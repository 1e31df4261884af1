"""A path that is relative to nothing began at the root of the disk: its directory was made, and deleted on a drop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import (
    Database,
    MetaException,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table
from tests.support.kept_store import empty_database

RELATIVE_TO_NOTHING = [None, "", "file:", "file://"]


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    """One that makes and deletes directories."""
    data_dir = tmp_path / "var"
    data_dir.mkdir()
    (data_dir / DATABASE_FILE).write_bytes(empty_database())
    metastore = build_metastore(Settings(data_dir=data_dir))
    yield metastore
    metastore.store.close()


@pytest.fixture
def attacker(metastore: Metastore) -> Peer:
    peer = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
    peer.ask("create_database", Database(name="mine"))
    peer.ask("create_table", new_table(db_name="mine", keys=columns("p string")))
    return peer


@pytest.mark.parametrize("root_path", [None, "file:/"])
@pytest.mark.parametrize("location", RELATIVE_TO_NOTHING)
def test_no_directory_is_made_elsewhere(
    attacker: Peer, tmp_path: Path, location: str | None, root_path: str | None
) -> None:
    with pytest.raises(MetaException, match="location"):
        attacker.ask("add_partitions_pspec", [spec(location, tmp_path / "made", root_path)])
    assert attacker.ask("get_partitions", "mine", "t", -1) == []
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("location", RELATIVE_TO_NOTHING)
def test_a_drop_deletes_nothing_elsewhere(attacker: Peer, tmp_path: Path, location: str | None) -> None:
    victim = tmp_path / "victim" / "file"
    victim.parent.mkdir()
    victim.write_text("kept")
    with pytest.raises(MetaException):
        attacker.ask("add_partitions_pspec", [spec(location, victim.parent)])
    attacker.ask("drop_database", "mine", True, True)
    assert victim.read_text() == "kept"


def spec(location: str | None, path: Path, root_path: str | None = None) -> PartitionSpec:
    """One partition whose relative path, read as an absolute one, is `path`."""
    descriptor = StorageDescriptor(cols=columns("a int"), location=location)
    shared = PartitionSpecWithSharedSD([PartitionWithoutSD(["x"], 0, 0, str(path), {})], descriptor)
    return PartitionSpec("mine", "t", root_path, shared)
