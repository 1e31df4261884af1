"""The operator's kit: Prometheus takes the alert rules, scrapes a real gateway, and answers what the dashboard asks."""

import contextlib
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.gateway.observability.figures import Replica, Watched
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from tests.gateway.serving import record
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.server import GatewayServer, free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "hms-gateway.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "hms-gateway.json"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} (package prometheus)")
    return found


def expressions() -> list[str]:
    """What the dashboard asks, with its variables filled in."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    return [each.replace("$instance", ".*").replace("$__rate_interval", "1m") for each in asked]


def test_promtool_takes_the_rules() -> None:
    command = [program("promtool"), "check", "rules", str(RULES)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_metric_that_is_asked_for_is_one_of_the_gateway() -> None:
    metrics = Metrics({"get_table"})
    metrics.certificate_expires_seconds, metrics.database_damaged = 1, 0
    metrics.served.add(record())
    metrics.refusals["unauthorized"] += 1
    metrics.limited["share_per_user of calls_in_flight_max"] += 1
    replica = Replica("a:1", 1, 5, "one", lag_events=0, lag_seconds=0.0, clock_seconds=0.0)
    metrics.watch(lambda: Watched({"audit_lines_lost": 1}, replicas=[replica]))
    health = {"disk_free_bytes": {"data_dir": 1}, "file_unreadable": {"users_file": 0}}
    shown = set(re.findall(r"^(hms_gateway_\w+)", metrics_text(metrics, health=health).decode(), re.MULTILINE))
    named = set(re.findall(r"hms_gateway_\w+", RULES.read_text() + " ".join(expressions())))
    assert named
    assert named <= shown


@contextlib.contextmanager
def prometheus(folder: Path, gateway: GatewayServer) -> Iterator[str]:
    """One that scrapes the gateway every second with the rules of ours; its URL."""
    scrape = {
        "job_name": "hms-gateway",
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": [{"targets": [f"127.0.0.1:{gateway.port}"]}],
    }
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [scrape],
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    command = [program("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={folder / 'data'}"], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def answer(url: str, path: str, **parameters: str) -> Any:
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=PATIENCE_SECONDS) as reply:
        return json.load(reply)["data"]


def has_scraped(url: str) -> bool:
    with contextlib.suppress(OSError):
        found = answer(url, "query", query='hms_gateway_calls_total{method="get_all_databases"}')
        return any(float(each["value"][1]) >= 1 for each in found["result"])
    return False


@pytest.mark.slow
def test_a_real_prometheus_scrapes_a_real_gateway_and_answers_the_dashboard(tmp_path: Path) -> None:
    program("prometheus")
    (tmp_path / "prometheus").mkdir()
    with GatewayServer(tmp_path / "gateway") as gateway, prometheus(tmp_path / "prometheus", gateway) as url:
        assert gateway.post(b'[1,"get_all_databases",1,1,{}]')[0] == 200
        until(lambda: has_scraped(url), "nothing was scraped", pause_seconds=0.1)
        for expression in expressions():
            assert answer(url, "query", query=expression)["resultType"] == "vector", expression
        rules = [rule for group in answer(url, "rules")["groups"] for rule in group["rules"]]
        assert rules
        assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
        firing = [alert for alert in answer(url, "alerts")["alerts"] if alert["state"] == "firing"]
        assert firing == []
