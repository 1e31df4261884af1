"""The catalog that the handlers are tested on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from tests.handlers.peers import Peer, metastore_in
from tests.support.catalog import Catalog, open_catalog
from tests.support.kept_store import empty_database


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    """All of it, new and empty, without the edge."""
    (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    metastore = metastore_in(tmp_path)
    yield metastore
    metastore.store.close()


@pytest.fixture
def newer(metastore: Metastore) -> Peer:
    """A client of Hive 4, as Java clients are."""
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)


@pytest.fixture
def older(metastore: Metastore) -> Peer:
    """A client of Hive 2.3 that speaks TJSON."""
    return Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
