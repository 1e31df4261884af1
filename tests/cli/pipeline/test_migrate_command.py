"""The words of `hms-gateway pipeline migrate`: what does not fit ends it before anything is called."""

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.cli.application import application
from hms_gateway.pipeline.migrate.job import ALL_KINDS

GATEWAY = "https://localhost:1/gateway/default/hmshttpthrift/api/hms"


def ran(*words, **variables):
    command = ["pipeline", "migrate", "--url", GATEWAY, *words]
    # The password of the target is never the source's.
    return CliRunner().invoke(application, command, env={"HMS_GATEWAY_PASSWORD": "target", **variables})


def test_a_source_over_https_needs_a_login_of_its_own():
    for words in ([], ["--source-user", "hive"]):
        found = ran("--source", "https://localhost:2/x", *words, HMS_GATEWAY_USER="admin")
        assert found.exit_code == 2
        assert "the source needs a user and a password" in found.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Missing option '--source'"),
        (["--source", "localhost:9083"], "--source: option url has the scheme 'localhost'"),
        (["--source", "thrift://localhost:1", "--source-cacert", "/missing"], "/missing cannot be read as a PEM file"),
        (
            ["--source", "https://a/x", "--source-certificate", "/no"],
            "--source: option certificate: /no cannot be read",
        ),
        (["--source", "thrift://a", "--source-certificate", "/no"], "--source: option certificate is for https://"),
        (["--source", "https://a/x", "--source-user", "a", "--source-key", "/no"], "option key is given without"),
        (["--source", "thrift://localhost:1", "--certificate", "/no"], "--certificate: /no cannot be read"),
        (["--source", "thrift://localhost:1", "--on-conflict", "ask"], "'ask' is not one of"),
        (["--source", "thrift://localhost:1", "--without", "tables"], "'tables' is not one of"),
        (["--source", "thrift://localhost:1", "--where", "ds > '1'"], "--where is not for migrate"),
        (["--source", GATEWAY, "--source-user", "a"], "source and target are both"),
    ],
)
def test_what_does_not_fit(words, text):
    found = ran(*words, HMS_GATEWAY_SOURCE_PASSWORD="source")
    assert found.exit_code == 2
    assert text in " ".join(found.output.split())


def test_help_names_every_kind():
    said = ran("--help").output
    assert all(kind in said for kind in ALL_KINDS)
