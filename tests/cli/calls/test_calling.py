"""`hms-gateway call` through the command line, against a server that answers what a test wants."""

import io
import json
import os
import shlex
import threading

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from hms_gateway.cli.application import application
from hms_gateway.cli.calls import calling
from tests.support.answering import Answer, always, answering
from tests.support.server import PASSWORD

runner = CliRunner()
NAME = b'[1,"getName",2,1,{"0":{"str":"hms"}}]'


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HMS_GATEWAY_PASSWORD", "secret")


def call(answer: Answer, *words: str, stdin: str = "", tls_folder=None) -> Result:
    with answering(answer, tls_folder) as url:
        return runner.invoke(application, ["call", "--url", url, *words], input=stdin)


def test_the_answer_is_json_with_field_names_when_no_terminal_reads_it():
    body = b'[1,"get_database",2,1,{"0":{"rec":{"1":{"str":"default"},"4":{"map":["str","str",0,{}]},"7":{"i32":2}}}}]'
    result = call(always(200, body), "get_database", "default")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"name": "default", "parameters": {}, "ownerType": "ROLE"}


def test_a_void_method_prints_nothing():
    result = call(always(200, b'[1,"setMetaConf",2,1,{}]'), "setMetaConf", "key", "value")
    assert (result.exit_code, result.stdout) == (0, "")


def test_bytes_that_are_no_text_are_refused():
    result = call(always(200, NAME), "get_database", "\udcff")
    assert (result.exit_code, "is not UTF-8" in result.stderr) == (2, True)


def test_negative_numbers_are_arguments():
    seen = []

    def answer(body, headers):
        seen.append(json.loads(body)[4])
        return 200, b'[1,"get_partition_names",2,1,{"0":{"lst":["str",0]}}]'

    assert call(answer, "get_partition_names", "d", "t", "-1").exit_code == 0
    assert seen == [{"1": {"str": "d"}, "2": {"str": "t"}, "3": {"i16": -1}}]


def test_structs_come_from_standard_input():
    seen = []

    def answer(body, headers):
        seen.append(json.loads(body)[4])
        return 200, b'[1,"create_database",2,1,{}]'

    assert call(answer, "create_database", "-", stdin='{"name": "sales"}').exit_code == 0
    assert seen == [{"1": {"rec": {"1": {"str": "sales"}}}}]


@pytest.mark.parametrize("how", ["environment", "file", "stdin"])
def test_where_the_password_comes_from(how, tmp_path, monkeypatch):
    seen = []

    def answer(body, headers):
        seen.append(headers["Authorization"])
        return 200, NAME

    (tmp_path / "password").write_text("from file\n")
    words = {"environment": [], "file": ["--password-file", str(tmp_path / "password")], "stdin": ["--password-stdin"]}
    assert call(answer, "--user", "bob", *words[how], "getName", stdin="from stdin\n").exit_code == 0
    expected = {"environment": "Ym9iOnNlY3JldA==", "file": "Ym9iOmZyb20gZmlsZQ==", "stdin": "Ym9iOmZyb20gc3RkaW4="}
    assert seen == [f"Basic {expected[how]}"]


def test_a_token_is_sent_in_place_of_a_password(monkeypatch, tmp_path):
    seen = []

    def answer(body, headers):
        seen.append(headers["Authorization"])
        return 200, NAME

    (tmp_path / "token").write_text("hmsgw_abc\n")
    assert call(answer, "--token-file", str(tmp_path / "token"), "getName").exit_code == 0
    assert seen == ["Bearer hmsgw_abc"]


def test_without_a_password_and_a_terminal_it_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("HMS_GATEWAY_PASSWORD")
    result = call(always(200, NAME), "getName")
    assert result.exit_code == 2
    assert "HMS_GATEWAY_PASSWORD" in result.stderr


def test_headers_are_sent():
    seen = []

    def answer(body, headers):
        seen.append(headers["X-Tenant"])
        return 200, NAME

    assert call(answer, "-H", "X-Tenant: blue", "getName").exit_code == 0
    assert seen == ["blue"]


def test_a_declared_exception_is_one_line_and_exit_code_1():
    body = b'[1,"get_database",2,1,{"1":{"rec":{"1":{"str":"nowhere"}}}}]'
    result = call(always(200, body), "get_database", "nowhere")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: NoSuchObjectException: nowhere\n"


@pytest.mark.slow
def test_arguments_that_were_not_given_are_named_when_the_server_refuses():
    body = b'[1,"get_table",2,1,{"1":{"rec":{"1":{"str":"table name must not be null"}}}}]'
    hint = "not given: tbl_name; hms-gateway call --explain get_table shows an example\n"
    assert call(always(200, body), "get_table", "sales").stderr.endswith(hint)
    assert "--explain" not in call(always(200, body), "get_table", "sales", "t").stderr


def test_a_method_the_server_does_not_know_is_exit_code_1():
    body = b'[1,"getName",3,1,{"1":{"str":"Invalid method name: \'getName\'"},"2":{"i32":1}}]'
    result = call(always(200, body), "getName")
    assert result.exit_code == 1
    assert "UNKNOWN_METHOD: Invalid method name: 'getName'" in result.stderr


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (always(401, b""), "give another user or password"),
        (always(404, b""), "the path of the URL"),
        (always(200, b"<html>"), "is this the URL of a metastore?"),
    ],
)
def test_no_answer_is_exit_code_2_with_a_hint(answer, text):
    result = call(answer, "getName")
    assert result.exit_code == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_certificates(tmp_path):
    answer = always(200, NAME)
    refused = call(answer, "getName", tls_folder=tmp_path)
    assert refused.exit_code == 2
    assert "--cacert" in refused.stderr
    assert call(answer, "--insecure", "getName", tls_folder=tmp_path).exit_code == 0
    assert call(answer, "--cacert", str(tmp_path / "certificate.pem"), "getName", tls_folder=tmp_path).exit_code == 0
    missing = call(answer, "--cacert", str(tmp_path / "missing.pem"), "getName", tls_folder=tmp_path)
    assert missing.exit_code == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("get_table", "d", "t", "more"), "no argument left for 'more'"),
        (("getName", "--josn"), "unknown option --josn"),
        (("-H", "nonsense", "getName"), "not NAME: VALUE"),
        (("--password-file", "/nonexistent/file", "getName"), "cannot be read"),
        (("--token-file", "/nonexistent/file", "getName"), "token file /nonexistent/file cannot be read"),
        (("--token-file", "/dev/null", "getName"), "token file /dev/null has no token in its first line"),
    ],
)
def test_mistakes_on_the_command_line_are_exit_code_2(words, text):
    result = call(always(200, NAME), *words)
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_slow_answer_shows_its_progress_on_a_terminal(monkeypatch):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(calling, "err", terminal)
    monkeypatch.setattr(calling, "PROGRESS_AFTER_SECONDS", 0)
    with calling.show_progress("get_partitions") as on_progress:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        on_progress(12_300_000, 24_600_000)
    shown = terminal.file.getvalue()
    assert "get_partitions" in shown


def test_progress_stays_silent_where_nobody_watches(monkeypatch):
    pipe = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(calling, "err", pipe)
    monkeypatch.setattr(calling, "PROGRESS_AFTER_SECONDS", 0)
    with calling.show_progress("get_partitions") as on_progress:
        on_progress(1, None)
    assert pipe.file.getvalue() == ""


@pytest.mark.slow
def test_examples_about_statistics_run_as_printed(gateway):
    def hms(*words):
        return CliRunner().invoke(
            application, [*words, "-k", "--url", gateway.url], env={"HMS_GATEWAY_PASSWORD": PASSWORD}
        )

    make = (
        "create database sales; create table sales.orders (id int) partitioned by (ds string); "
        "alter table sales.orders add partition (ds = '2024-01-01')"
    )
    assert hms("sql", "-e", make).exit_code == 0
    try:
        for name in ("update_table_column_statistics", "update_partition_column_statistics"):
            shown = hms("call", "--explain", name).stdout
            line = next(line for line in shown.splitlines() if line.startswith("  hms-gateway call"))
            result = hms(*shlex.split(line)[1:])
            assert (result.exit_code, result.stdout) == (0, "true\n"), (line, result.stderr)
        refused = hms("call", "get_table", "sales")
        assert refused.exit_code == 1
        assert "not given: tbl_name; hms-gateway call --explain get_table shows an example" in refused.stderr
    finally:
        assert hms("sql", "-e", "drop database sales cascade").exit_code == 0
