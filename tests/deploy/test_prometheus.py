"""The alert rules: Prometheus' own tool takes them, and every metric in them is one that the gateway has."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hms_gateway.gateway.observability.figures import Watched
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "hms-gateway.rules.yml"


def test_promtool_takes_the_rules() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool (package prometheus)")
    checked = subprocess.run([program, "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_metric_of_the_rules_is_one_of_the_gateway() -> None:
    metrics = Metrics({"get_table"})
    metrics.certificate_expires_seconds, metrics.database_damaged = 1, 0
    metrics.served.add("get_table", "ok", 200, False, "ann", (), 0.1, 1, 1)
    metrics.authentication_refused("unauthorized")
    metrics.limited["calls_per_user_max"] += 1
    metrics.watch(lambda: Watched({"audit_lines_lost": 1}))
    shown = set(re.findall(r"^(hms_gateway_\w+)", metrics_text(metrics).decode(), re.MULTILINE))
    named = set(re.findall(r"hms_gateway_\w+", RULES.read_text()))
    assert named
    assert named <= shown
