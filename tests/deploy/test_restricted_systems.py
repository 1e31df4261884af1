"""A gateway of an ordinary account reads and changes on systems that refuse it or lack what others have."""

import gzip
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.gateway.http.request_body import INFLATED_AT_ONCE_BYTES
from tests.support.ordinary_account import (
    ACCOUNT,
    AS_ACCOUNT,
    IS_ROOT,
    OrdinaryServer,
    data_folder,
    skip_unless_possible,
)
from tests.support.refused_calls import CANNOT_FILTER
from tests.support.server import PASSWORD, USER, basic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
NO_SHARED_MEMORY = 'mount -t tmpfs -o mode=0 none /dev/shm && exec "$@"'
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
Under = Callable[[Path], tuple[str, ...]]


def ordinary(*before: str) -> Under:
    return lambda folder: (*before, *AS_ACCOUNT)


ONE_PROCESSOR = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
HALF_A_PROCESSOR = (sys.executable, str(SUPPORT / "half_processor.py"))
MASK_000 = 'umask 000 && exec "$@"'
POOR_ENVIRONMENT = ("env", "-u", "PYTHONUTF8", "LANG=C", "LC_ALL=C")
SYSTEMS = [
    # Those that exclude no other one are one system; the whole has each of them alone.
    pytest.param(
        ordinary(
            *(*HALF_A_PROCESSOR, "nice", "-n", "15", *ONE_PROCESSOR, "sh", "-c", MASK_000, "sh"),
            *(*POOR_ENVIRONMENT, "env", "-u", "HOME"),
        ),
        id="half-of-one-processor-niceness-15-umask-000-lang-c-no-home",
    ),
    pytest.param(ordinary("nice", "-n", "15"), id="niceness-15", marks=pytest.mark.whole),
    pytest.param(ordinary(*HALF_A_PROCESSOR), id="half-a-processor", marks=pytest.mark.whole),
    pytest.param(
        ordinary(sys.executable, str(SUPPORT / "refused_calls.py"), "sched_setaffinity,setpriority"),
        marks=pytest.mark.skipif(bool(CANNOT_FILTER), reason=CANNOT_FILTER),
        id="refused-calls",
    ),
    pytest.param(ordinary(*ONE_PROCESSOR), id="one-processor", marks=pytest.mark.whole),
    pytest.param(
        ordinary("unshare", "--mount", "--propagation", "private", "sh", "-c", NO_SHARED_MEMORY, "sh"),
        marks=needs_root,
        id="no-shared-memory",
    ),
    pytest.param(
        lambda folder: (str(ROOT / "deploy" / "least-rights"), str(folder), str(ACCOUNT)),
        marks=needs_root,
        id="read-only-root",
    ),
    pytest.param(ordinary("sh", "-c", MASK_000, "sh"), id="umask-000", marks=pytest.mark.whole),
    pytest.param(ordinary(*POOR_ENVIRONMENT), id="lang-c", marks=pytest.mark.whole),
    pytest.param(ordinary("env", "-u", "HOME"), id="no-home", marks=pytest.mark.whole),
]


@pytest.mark.parametrize("under", SYSTEMS)
def test_a_gateway_serves_reads_and_changes(under: Under) -> None:
    with data_folder() as folder:
        skip_unless_possible(under(folder))
        serve_reads_and_changes(OrdinaryServer(folder, under(folder)))


def serve_reads_and_changes(restricted: OrdinaryServer) -> None:
    with restricted as server:
        refused, _ = server.post(message("get_all_databases"), headers=basic(USER, PASSWORD + "?"))
        assert refused == 401
        assert result_of(server, "get_all_databases") == {"0": {"lst": ["str", 1, "default"]}}
        result_of(server, "create_database", {"1": {"str": "sales"}, "2": {"str": "verkäufe ☃"}})
        result_of(server, "create_table", large_table())
        parameters = result_of(server, "get_table", "sales", "orders")["0"]["rec"]["9"]["map"][3]
        assert parameters["owner.team"] == "Käufer"
        result_of(server, "drop_table", "sales", "orders", True)
        result_of(server, "drop_database", "sales", True, False)
        assert result_of(server, "get_all_databases") == {"0": {"lst": ["str", 1, "default"]}}
        assert server.stop() == 0
    log = server.log_text()
    assert [line for line in log.splitlines() if '"level":"error"' in line or "Traceback" in line] == [], log


def large_table() -> dict[str, Any]:
    """Sent compressed, it is so large that a thread of its own inflates it."""
    words = random.Random(0)
    parameters = {f"comment.{n}": words.randbytes(1_500).hex() for n in range(10)} | {"owner.team": "Käufer"}
    columns = ["rec", 1, {"1": {"str": "id"}, "2": {"str": "bigint"}}]
    return {
        "1": {"str": "orders"},
        "2": {"str": "sales"},
        "7": {"rec": {"1": {"lst": columns}, "7": {"rec": {}}}},
        "9": {"map": ["str", "str", len(parameters), parameters]},
    }


def result_of(server: OrdinaryServer, method: str, *arguments: Any) -> Any:
    body = gzip.compress(message(method, *arguments))
    assert method != "create_table" or len(body) > INFLATED_AT_ONCE_BYTES
    status, answer = server.post(body, headers={"content-encoding": "gzip"})
    assert status == 200, answer
    _, _, kind, _, result = json.loads(answer)
    assert (kind, result.keys() - {"0"}) == (2, set()), answer
    return result


def message(method: str, *arguments: Any) -> bytes:
    kinds = {dict: "rec", str: "str", bool: "tf"}
    fields = {str(n): {kinds[type(value)]: value} for n, value in enumerate(arguments, 1)}
    return json.dumps([1, method, 1, 1, fields], ensure_ascii=False).encode()
