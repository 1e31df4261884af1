"""The shell as a person has it: through a pseudo-terminal."""

import threading

import pytest

from hms_gateway.rpc.structs import FieldSchema
from tests.support.answering import answering
from tests.support.catalog import new_table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.slow
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


@pytest.fixture
def shell(gateway, tmp_path):
    environment = {
        "HMS_GATEWAY_URL": gateway.url,
        "HMS_GATEWAY_PASSWORD": gateway.password,
        "XDG_STATE_HOME": str(tmp_path),
        "PAGER": "cat",
    }
    with on_terminal("sql", "-k", environment=environment) as terminal:
        terminal.expect("default>")
        yield terminal


def test_a_statement_over_several_lines(shell):
    shell.type("show databases\r")
    shell.expect(">")
    shell.type("like 'default';\r")
    assert "database_name\n-------------\ndefault\n" in shell.expect("1 row (")
    shell.type("quit\r")
    assert shell.wait() == 0


def test_an_error_shows_its_place_and_the_shell_goes_on(shell):
    shell.type("show foo;\r")
    shell.expect("expected what to show")
    shell.expect("show foo")
    shell.expect("^")
    shell.type("show databases;\r")
    shell.expect("default")
    shell.type(CTRL_D)
    assert shell.wait() == 0


def test_names_of_the_live_catalog_are_completed(shell, client):
    client.call("create_table", new_table("completed_table"))
    try:
        shell.type("describe comple\t")
        shell.expect("ted_table")
        shell.type(";\r")
        shell.expect("col_name")
    finally:
        client.call("drop_table", "default", "completed_table", True)


def test_tables_with_partitions_are_offered_where_partitions_are_shown(shell, client):
    for name, keys in (("offered_flat", []), ("offered_parts", [FieldSchema("d", "date")])):
        table = new_table(name)
        table.partitionKeys = keys
        client.call("create_table", table)
    try:
        shell.type("show partitions default.offered\t")
        shell.expect("_parts")
        shell.type(";\r")
        shell.expect("partition")
    finally:
        for name in ("offered_flat", "offered_parts"):
            client.call("drop_table", "default", name, True)


def test_words_of_statements_are_completed(shell):
    shell.type("show datab\t")
    shell.expect("ases")
    shell.type(";\r")
    shell.expect("database_name")


def test_history_is_there_again_in_the_next_shell(gateway, tmp_path):
    environment = {
        "HMS_GATEWAY_URL": gateway.url,
        "HMS_GATEWAY_PASSWORD": gateway.password,
        "XDG_STATE_HOME": str(tmp_path),
    }
    for first in (True, False):
        with on_terminal("sql", "-k", environment=environment) as terminal:
            terminal.expect("default>")
            terminal.type("show databases like 'default';\r" if first else UP + UP + "\r")
            terminal.expect("database_name")
            terminal.type("exit\r")
            assert terminal.wait() == 0
    file = tmp_path / "hms-gateway" / "sql_history"
    assert "show databases like 'default';" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_ctrl_c_clears_what_was_typed(shell):
    shell.type("frobnicate")
    shell.expect("frobnicate")
    shell.type(CTRL_C)
    shell.expect("default>")
    shell.type("show databases;\r")
    shell.expect("database_name")


def test_the_current_database_is_in_the_prompt(shell, client):
    shell.type("create database if not exists prompted; use prompted;\r")
    shell.expect("OK (")
    shell.expect("prompted>")
    client.call("drop_database", "prompted", True, True)


def test_a_connection_that_breaks_comes_back_and_nothing_typed_is_lost(tmp_path):
    with GatewayServer(tmp_path / "data") as server:
        environment = {
            "HMS_GATEWAY_URL": server.url,
            "HMS_GATEWAY_PASSWORD": server.password,
            "XDG_STATE_HOME": str(tmp_path),
            "PAGER": "cat",
        }
        with on_terminal("sql", "-k", environment=environment) as shell:
            shell.expect("default>")
            shell.type("show databases like 'default';\r")
            shell.expect("1 row (")
            server.kill()
            shell.type("show tables;\r")
            shell.expect("connection lost")
            shell.expect("cannot be reached")
            shell.expect("default>")
            shell.expect("show tables;")
            server.start()
            shell.type("\r")
            shell.expect("tab_name")


def test_ctrl_c_stops_a_statement_and_the_shell_goes_on(tmp_path):
    asked, released = threading.Event(), threading.Event()

    def answer(body, headers):
        # Completion asks for names as well, while the line is typed.
        if b"get_databases" in body:
            asked.set()
        released.wait(PATIENCE_SECONDS)
        return 200, b'[1,"get_databases",2,1,{"0":{"lst":["str",1,"default"]}}]'

    with answering(answer) as url:
        environment = {"HMS_GATEWAY_PASSWORD": "x", "XDG_STATE_HOME": str(tmp_path), "PAGER": "cat"}
        with on_terminal("sql", "--url", url, environment=environment) as shell:
            shell.expect("default>")
            shell.type("show databases;\r")
            assert asked.wait(PATIENCE_SECONDS)
            shell.type(CTRL_C)
            shell.expect("interrupted")
            shell.expect("default>")
            released.set()
            shell.type("show databases;\r")
            shell.expect("database_name")


def test_long_output_goes_through_the_pager(gateway, tmp_path, client):
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/seen\necho paged\n")
    pager.chmod(0o755)
    for number in range(30):
        client.call("create_table", new_table(f"long_{number}"))
    environment = {
        "HMS_GATEWAY_URL": gateway.url,
        "HMS_GATEWAY_PASSWORD": gateway.password,
        "XDG_STATE_HOME": str(tmp_path),
        "PAGER": str(pager),
    }
    try:
        with on_terminal("sql", "-k", environment=environment) as shell:
            shell.expect("default>")
            shell.type("show tables like 'long_*';\r")
            shell.expect("paged")
            shell.expect("30 rows")
        assert (tmp_path / "seen").read_text().count("long_") == 30
    finally:
        for number in range(30):
            client.call("drop_table", "default", f"long_{number}", True)
