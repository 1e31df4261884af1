"""Where several processes take turns (pytest-xdist): which order test files run in, which stay in one, what is told."""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Tests of such a room share what takes seconds to start and to warm up; those of the first two the Spark session, those
# of the first and the third the real metastore.
SHARING_ROOMS: Final = tuple(f"tests/{room}/" for room in ("pipeline", "spark", "comparison", "iceberg", "kerberos"))
_TOGETHER: Final = dict.fromkeys(("tests/spark/", "tests/comparison/"), "tests/pipeline/")
# What takes longest begins first, so that no process is left alone with it.
LONGEST: Final = (*SHARING_ROOMS, "tests/linearizability/", "tests/faults/", "tests/simulation/")


def place(test: str) -> int:
    return next((number for number, room in enumerate(LONGEST) if test.startswith(room)), len(LONGEST))


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Each process takes the next file or sharing room when it is done with one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        scope = next((room for room in SHARING_ROOMS if file.startswith(room)), file)
        return _TOGETHER.get(scope, scope)

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process; what it has not run others will, but for the test that it died of."""
        work = self.assigned_work[node]
        died = next((test for tests in work.values() for test, is_done in tests.items() if not is_done), None)
        if died is not None:
            work[self._split_scope(died)][died] = True
        # A process that is given a file without tests to run never asks for the next one.
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        super().remove_node(node)
        return died


def tell_less(config: pytest.Config) -> None:
    """From now on this process tells the first one only how each test ended, where nobody asks for times.

    To tell it also that a test begins, is set up and torn down takes a thousandth of a second of both.
    """
    if config.option.durations is not None:
        return
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            send = plugin.sendevent
            plugin.sendevent = lambda name, send=send, **told: None if _is_needless(name, told) else send(name, **told)


def _is_needless(name: str, told: dict[str, Any]) -> bool:
    if name == "testreport":
        report = told["data"]
        return bool(report["outcome"] == "passed" and report["when"] != "call")
    return name == "logstart"
