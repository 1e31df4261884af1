"""What putting a gateway together takes."""

import subprocess
import sys

import pytest

from hms_gateway.composition.main import _may_act, build_metastore
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import Catalog, CreateCatalogRequest, GetTableRequest, MetaException
from hms_gateway.runtime.addresses import host_and_port
from hms_gateway.runtime.settings import MetastoreRules, ProxyUser, Settings
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table, transactional_table
from tests.support.patience import PATIENCE_SECONDS


@pytest.mark.slow
def test_a_server_loads_nothing_it_may_never_need(tmp_path):
    """Shell, jobs, console, other databases and file systems, coloured tables are loaded where they are used."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hms_gateway.cli.application import application\n"
        "application.commands['serve'].implementation()\n"
        "from hms_gateway.cli.operations.start_checks import start_problems\n"
        "from hms_gateway.composition.main import build_metastore\n"
        "from hms_gateway.runtime.settings import Settings\n"
        "settings = Settings(data_dir=Path(sys.argv[1]), tls=False)\n"
        "assert not start_problems(settings)\n"
        "from hms_gateway.gateway.certificates.tls import ensure_certificate\n"
        "ensure_certificate(settings.data_dir)\n"
        "build_metastore(settings).store.close()\n"
        "never = {'cryptography', 'fsspec', 'httpx', 'prometheus_client', 'psycopg', 'starlette', 'rich', 'pygments'}\n"
        "never |= {'joserfc', 'urllib.request', 'prompt_toolkit', 'sqlglot', 'wcwidth'}\n"
        "never |= {f'sqlalchemy.dialects.{name}' for name in ('mysql', 'postgresql')}\n"
        "ours = ('bridge', 'client', 'pipeline', 'gateway.console', 'cli.sql', 'cli.hiveql', 'cli.calls.calling')\n"
        "never |= {f'hms_gateway.{name}' for name in ours}\n"
        "print(sorted(never & set(sys.modules)))\n"
    )
    for _ in ("first start", "second start"):
        command = [sys.executable, "-c", code, str(tmp_path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
        assert said.stdout == "[]\n"


@pytest.mark.parametrize(("timeout_seconds", "every_seconds"), [(5, 5), (300, 30)])
def test_transactions_are_looked_at_as_often_as_they_end(tmp_path, timeout_seconds, every_seconds):
    metastore = build_metastore(Settings(data_dir=tmp_path, tls=False, txn_timeout_seconds=timeout_seconds))
    try:
        by_name = {chore.name: chore.every_seconds for chore in metastore.chores}
    finally:
        metastore.store.close()
    assert by_name["expire transactions and locks"] == every_seconds


def test_what_is_set_holds_and_is_what_clients_read(tmp_path):
    settings = Settings(
        data_dir=tmp_path,
        tls=False,
        txn_timeout_seconds=90.5,
        metastore=MetastoreRules(
            event_seconds_max=120, partitions_per_reply_max=1, refuse_incompatible_column_changes=False
        ),
    )
    metastore = build_metastore(settings)
    try:
        client = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_2_3)
        asked = {
            "hive.txn.timeout": "90500ms",
            "hive.metastore.event.db.listener.timetolive": "120s",
            "hive.metastore.event.expiry.duration": "0s",
            "hive.metastore.limit.partition.request": "1",
            "hive.metastore.disallow.incompatible.col.type.changes": "false",
            "hive.metastore.allow.incompatible.col.type.changes.serdes": ",".join(settings.column_change_serdes),
            "hive.metastore.server.max.message.size": str(settings.limits.body_bytes_max),
        }
        assert {key: client.ask("get_config_value", key, "default") for key in asked} == asked
        client.ask("create_table", new_table(keys=columns("p string")))
        client.ask("alter_table", "default", "t", new_table(cols=columns("a boolean"), keys=columns("p string")))
        for value in ("1", "2"):
            client.ask("append_partition", "default", "t", [value])
        with pytest.raises(MetaException, match=r"exceeds limit \(=1\)"):
            client.ask("get_partitions", "default", "t", -1)
    finally:
        metastore.store.close()


@pytest.mark.parametrize(("seconds", "shown"), [(300, "300s"), (0.5, "500ms")])
def test_clients_read_when_transactions_end(tmp_path, seconds, shown):
    metastore = build_metastore(Settings(data_dir=tmp_path, tls=False, txn_timeout_seconds=seconds))
    try:
        client = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_2_3)
        assert client.ask("get_config_value", "hive.txn.timeout", "default") == shown
    finally:
        metastore.store.close()


def test_a_list_of_a_table_in_another_catalog_may_name_it_plainly(tmp_path):
    metastore = build_metastore(
        Settings(data_dir=tmp_path, tls=False, metastore=MetastoreRules(require_write_id_lists=True))
    )
    try:
        client = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4)
        new = Catalog("spark", None, f"file:{tmp_path}/warehouse/spark")
        client.ask("create_catalog", CreateCatalogRequest(new))
        made = transactional_table()
        made.catName = "spark"
        client.ask("create_table", made)
        for name in ("default.t", "@spark#default.t"):
            request = GetTableRequest("default", "t", catName="spark", validWriteIdList=f"{name}:5:100::")
            assert client.ask("get_table_req", request).table.catName == "spark"
        for name in ("default.u", "@lake#default.t"):
            request = GetTableRequest("default", "t", catName="spark", validWriteIdList=f"{name}:5:100::")
            with pytest.raises(MetaException, match="the list is of table"):
                client.ask("get_table_req", request)
    finally:
        metastore.store.close()


@pytest.mark.parametrize("is_required", [True, False])
def test_reads_of_transactional_tables_need_a_list_where_that_is_set(tmp_path, is_required):
    metastore = build_metastore(
        Settings(data_dir=tmp_path, tls=False, metastore=MetastoreRules(require_write_id_lists=is_required))
    )
    try:
        client = Peer(metastore, metastore.codecs.tjson, Dialect.HIVE_2_3)
        client.ask("create_table", transactional_table())
        if is_required:
            with pytest.raises(MetaException, match="require_write_id_lists"):
                client.ask("get_table", "default", "t")
        else:
            assert client.ask("get_table", "default", "t").tableName == "t"
        request = GetTableRequest("default", "t", validWriteIdList="default.t:0:1::")
        assert client.ask("get_table_req", request).table.tableName == "t"
    finally:
        metastore.store.close()


@pytest.mark.parametrize("host", ["10.1.0.5", "2001:db8::5"])
def test_who_may_act_for_others_from_some_hosts_may_from_each_of_their_ports(tmp_path, host):
    """The port of a Thrift client is not a part of its address, though it may look like one of IPv6."""
    rule = ProxyUser(users=["ann"], hosts=[host, "2001:db8::6:5000"])
    objection = _may_act(Settings(data_dir=tmp_path, proxy_users={"hue": rule}))
    for address in (host, host_and_port(host, 5000), host_and_port(host, 50_000)):
        assert objection("hue", "ann", address) is None
        assert objection("hue", "bob", address) == "does not name bob"
        assert objection("bob", "ann", address) == "does not exist"
    for another in ("10.1.0.6", "2001:db8::6"):
        text = f"does not hold for calls from {another}"
        assert objection("hue", "ann", host_and_port(another, 5000)) == text
