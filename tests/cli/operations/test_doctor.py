"""`hms-gateway doctor`: each thing that is wrong is named, with what to do."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.cli.operations.doctor import findings
from hms_gateway.gateway.certificates.tls import make_certificate
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.files.remote import missing_extra
from hms_gateway.storage.migrations.revisions import migrate

YEAR_SECONDS = 365 * 86_400


def found(settings, *replicas):
    return {f"{each.level} {each.subject}": each.text for each in findings(settings, replicas)}


@pytest.fixture
def settings(tmp_path):
    return lambda **given: Settings(data_dir=tmp_path, port=0, **given)


@pytest.fixture
def own_certificate(tmp_path):
    """Made at a time."""

    def make(now_seconds):
        make_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem", int(now_seconds))
        return {"tls_certificate": tmp_path / "certificate.pem", "tls_key": tmp_path / "key.pem"}

    return make


def test_an_installation_before_its_first_start(settings):
    assert {key.partition(" ")[0] for key in found(settings())} <= {"ok", "warning"}
    assert found(settings())["ok database"].startswith("the first start makes /")
    assert "no gateway has used /" in found(settings())["warning data_dir"]


def test_a_running_gateway_is_ready(gateway):
    result = CliRunner().invoke(
        application,
        ["doctor", "--json", "--config", str(gateway.data_dir / "settings.toml"), "--data-dir", str(gateway.data_dir),
         "--replica", gateway.url],
        env={"HMS_GATEWAY_PORT": str(gateway.port)},
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    texts = [f"{row['level']} {row['subject']} {row['text']}" for row in rows]
    assert sum("is ready" in text for text in texts) == 2
    assert any(text.startswith("ok database revision") for text in texts)
    assert any(text.startswith("ok clock") for text in texts)


def test_a_certificate_that_ends(settings, own_certificate):
    assert "expires in" in found(settings(**own_certificate(time.time())))["ok certificate"]
    ending = found(settings(**own_certificate(time.time() - 800 * 86_400)))
    assert "put a new one in its place" in ending["warning certificate"]
    assert "has expired" in found(settings(**own_certificate(time.time() - 3 * YEAR_SECONDS)))["error certificate"]


def test_without_tls_it_warns(settings):
    assert "switch tls on" in found(settings(tls=False))["warning certificate"]


def test_a_database_of_another_version(settings, tmp_path):
    (tmp_path / "metastore.db").touch()
    assert "the next start changes it" in found(settings())["warning database"]
    url = f"sqlite:///{tmp_path}/other.db"
    assert "run hms-gateway migrate" in found(settings(database_url=url))["error database"]
    migrate(url)
    assert "ok database" in found(settings(database_url=url))


def test_a_database_that_does_not_answer(settings):
    assert "database_url" in found(settings(database_url="postgresql+psycopg://x@127.0.0.1:9/x"))["error database"]


def test_a_folder_that_everybody_can_write(settings, tmp_path):
    (tmp_path / "users").touch()
    os.chmod(tmp_path, 0o777)
    assert "chmod o-w" in found(settings())["warning data_dir"]


def test_replicas_that_do_not_answer_or_are_not_ready(settings):
    assert "is it started, and on this port (--port)?" in found(settings(), "http://127.0.0.1:9")["warning gateway"]


def test_a_full_disk_is_an_error(tmp_path):
    # A file system that has no room for anything.
    said = found(Settings(data_dir=Path("/proc"), port=0))["error data_dir"]
    assert said == "0 MB are free on the disk of /proc; changes are refused with 503 until there is room"
    apart = Settings(data_dir=tmp_path, port=0, database_url="sqlite:////proc/metastore.db")
    assert "0 MB are free on the disk of /proc; changes are refused" in found(apart)["error database_url"]
    elsewhere = Settings(data_dir=Path("/proc"), port=0, database_url="postgresql+psycopg://x@127.0.0.1:9/x")
    assert "directories and files cannot be made" in found(elsewhere)["error data_dir"]


def test_a_data_dir_that_is_not_that_of_the_gateway(gateway, tmp_path):
    words = ["doctor", "--json", "--port", str(gateway.port), "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 1, result.stdout
    as_rows = CliRunner().invoke(application, [*words, "--format", "csv"])  # --json is a spelling of it, and wins
    assert as_rows.stdout == result.stdout
    as_rows = CliRunner().invoke(application, [words[0], *words[2:], "--format", "tsv"])
    assert as_rows.exit_code == 1
    header, *rows = [line.split("\t") for line in as_rows.stdout.splitlines()]
    assert [dict(zip(header, row, strict=True)) for row in rows] == [
        json.loads(line) for line in result.stdout.splitlines()
    ]
    assert f"it has other settings, since {tmp_path}/users does not exist" in result.stdout
    (tmp_path / "users").touch()
    assert f"it has other settings, since {tmp_path}/metastore.db" in CliRunner().invoke(application, words).stdout


def test_a_restored_copy_is_not_taken_for_the_gateway_beside_it(gateway, tmp_path):
    """Its folder has the same files, and the other gateway is on its port."""
    for name in ("users", "metastore.db"):
        shutil.copy(gateway.data_dir / name, tmp_path / name)
    make_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem", int(time.time()))
    words = ["doctor", "--json", "--port", str(gateway.port), "--data-dir", str(tmp_path)]
    said = CliRunner().invoke(application, words).stdout
    assert f"it shows another certificate than {tmp_path}/certificate.pem" in said
    shutil.copy(gateway.data_dir / "certificate.pem", tmp_path / "certificate.pem")
    assert "another certificate" not in CliRunner().invoke(application, words).stdout


def test_the_reason_of_the_database_is_named(settings):
    said = found(settings(database_url="postgresql+psycopg://x@127.0.0.1:9/x"))["error database"]
    assert "onnection refused" in said


def test_connections_are_compared_with_what_the_database_allows(server_database, settings):
    migrate(server_database)
    said = found(settings(database_url=server_database, workers=16))
    text = r"the database allows (\d+) connections, and its gateways \(processes: 16\) may take (\d+): .*"
    allowed, wanted = map(int, re.fullmatch(text, said["warning database"]).groups())
    assert 50 < allowed < wanted == 16 * 44
    assert "lower database_connections_max (40) or workers" in said["warning database"]
    assert "warning database" not in found(settings(database_url=server_database, database_connections_max=2))


def test_a_file_system_without_its_library(settings):
    missing = next((scheme for scheme in ("s3a", "gs", "abfss", "hdfs") if missing_extra(scheme)), None)
    if missing is None:
        pytest.skip("the libraries of all schemes are installed")
    given = {"file_roots": [f"{missing}://bucket/tables"], "file_systems": {"file": "manage", missing: "manage"}}
    said = found(settings(**given))["error start"]
    assert f"pip install 'hms-gateway[{missing_extra(missing)}]'" in said
    assert "error start" not in found(settings(**given | {"file_systems": {missing: "ignore"}}))


def test_settings_that_are_wrong_end_it():
    result = CliRunner().invoke(application, ["doctor"], env={"HMS_GATEWAY_PRT": "1"})
    assert result.exit_code == 2
    assert "did you mean port?" in result.stderr
