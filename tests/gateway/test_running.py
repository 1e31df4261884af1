"""Whole server processes: signals, several workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.gateway.serving import CALL, PATH
from tests.support.patience import PATIENCE_SECONDS, until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@contextlib.contextmanager
def program(folder, workers, realm="test"):
    """The running program and its URL, None when it did not start."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.worker_program", str(folder), str(workers), realm],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = process.stdout.readline().strip()
        yield process, f"http://127.0.0.1:{port}{PATH}" if port else None
    finally:
        if process.poll() is None:
            process.terminate()
        with contextlib.suppress(ValueError):
            process.communicate(timeout=PATIENCE_SECONDS)


def answering_process(url) -> int:
    """Which process answers on a new connection."""
    return int(json.loads(httpx.post(url, content=CALL).content)[4]["0"]["lst"][2])


def counters_never_go_back(url, calls) -> bool:
    """Whichever worker is asked: /metrics has what all of them counted."""
    root = url.removesuffix(PATH)
    until(lambda: "hms_gateway_workers 2.0" in httpx.get(f"{root}/metrics").text)
    before = counted(root)
    for number in range(calls):
        httpx.post(url, content=CALL)
        after = counted(root)
        assert after >= before, number
        before = after
    until(lambda: counted(root) >= calls)
    return True


def counted(root) -> float:
    text = httpx.get(f"{root}/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("hms_gateway_calls_total{"))


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_one_process_stops_cleanly(tmp_path, name):
    with program(tmp_path, 1) as (process, url):
        assert answering_process(url) == process.pid
        process.send_signal(name)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, errors
        assert output == f"stopped {process.pid}\n"


def test_workers_share_the_port_are_replaced_and_all_stop(tmp_path):
    with program(tmp_path, 2) as (process, url):
        seen = set()
        until(lambda: seen.add(answering_process(url)) or len(seen) == 2)
        assert process.pid not in seen
        assert counters_never_go_back(url, calls=20)
        victim = seen.pop()
        os.kill(victim, signal.SIGKILL)
        survivors = set(seen)

        def is_replaced():
            with contextlib.suppress(httpx.HTTPError):
                survivors.add(answering_process(url))
            return len(survivors - {victim}) == 2

        until(is_replaced)
        assert "hms_gateway_worker_deaths_total 1.0" in httpx.get(f"{url.partition('/gateway')[0]}/metrics").text
        process.terminate()
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, errors
        assert {int(line.split()[1]) for line in output.splitlines()} == survivors - {victim}


def test_workers_that_cannot_start_end_the_parent(tmp_path):
    with program(tmp_path, 2, realm="broken") as (process, url):
        assert url is None
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 1
        assert "WorkerFailed" in errors
        assert "this worker cannot start" in errors
