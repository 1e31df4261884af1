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
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import msgspec

from benchmarks.bridge import AGAIN_PARTITIONS, AGAIN_TABLE, change
from benchmarks.peer.usage import cpu_seconds
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
    """One planning: the time of its calls, the CPU time of gateway and bridge, all of it, and the number of calls."""

    called_seconds: float
    cpu_seconds: float
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
                    measured[name].append([plan(gateway, bridge, sessions[name], condition) for _ in range(2)])
            show(title, {name: turns[1:] for name, turns in measured.items()})


@contextlib.contextmanager
def session_on(bridge: BridgeProcess, folder: Path) -> Iterator[SparkSessionProcess]:
    uri = f"thrift://127.0.0.1:{bridge.port}"
    with SparkSessionProcess(uri, folder / "warehouse", folder / f"spark-{bridge.port}") as session:
        # Else Spark looks into the directories of all partitions, which are not there.
        session.sql("SET spark.sql.hive.convertMetastoreOrc=false")
        yield session


def plan(gateway: GatewayServer, bridge: BridgeProcess, session: SparkSessionProcess, condition: str) -> Planned:
    seconds, calls = called(bridge)
    cpu = cpu_seconds([gateway.pid, bridge.pid])
    begin = perf_counter()
    session.sql(f"EXPLAIN SELECT column_0 FROM sales.{AGAIN_TABLE} WHERE {condition}")
    took = perf_counter() - begin
    cpu = cpu_seconds([gateway.pid, bridge.pid]) - cpu
    seconds_after, calls_after = called(bridge)
    return Planned(seconds_after - seconds, cpu, took, calls_after - calls)


def called(bridge: BridgeProcess) -> tuple[float, int]:
    """Seconds and number of all calls so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{bridge.side_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    seconds = re.findall(r"^hms_bridge_call_seconds_sum(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    calls = re.findall(r"^hms_bridge_call_seconds_count(?:\{.*\})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, seconds)), round(sum(map(float, calls)))


def show(title: str, measured: dict[str, list[list[Planned]]]) -> None:
    medians = {name: [middle(plans) for plans in zip(*turns, strict=True)] for name, turns in measured.items()}
    rows = [
        [name, ms(first.called_seconds), ms(again.called_seconds), ms(again.cpu_seconds), ms(again.whole_seconds)]
        for name, (first, again) in medians.items()
    ]
    fetched, kept = medians.values()
    ratios = [
        *(one.called_seconds / other.called_seconds for one, other in zip(fetched, kept, strict=True)),
        fetched[1].cpu_seconds / kept[1].cpu_seconds if kept[1].cpu_seconds else 0.0,
        fetched[1].whole_seconds / kept[1].whole_seconds,
    ]
    rows.append(["ratio (goal: 2 × for the metastore's part)", *(f"{ratio:.1f} ×" for ratio in ratios)])
    calls = fetched[1].calls
    print_table(
        f"PySpark plans a query on {AGAIN_PARTITIONS:,} partitions by {calls} calls: {title}",
        ["bridge", "calls, changed", "calls, the second time", "their CPU", "whole planning"],
        rows,
    )


def middle(plans: Sequence[Planned]) -> Planned:
    """Medians; of CPU time, which is counted in hundredths of a second, the mean."""
    return Planned(
        statistics.median(one.called_seconds for one in plans),
        statistics.fmean(one.cpu_seconds for one in plans),
        statistics.median(one.whole_seconds for one in plans),
        round(statistics.median(one.calls for one in plans)),
    )


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    main()
