"""A gateway over HTTPS with something in it, and the real metastore over Thrift."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.pipeline.content import Metastore, fill, filled_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with filled_gateway(tmp_path_factory.mktemp("pipeline-gateway")) as metastore:
        yield metastore


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    peer = RealMetastore(Path(tmp_path_factory.mktemp("pipeline-real")))
    try:
        peer.start()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        metastore = Metastore({"url": f"thrift://127.0.0.1:{peer.port}"})
        fill(metastore)
        yield metastore
    finally:
        peer.stop()
