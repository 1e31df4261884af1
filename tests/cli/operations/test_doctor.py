"""`hms-gateway doctor`: each thing that is wrong is named, with what to do."""

import json
import os
import time

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.cli.operations.doctor import findings
from hms_gateway.gateway.certificates.self_signed import make_certificate
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage import migrate

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
    assert found(settings())["ok database"] == "the first start makes it"


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
    os.chmod(tmp_path, 0o777)
    assert "chmod o-w" in found(settings())["warning data_dir"]


def test_replicas_that_do_not_answer_or_are_not_ready(settings):
    assert "is it started?" in found(settings(), "http://127.0.0.1:9")["warning gateway"]


def test_settings_that_are_wrong_end_it():
    result = CliRunner().invoke(application, ["doctor"], env={"HMS_GATEWAY_PRT": "1"})
    assert result.exit_code == 2
    assert "did you mean port?" in result.stderr
