"""A catalog of every kind of object goes from the real metastore to a gateway, and back, and differs in nothing."""

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.errors import CallsRefused, GatewayAway, JobFailed, UsageRefused
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.migrate.job import MigrateArguments, migrate
from hms_gateway.rpc.structs import (
    Catalog,
    CreateCatalogRequest,
    Database,
    GetValidWriteIdsRequest,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
)
from tests.bridge.bridge_process import connected
from tests.oracle.peer import PeerUnavailable, RealMetastore
from tests.oracle.third_peer import ThirdMetastore
from tests.pipeline.content import Metastore, add_partitions, fill, filled_gateway, make_table, storage
from tests.pipeline.migrate.content import fill_rest, table
from tests.support.catalog_dump import differing, dump
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import PASSWORD, GatewayServer, free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclasses.dataclass
class Side:
    """A metastore, and its Thrift port."""

    metastore: Metastore
    port: int
    folder: Path

    @property
    def connection(self) -> Connection:
        return Connection.of(self.metastore.options, {})

    def dump(self) -> dict[str, Any]:
        with connected(self) as client:
            return dump(client)


@contextlib.contextmanager
def gateway_in(folder: Path, **settings: object):
    port = free_port()
    with GatewayServer(folder, settings={"thrift_port": port, **settings}) as server:
        options = {"url": server.url, "user": server.user, "password": server.password}
        metastore = Metastore({**options, "cafile": str(server.data_dir / "certificate.pem")}, server)
        yield Side(metastore, port, folder)


@pytest.fixture(scope="module", params=["a gateway", pytest.param("the real metastore", marks=pytest.mark.whole)])
def source(request, tmp_path_factory):
    """A metastore with everything in it."""
    with contextlib.ExitStack() as stack:
        if request.param == "a gateway":
            folder = tmp_path_factory.mktemp("migrate-everything")
            side = stack.enter_context(gateway_in(folder, file_roots=[f"file:{folder}/elsewhere"]))
        else:
            real = request.getfixturevalue("real_metastore")
            side = Side(Metastore({"url": f"thrift://127.0.0.1:{real.port}"}), real.port, real.folder)
        fill(side.metastore)
        with side.metastore.client() as client:
            fill_rest(client, str(side.folder), allocates=side.metastore.server is not None)
        yield side


@pytest.fixture
def third(tmp_path_factory):
    """Hive 3's metastore, with what it can hold of the same; its process ends with the test."""
    try:
        with ThirdMetastore(tmp_path_factory.mktemp("migrate-third")) as peer:
            side = Side(Metastore({"url": f"thrift://127.0.0.1:{peer.port}"}), peer.port, peer.folder)
            fill(side.metastore)
            with side.metastore.client() as client:
                fill_rest(client, str(peer.folder), transactional=False)
            yield side
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def target(tmp_path):
    """An empty gateway that manages directories."""
    with gateway_in(tmp_path / "var") as side:
        yield side


@pytest.fixture
def options(target, tmp_path):
    return JobOptions(connection=target.connection, state=str(tmp_path / "state"), patience_seconds=20)


def from_(source: Side, **given: Any) -> MigrateArguments:
    return MigrateArguments(source=source.connection, **given)


def directories(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


def test_a_catalog_arrives_whole_and_what_changes_later_too(spark, source, target, options):
    before = directories(target.folder)
    without = MigrateArguments(source=dataclasses.replace(source.connection, catalog="spark"))
    is_real = source.metastore.server is None
    says = "cannot be there: the metastore has no catalogs" if is_real else "does not exist; the metastore has hive"
    with pytest.raises(CallsRefused, match=f"catalog spark {says}"):
        migrate(options, without, spark=spark)
    planned = migrate(dataclasses.replace(options, dry_run=True), from_(source), spark=spark)
    assert (planned.status, planned.counts["tables"]) == ("planned", 9)
    again = dataclasses.replace(options, resume=planned.run)
    result = migrate(again, from_(source), spark=spark)
    assert (result.status, result.differences) == ("done", ())
    assert [one.item for one in result.refusals] == ["everything.rows"]
    assert "resume the run with --last" in result.refusals[0].reason
    assert result.counts["compared partitions"] == 18
    assert differing(source.dump(), target.dump()) == {}
    assert write_ids(target) == (0, [])

    with source.metastore.client() as client:
        change(client)
    result = migrate(again, from_(source, last=True), spark=spark)
    assert (result.refusals, result.differences) == ((), ())
    assert differing(source.dump(), target.dump()) == {}
    assert write_ids(target) == (3, [2])
    assert directories(target.folder) == before
    with target.metastore.client() as client:
        assert client.call("list_lease", []) == []
        login = target.metastore.options
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        given = ["--user", login["user"], "--cacert", login["cafile"]]
        subprocess.run(
            ["sh", result.rollback, *given],
            env=environment | {"HMS_GATEWAY_PASSWORD": login["password"]},
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        assert client.call("get_all_databases") == ["default"]
        assert client.call("get_all_functions").functions == []


@pytest.mark.whole
def test_a_catalog_of_hive_3_arrives_whole(spark, third, target, options):
    result = migrate(options, from_(third), spark=spark)
    assert (result.status, result.refusals, result.differences) == ("done", (), ())
    assert (result.counts["compared tables"], result.counts["compared partitions"]) == (8, 18)
    assert differing(without_catalogs(third.dump()), without_catalogs(target.dump())) == {}

    with third.metastore.client() as client:
        parameters = {"transactional": "true", "transactional_properties": "insert_only"}
        client.call("create_table", table("inserted", storage(("id", "int")), parameters))
    again = dataclasses.replace(options, resume=result.run)
    result = migrate(again, from_(third, last=True), spark=spark)
    assert (result.status, result.refusals, result.differences) == ("done", (), ())
    with target.metastore.client() as client:
        assert client.call("get_table", "everything", "inserted").parameters.items() >= parameters.items()


@pytest.mark.whole
def test_another_catalog_of_hive_3_arrives_as_the_default_one(spark, third, target, options):
    """Its databases, and none of those of the same names beside it."""
    with third.metastore.client() as client:
        new = Catalog("spark", None, f"file:{third.folder}/spark")
        client.call("create_catalog", CreateCatalogRequest(new))
    connection = dataclasses.replace(third.connection, catalog="spark")
    with PatientClient(connection, 20) as client:
        client.call("create_database", Database(name="shop", description="of spark", parameters={"k": "v"}))
        make_table(client, "shop", "orders", ("day", "string"))
        add_partitions(client, "shop", "orders", [["a"], ["b"]])
        make_table(client, "shop", "items")
    result = migrate(options, MigrateArguments(source=connection), spark=spark)
    assert (result.status, result.refusals, result.differences) == ("done", (), ())
    with target.metastore.client() as client:
        assert client.call("get_all_databases") == ["default", "shop"]
        assert client.call("get_all_tables", "shop") == ["items", "orders"]
        assert client.call("get_partition_names", "shop", "orders", -1) == ["day=a", "day=b"]
        assert client.call("get_database", "shop").description == "of spark"


def without_catalogs(found: dict[str, Any]) -> dict[str, Any]:
    """Hive 3 names its one catalog; the target answers as 2.3, which has none."""
    names = ("catName", "catalogName")
    found = {name.replace("catName='hive'", "catName=None"): value for name, value in found.items()}
    return {
        name: without(value, *names, "hiveObject") if isinstance(value, dict) else value
        for name, value in found.items()
    }


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name not in names}


def change(client: Any) -> None:
    """Changes of all kinds, with an event and without."""
    client.call("drop_table", "stock", "items", False)
    make_table(client, "stock", "later", ("k", "string"))
    add_partitions(client, "stock", "later", [["1"], ["2"]])
    renamed = client.call("get_table", "sales", "customers")
    renamed.tableName, renamed.parameters = "clients", {**renamed.parameters, "was": "customers"}
    client.call("alter_table", "sales", "customers", renamed)
    client.call("drop_partition_by_name", "sales", "orders", "ds=2024-01-01/hr=1", False)
    one = client.call("get_partition", "sales", "orders", ["2024-01-02", "2"])
    one.parameters = {**one.parameters, "changed": "yes"}
    client.call("alter_partition", "sales", "orders", one)
    client.call("rename_partition", "sales", "orders", ["2024-01-03", "2"], moved(client))
    client.call("create_database", Database(name="new", description="later"))
    make_table(client, "new", "one")
    client.call("drop_function", "sales", "twice")
    client.call("alter_database", "everything", Database(name="everything", parameters={"b": "2"}, ownerName="ann"))
    client.call("delete_table_column_statistics", "sales", "clients", "id")
    client.call("delete_partition_column_statistics", "sales", "days", "d=2024-01-01", "id")
    client.call("revoke_role", "readers", "ann", PrincipalType.USER)
    grants = client.call("list_privileges", "reporter", PrincipalType.USER, HiveObjectRef(HiveObjectType.TABLE))
    client.call("revoke_privileges", PrivilegeBag(grants))


def moved(client: Any) -> Any:
    one = client.call("get_partition", "sales", "orders", ["2024-01-03", "2"])
    one.values = ["2024-01-03", "20"]
    return one


def write_ids(side: Side) -> tuple[int, list[int]]:
    with side.metastore.client() as client:
        found = client.call("get_valid_write_ids", GetValidWriteIdsRequest(fullTableNames=["everything.rows"]))
    (one,) = found.tblValidWriteIds
    return one.writeIdHighWaterMark, sorted(one.invalidWriteIds)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A gateway as a source, which is quick to read. One of its own: others fill the shared one."""
    with filled_gateway(tmp_path_factory.mktemp("migrate-source")) as gateway:
        yield Side(gateway, 0, gateway.server.data_dir)


@pytest.fixture
def lake(target, options):
    """Options for the catalog `lake` of the target."""
    with target.metastore.client() as client:
        new = Catalog("lake", None, f"file:{target.folder}/warehouse/lake")
        client.call("create_catalog", CreateCatalogRequest(new))
    return dataclasses.replace(options, connection=dataclasses.replace(options.connection, catalog="lake"))


def test_conflicts_are_skipped_replaced_or_end_the_run(spark, small, target, lake):
    """In another catalog than the default one, which stays empty."""
    options, connection = lake, lake.connection
    with PatientClient(connection, 20) as client:
        client.call("create_database", Database(name="sales"))
        make_table(client, "sales", "customers", ("other", "string"))
        make_table(client, "sales", "days", ("d", "date"))
        add_partitions(client, "sales", "days", [["2024-01-01"], ["2030-01-01"]])
    only = dataclasses.replace(options, only=("sales.*",))
    with pytest.raises(JobFailed, match="database sales: it is in the target and differs from the source"):
        migrate(only, from_(small, on_conflict="fail"), spark=spark)
    skipped = migrate(only, from_(small), spark=spark)
    assert {"database sales", "sales.customers", "sales.days"} <= {one.item for one in skipped.refusals}
    assert skipped.exit_status == 1
    assert {one.object for one in skipped.differences} >= {"sales", "sales.customers"}
    replaced = migrate(only, from_(small, on_conflict="replace"), spark=spark)
    assert (replaced.refusals, replaced.differences) == ((), ())
    with PatientClient(connection, 20) as client:
        assert client.call("get_partition_names", "sales", "customers", -1) == []
        assert len(client.call("get_partition_names", "sales", "days", -1)) == 3
    with target.metastore.client() as client:
        assert client.call("get_all_databases") == ["default"]


@pytest.mark.whole
def test_a_catalog_goes_into_another_one_and_back(spark, small, target, options, lake):
    result = migrate(lake, from_(small), spark=spark)
    assert (result.status, result.refusals, result.differences) == ("done", (), ())
    assert "--catalog lake drop_database sales " in Path(result.rollback).read_text()
    missing = dataclasses.replace(lake.connection, catalog="missing")
    for wrong in (dataclasses.replace(options, connection=missing), options):
        source = small.connection if wrong is not options else missing
        with pytest.raises(CallsRefused, match="catalog missing does not exist; the metastore has hive, lake"):
            migrate(wrong, MigrateArguments(source=source), spark=spark)
    with pytest.raises(UsageRefused, match="source and target are both"):
        migrate(lake, MigrateArguments(source=lake.connection), spark=spark)
    back = migrate(options, MigrateArguments(source=lake.connection), spark=spark)
    assert (back.status, back.refusals, back.differences) == ("done", (), ())
    assert back.counts == {**result.counts, "events": back.counts.get("events", 0)}
    with target.metastore.client() as client, PatientClient(lake.connection, 20) as within:
        names = client.call("get_all_databases")
        assert names == within.call("get_all_databases")
        assert all(client.call("get_all_tables", name) == within.call("get_all_tables", name) for name in names)


def test_users_who_may_not_record_are_refused_before_anything_is_done(spark, small, target, options, tmp_path):
    wrong = dataclasses.replace(options.connection, password="wrong")
    with pytest.raises(CallsRefused, match="401"):
        migrate(dataclasses.replace(options, connection=wrong), from_(small), spark=spark)
    source = dataclasses.replace(small.connection, password="wrong")
    with pytest.raises(CallsRefused, match="401"):
        migrate(options, MigrateArguments(source=source), spark=spark)
    with target.metastore.client() as client:
        assert client.call("get_all_databases") == ["default"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"on_conflict": "ask"}, "--on-conflict 'ask' is not one of skip, replace, fail"),
        ({"verify": "half"}, "--verify 'half' is not one of full, none"),
        ({"kinds": ("views",)}, "kind 'views' is not one of"),
    ],
)
def test_arguments_that_do_not_fit(small, tmp_path, changes, text):
    here = JobOptions(connection=dataclasses.replace(small.connection, url="https://elsewhere"), state=str(tmp_path))
    with pytest.raises(UsageRefused, match=text):
        migrate(here, from_(small, **changes))
    with pytest.raises(UsageRefused, match="source and target are both"):
        migrate(dataclasses.replace(here, connection=small.connection), from_(small))


def test_a_source_that_is_away_in_the_middle_ends_the_run_which_is_resumed(spark, small, target, options, tmp_path):
    address = urlsplit(small.connection.url)
    with Forwarding(address.port) as way:
        url = address._replace(netloc=f"127.0.0.1:{way.port}").geturl()
        given = MigrateArguments(source=dataclasses.replace(small.connection, url=url, is_verified=False))
        impatient = dataclasses.replace(options, patience_seconds=1)
        way.close_after(3)
        with pytest.raises(GatewayAway, match="was away for"):
            migrate(impatient, given, spark=spark)
        way.open()
        (run,) = [path.name for path in (tmp_path / "state").iterdir()]
        result = migrate(dataclasses.replace(impatient, resume=run), given, spark=spark)
    assert (result.refusals, result.differences, result.exit_status) == ((), (), 0)
    assert result.counts["compared partitions"] == 15


@pytest.mark.whole
def test_a_killed_run_is_resumed(spark, small, target, options, tmp_path):
    """Driver and executors die at once; what they have done is not done again, and nothing is missing."""
    state = tmp_path / "state"
    command = [str(Path(sys.executable).with_name("hms-gateway")), "pipeline", "migrate", "--state", str(state)]
    command += ["--url", target.connection.url, "--user", "admin", "--insecure", "--master", "local[1]"]
    command += ["--source", small.connection.url, "--source-user", "admin", "--source-insecure"]
    passwords = {"HMS_GATEWAY_PASSWORD": PASSWORD, "HMS_GATEWAY_SOURCE_PASSWORD": PASSWORD}
    child = subprocess.Popen(command, env={**os.environ, **passwords}, start_new_session=True)
    try:
        poll(lambda: any(state.glob("*/done/copy tables/*")) or child.poll() is not None)
        assert child.poll() is None
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    (run,) = [path.name for path in state.iterdir()]
    source = dataclasses.replace(small.connection, ca_text="", is_verified=False)
    result = migrate(dataclasses.replace(options, resume=run), MigrateArguments(source=source), spark=spark)
    assert (result.refusals, result.differences, result.counts["compared tables"]) == ((), (), 4)


def test_large_tables_go_in_chunks(spark, small, target, options):
    with small.metastore.client() as client:
        make_table(client, "stock", "large", ("n", "int"))
        for first in range(0, 2_100, 700):
            add_partitions(client, "stock", "large", [[str(number)] for number in range(first, first + 700)])
    try:
        result = migrate(dataclasses.replace(options, only=("stock.large",)), from_(small), spark=spark)
    finally:
        with small.metastore.client() as client:
            client.call("drop_table", "stock", "large", True)
    assert (result.refusals, result.differences) == ((), ())
    assert [result.counts[name] for name in ("large tables", "partitions", "compared partitions")] == [1, 2_100, 2_100]


@pytest.mark.whole
@pytest.mark.parametrize("source", ["the real metastore"], indirect=True)
def test_back_to_a_real_metastore(spark, source, target, options, tmp_path, tmp_path_factory):
    there = migrate(options, from_(source, last=True), spark=spark)
    assert there.exit_status == 0
    with RealMetastore(Path(tmp_path_factory.mktemp("migrate-back"))) as peer:
        back = Side(Metastore({"url": f"thrift://127.0.0.1:{peer.port}"}), peer.port, peer.folder)
        given = dataclasses.replace(options, connection=back.connection)
        result = migrate(given, MigrateArguments(source=target.connection), spark=spark)
        assert [one.item for one in result.refusals] == ["everything.rows"]
        assert result.differences == ()
        left = differing(target.dump(), back.dump())
    assert {name for name, (one, other) in left.items() if without_times(one) != without_times(other)} == {"default"}


def without_times(value: Any) -> Any:
    """Without what a 2.3 sets by itself, as the result declares."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in ("createTime", "grantTime")}
    return [without_times(each) for each in value] if isinstance(value, list) else value


class Forwarding:
    """A TCP port that leads to another one, until it is closed."""

    def __init__(self, port: int) -> None:
        self._target, self.port = port, free_port()
        self._left = 10**9
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "Forwarding":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        self._left = 10**9
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def close_after(self, connections: int) -> None:
        self._left = connections

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for each in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            self._left -= 1
            if self._left < 0:
                accepted.close()
                self.close()
                return
            other = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [accepted, other]
            for one, two in ((accepted, other), (other, accepted)):
                threading.Thread(target=self._copy, args=(one, two), daemon=True).start()

    def _copy(self, one: socket.socket, two: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65_536):
                two.sendall(data)
        for each in (one, two):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def poll(condition: Any, seconds_max: float = 400) -> None:
    ended = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < ended
        time.sleep(0.05)
