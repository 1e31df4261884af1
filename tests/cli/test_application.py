"""What the command line says about itself."""

import subprocess
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.rpc.structs import METHODS
from tests.support.patience import PATIENCE_SECONDS

runner = CliRunner()


def run(*words):
    return runner.invoke(application, list(words))


def test_help_has_examples():
    result = run("--help")
    assert result.exit_code == 0
    assert "hms-gateway serve --demo" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        *[("serve",), ("migrate",), ("call",), ("user",), ("user", "add"), ("locks",), ("leases",), ("audit",)],
        *[("locks", name) for name in ("explain", "acquire", "release", "show", "force-release")],
        *[("leases", name) for name in ("grab", "show", "extend", "drop", "force-drop")],
    ],
)
def test_every_command_has_help(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage: " in result.stdout


def test_version():
    assert run("--version").stdout == f"hms-gateway {metadata.version('hms-gateway')}\n"


def test_call_list_shows_every_method():
    lines = run("call", "--list").stdout.splitlines()
    assert len(lines) == len(METHODS)
    assert "Table get_table(string dbname, string tbl_name)" in lines


def test_call_explain_says_that_clients_of_hive_do_not_know_our_own_methods():
    for own in ("grab_lease", "search_names", "list_changes"):
        assert "a method of hms-gateway; clients of Hive do not know it" in run("call", "--explain", own).stdout
    assert "known to clients of Hive 2.3, 3.1, 4" in run("call", "--explain", "get_table").stdout


def test_an_option_nobody_knows_is_told_before_the_method_too():
    result = run("call", "--jason", "get_all_databases")
    assert "unknown option --jason" in result.stderr


def test_call_explain_shows_signature_exceptions_and_structs():
    text = run("call", "create_database", "--explain").stdout
    assert "void create_database(Database database)" in text
    assert "AlreadyExistsException, InvalidObjectException, MetaException" in text
    assert "locationUri" in text
    assert "USER=1, ROLE=2, GROUP=3" in text


def test_an_unknown_method_comes_with_proposals():
    for words in (("call", "get_tabel", "d", "t"), ("call", "get_tabel", "--explain")):
        result = run(*words)
        assert result.exit_code == 2
        assert "get_table" in result.stderr


def test_call_without_a_method_says_where_they_are():
    result = run("call")
    assert result.exit_code == 2
    assert "--list" in result.stderr


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from hms_gateway.cli.application import application\n"
        "CliRunner().invoke(application, ['serve', '--help'])\n"
        "heavy = {'sqlalchemy', 'httpx', 'uvicorn', 'rich', 'hms_gateway.rpc.structs', 'pydantic_settings'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert said.stdout == "[]\n"
