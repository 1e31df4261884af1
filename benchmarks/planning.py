"""What the metastore takes of PySpark's planning of a query on 10,000 partitions, asked for again, through a bridge
that keeps long answers and through one that does not.

    python -m benchmarks planning

Each has a Spark session of its own, both ask one gateway over TLS. A turn changes the table once and then plans twice.
The metastore's part is the time of all calls as the bridge counts it: from the request's arrival until the reply is
written, so it includes that Spark takes the reply. Wants Java and PySpark.
"""

import argparse
import contextlib
import re
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import msgspec

from benchmarks.bridge import AGAIN_PARTITIONS, AGAIN_TABLE, change
from benchmarks.report import print_table
from benchmarks.server import fill
from tests.bridge.bridge_process import BridgeProcess
from tests.spark.spark_session import SparkSessionProcess
from tests.support.server import GatewayServer

FILTERS = {"all partitions": "ds >= '2026-01-01'", "one in 28": "ds = '2026-01-05'"}
# `hms-gateway` whose bridge keeps no answers: as it was before it could.
KEEPING_NOTHING = """
from hms_gateway.bridge.relays.held_answers import HeldAnswers
from hms_gateway.cli import main
HeldAnswers.wants = lambda *call: False
main()
"""


class Planned(msgspec.Struct, frozen=True):
    """One planning: the metastore's part of it, the whole, and the number of calls."""

    called_seconds: float
    whole_seconds: float
    calls: int


class ForgetfulBridge(BridgeProcess):
    """A bridge that fetches every answer."""

    def __init__(self, gateway: GatewayServer) -> None:
        super().__init__(gateway)
        self._command[:1] = [sys.executable, "-c", KEEPING_NOTHING]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="turns of each, after one that is not counted")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fill(folder / "gateway" / "metastore.db", {AGAIN_TABLE: AGAIN_PARTITIONS})
        gateway = stack.enter_context(GatewayServer(folder / "gateway"))
        bridges = {
            "every answer is fetched": stack.enter_context(ForgetfulBridge(gateway)),
            "long answers are kept": stack.enter_context(BridgeProcess(gateway)),
        }
        sessions = {name: stack.enter_context(session_on(bridge, folder)) for name, bridge in bridges.items()}
        for title, condition in FILTERS.items():
            measured: dict[str, list[list[Planned]]] = {name: [] for name in bridges}
            for _ in range(arguments.turns + 1):
                for name, bridge in bridges.items():
                    change(gateway)
                    measured[name].append([plan(bridge, sessions[name], condition) for _ in range(2)])
            show(title, {name: turns[1:] for name, turns in measured.items()})


@contextlib.contextmanager
def session_on(bridge: BridgeProcess, folder: Path) -> Iterator[SparkSessionProcess]:
    uri = f"thrift://127.0.0.1:{bridge.port}"
    with SparkSessionProcess(uri, folder / "warehouse", folder / f"spark-{bridge.port}") as session:
        # Else Spark looks into the directories of all partitions, which are not there.
        session.sql("SET spark.sql.hive.convertMetastoreOrc=false")
        yield session


def plan(bridge: BridgeProcess, session: SparkSessionProcess, condition: str) -> Planned:
    seconds, calls = called(bridge)
    begin = perf_counter()
    session.sql(f"EXPLAIN SELECT column_0 FROM sales.{AGAIN_TABLE} WHERE {condition}")
    took = perf_counter() - begin
    seconds_after, calls_after = called(bridge)
    return Planned(seconds_after - seconds, took, calls_after - calls)


def called(bridge: BridgeProcess) -> tuple[float, int]:
    """Seconds and number of all calls so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{bridge.side_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    seconds = re.findall(r"^hms_bridge_call_seconds_sum(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    calls = re.findall(r"^hms_bridge_call_seconds_count(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, seconds)), round(sum(map(float, calls)))


def show(title: str, measured: dict[str, list[list[Planned]]]) -> None:
    rows = []
    seconds: dict[str, list[float]] = {}
    for name, turns in measured.items():
        each = list(zip(*turns, strict=True))
        called_ms = [statistics.median(one.called_seconds for one in plans) * 1000 for plans in each]
        whole_ms = [statistics.median(one.whole_seconds for one in plans) * 1000 for plans in each]
        seconds[name] = called_ms
        calls = statistics.median(one.calls for one in each[1])
        rows.append([name, f"{called_ms[0]:.0f} ms", f"{called_ms[1]:.0f} ms", f"{whole_ms[1]:.0f} ms", f"{calls:.0f}"])
    fetched, kept = seconds.values()
    ratios = [f"{one / other:.1f} ×" for one, other in zip(fetched, kept, strict=True)]
    rows.append(["ratio (goal: 2 × the second time)", *ratios, "", ""])
    print_table(
        f"PySpark plans a query on {AGAIN_PARTITIONS:,} partitions: {title}",
        ["bridge", "metastore's part, changed", "the second time", "whole planning, the second time", "calls"],
        rows,
    )


if __name__ == "__main__":
    main()
