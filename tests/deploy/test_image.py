"""The Dockerfile, the compose file and the unit agree with the program: account, settings, health, time to stop."""

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.storage.writing.store import connections_wanted

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
COMPOSE = (ROOT / "deploy" / "docker-compose.yml").read_text()
UNIT = (ROOT / "deploy" / "systemd" / "hms-gateway.service").read_text()


def test_the_health_check_is_a_command_without_options() -> None:
    """tests/cli/operations/test_health.py runs it: port, address and TLS are those of the settings."""
    [words] = re.findall(r"^HEALTHCHECK .*? CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE)
    assert json.loads(words) == ["hms-gateway", "healthy"]


def test_the_account_of_the_image_is_a_number() -> None:
    [user] = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert user == "10001:10001"
    assert "--gid 10001" in DOCKERFILE
    assert "--uid 10001" in DOCKERFILE


def test_the_command_of_the_image_has_no_options_that_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DOCKERFILE.endswith('CMD ["serve"]\n')
    [line] = re.findall(r"^ENV (HMS_.*)$", DOCKERFILE, re.MULTILINE)
    for one in line.split():
        monkeypatch.setenv(*one.split("="))
    settings = load_settings()
    assert (settings.host, settings.port, str(settings.data_dir)) == ("0.0.0.0", 30443, "/data")


# pyiceberg is for programs beside a gateway.
@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"pyiceberg"}))
def test_the_extras_of_the_image_are_locked_with_hashes(extra: str) -> None:
    lines = (ROOT / "requirements" / f"{extra}.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line, after in pairwise(lines) if after.startswith("    --hash=sha256:")}
    assert {re.split("[>=<]", wanted)[0].lower() for wanted in EXTRAS[extra]} <= pinned


def test_the_image_has_appends_of_iceberg_kerberos_mariadb_and_s3() -> None:
    [built_in] = re.findall(r"for set in runtime ([\w ]+) \$", DOCKERFILE)
    assert built_in.split() == ["iceberg", "kerberos", "mysql", "s3"]


def test_a_stop_leaves_time_for_calls_in_flight() -> None:
    [idle] = re.findall(r'HMS_GATEWAY_DRAIN_IDLE_SECONDS: "(\d+)"', COMPOSE)
    drain_seconds = Settings(drain_idle_seconds=float(idle)).stopping_seconds_max
    for pattern, text in (
        (r"stop_grace_period: (\d+)s", COMPOSE),
        (r"TimeoutStopSec=(\d+)", UNIT),
        (r"--stop-timeout (\d+)", DOCKERFILE),
        (r"--stop-timeout (\d+)", (ROOT / "README.md").read_text()),
    ):
        [seconds] = re.findall(pattern, text)
        assert int(seconds) >= drain_seconds + 5


def test_proxies_wait_longer_than_the_longest_call() -> None:
    for file, pattern, count in (
        ("nginx/proxy.conf", r"proxy_read_timeout (\d+)m;", 1),
        ("nginx/passthrough.conf", r"proxy_timeout (\d+)m;", 1),
        ("haproxy/haproxy.cfg", r"timeout (?:client|server) (\d+)m$", 2),
        ("knox/service.xml", r"socketTimeout</name>\s*<value>(\d+)m<", 1),
    ):
        minutes = re.findall(pattern, (ROOT / "deploy" / file).read_text(), re.MULTILINE)
        assert len(minutes) == count
        assert min(map(int, minutes)) * 60 > Settings().call_seconds_max
    [seconds] = re.findall(
        r"stream_idle_timeout: (\d+)s$", (ROOT / "deploy/envoy/envoy.yaml").read_text(), re.MULTILINE
    )
    assert int(seconds) > Settings().call_seconds_max


def test_the_database_allows_the_connections_that_the_replicas_may_take() -> None:
    [allowed] = re.findall(r"max_connections=(\d+)", COMPOSE)
    replicas = len(re.findall(r"^  gateway-\d:$", COMPOSE, re.MULTILINE))
    assert replicas == 2
    assert int(allowed) - 3 >= replicas * 2 * connections_wanted(Settings().database_connections_max)


def test_the_unit_and_the_settings_file_name_one_data_folder() -> None:
    settings = load_settings(ROOT / "deploy" / "hms-gateway.toml")
    assert re.findall(r"^ExecStart=.*$", UNIT, re.MULTILINE) == ["ExecStart=/opt/hms-gateway/bin/hms-gateway serve"]
    assert "Environment=HMS_GATEWAY_CONFIG=/etc/hms-gateway/hms-gateway.toml" in UNIT
    [state] = re.findall(r"^StateDirectory=(.*)$", UNIT, re.MULTILINE)
    assert settings.data_dir == Path("/var/lib") / state
