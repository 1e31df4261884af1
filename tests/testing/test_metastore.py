"""Metastores for tests of other programs, as a test has them."""

import contextlib
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_gateway import Database, MetastoreClient, NotTrusted, testing
from hms_gateway.client.thrift_client import ThriftClient
from hms_gateway.rpc.structs import MetaException
from hms_gateway.testing import MetastoreDidNotStart, RunningMetastore, running
from hms_gateway.testing import metastore as new_metastore
from hms_gateway.testing.host import GatewayPlace
from hms_gateway.testing.plugin import MissingPackage
from tests.bridge.bridge_process import ApacheClient
from tests.support.sasl_client import PlainTransport

pytestmark = pytest.mark.slow

NOBODY = 65_534


def test_both_ports_show_the_same_empty_catalog(metastore: RunningMetastore) -> None:
    assert metastore.client.call("get_all_databases") == ["default"]
    with ThriftClient("127.0.0.1", metastore.thrift_port) as engine:
        engine.call("create_database", Database(name="shop", locationUri=f"{metastore.warehouse.as_uri()}/shop.db"))
    assert metastore.client.call("get_all_databases") == ["default", "shop"]
    assert (metastore.warehouse / "shop.db").is_dir()
    # Not that of the metastore that the host made to be warm.
    assert metastore.client.call("get_database", "default").locationUri == f"file:{metastore.warehouse}"


def test_the_next_at_a_place_is_empty_and_has_its_ports_and_warehouse() -> None:
    with running({}, "kept") as first:
        first.client.call("create_database", Database(name="shop"))
        engine = ThriftClient("127.0.0.1", first.thrift_port)
        assert engine.call("get_all_databases") == ["default", "shop"]
    with running({}, "kept") as second:
        assert second.client.call("get_all_databases") == ["default"]
        assert (second.url, second.thrift_url, second.warehouse) == (first.url, first.thrift_url, first.warehouse)
        assert not (second.warehouse / "shop.db").exists()
        # What was connected to the first one does not see the second by accident.
        with engine, pytest.raises(Exception, match="broke"):
            engine.call("get_all_databases")
    assert not second.warehouse.parent.exists()


def test_a_test_that_was_interrupted_while_it_waited_harms_none_behind_it() -> None:
    with running({}, "kept") as first:
        host = testing._host()
    assert host._process.stdin is not None
    # A start whose answer nobody has read, as after Ctrl-C or a timeout.
    host._process.stdin.write('{"number": -1, "do": "start", "place": "kept", "settings": {}}\n')
    with running({}, "kept") as second:
        assert second.client.call("get_all_databases") == ["default"]
    assert second.url == first.url


def test_what_a_test_made_read_only_does_not_stay() -> None:
    me = os.geteuid()
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o777)
        os.seteuid(me or NOBODY)  # root deletes everything
        try:
            place = GatewayPlace(Path(root, "0"))
            for folder in (place.folder, place.folder / "shop.db", place.folder / "shop.db" / "orders"):
                folder.mkdir()
            (place.folder / "shop.db" / "orders" / "file").touch()
            (place.folder / "shop.db" / "orders").chmod(0)
            (place.folder / "shop.db").chmod(0o500)
            place.stop()
            assert os.listdir(root) == []
            for reserved in place._reserved:
                reserved.close()
        finally:
            os.seteuid(me)


def test_metastores_at_once_know_nothing_of_each_other() -> None:
    with new_metastore() as first, new_metastore(authorization="grants") as second:
        first.client.call("create_database", Database(name="shop"))
        assert second.client.call("get_all_databases") == ["default"]
        with (
            ThriftClient("127.0.0.1", second.thrift_port) as stranger,
            pytest.raises(MetaException, match="lacks CREATE"),
        ):
            stranger.call("create_database", Database(name="shop"))


def test_only_who_is_told_trusts_the_certificate(metastore: RunningMetastore) -> None:
    with MetastoreClient(metastore.url, (metastore.user, metastore.password)) as client, pytest.raises(NotTrusted):
        client.call("get_all_databases")


def test_the_thrift_port_shows_the_same_certificate_and_asks_for_logins_where_the_settings_say_so() -> None:
    with new_metastore(thrift_tls=True, thrift_sasl="require") as guarded:

        def databases(password: str) -> list[str]:
            transport = PlainTransport(guarded.thrift_port, guarded.user, password, guarded.ssl_context())
            with contextlib.closing(transport):
                return ApacheClient(transport).get_all_databases()

        assert databases(guarded.password) == ["default"]
        with pytest.raises(MetaException, match="wrong"):
            databases("another")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"authorisation": "off"}, "authorisation: unknown setting"),
        ({"txn_timeout_seconds": -1}, "txn_timeout_seconds"),
        ({"port": 9083, "data_dir": "here"}, "data_dir, port: hms_gateway.testing chooses it"),
        ({"database_url": "sqlite:////nowhere/catalog.db"}, "database file cannot be used"),
    ],
)
def test_a_wrong_setting_is_named_and_harms_no_other_test(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(MetastoreDidNotStart, match=problem), running(settings, "named"):
        pass
    with running({}, "named") as again:
        assert again.client.call("get_all_databases") == ["default"]


def test_a_missing_package_is_an_error_that_names_the_extra(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.hive", None)
    with pytest.raises(MissingPackage, match=r"hms-gateway\[pyiceberg\]"):
        request.getfixturevalue("metastore_iceberg")


@pytest.mark.iceberg
def test_pyiceberg_has_the_catalog(metastore_iceberg) -> None:
    metastore_iceberg.create_namespace("shop")
    assert ("shop",) in metastore_iceberg.list_namespaces()


@pytest.mark.whole
def test_fifty_run_at_once() -> None:
    with ExitStack() as stack:
        every = [stack.enter_context(new_metastore()) for _ in range(50)]
        for number, one in enumerate(every):
            one.client.call("create_database", Database(name=f"of_{number}"))
        for number, one in enumerate(every):
            assert one.client.call("get_all_databases") == ["default", f"of_{number}"]
