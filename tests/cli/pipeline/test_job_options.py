"""What the options that every job has become; the job itself is a command of the test's."""

import os

import click
import pytest
from click.testing import CliRunner

from hms_gateway.cli.pipeline.commands import JOB

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")


@pytest.fixture
def options_of(monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)
    seen = []

    def note(**given):
        seen.append(JOB.take(given).options)

    toy = click.Command("toy", params=list(JOB.options), callback=note)

    def run(*words):
        result = CliRunner().invoke(toy, words)
        assert result.exit_code == 0, result.output
        return seen.pop()

    return run


def test_a_token_of_a_file_replaces_user_and_password(options_of, tmp_path):
    (tmp_path / "token").write_text("hmsgw_abc\n")
    connection = options_of("--token-file", str(tmp_path / "token")).connection
    assert (connection.token, connection.password) == ("hmsgw_abc", "")


def test_a_password_is_read_as_by_every_command(options_of, tmp_path):
    (tmp_path / "password").write_text("secret\n")
    connection = options_of("--user", "etl", "--password-file", str(tmp_path / "password"), "-k").connection
    assert (connection.user, connection.password, connection.token) == ("etl", "secret", "")
    assert not connection.is_verified
