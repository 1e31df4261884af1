"""Server-Timing, for clients that ask for it."""

import re

import httpx
import pytest

from hms_gateway.rpc.call import Dialect
from tests.gateway.serving import ANSWER, CALL, DATABASES, CannedProcessor, FakeCache, running

KEY = ("tjson", Dialect.HIVE_2_3, "get_all_databases", b"{}")
WANTED = {"x-hms-server-timing": "1"}


def metrics(response: httpx.Response) -> dict[str, float]:
    """The milliseconds of each metric; fails for what is not a list of metrics."""
    found = {}
    for metric in response.headers["server-timing"].split(", "):
        name, milliseconds = re.fullmatch(r"([a-z]+(?:;desc=hit)?);dur=(\d+\.\d{3})", metric).groups()
        found[name] = float(milliseconds)
    return found


@pytest.fixture(scope="module")
def client():
    with httpx.Client() as it:
        yield it


def test_a_cached_call_has_the_time_of_the_look_up_only(client):
    with running(CannedProcessor(), cache=FakeCache({KEY: DATABASES})) as server:
        answer = client.post(server.url, content=CALL, headers=WANTED)
        assert answer.content == ANSWER
        found = metrics(answer)
        assert list(found) == ["parse", "cache;desc=hit", "total"]
        assert found["parse"] + found["cache;desc=hit"] <= found["total"]


def test_a_call_that_is_not_cached_has_the_time_of_its_thread(client):
    with running(CannedProcessor(), cache=FakeCache()) as server:
        found = metrics(client.post(server.url, content=CALL, headers=WANTED))
        assert set(found) == {"parse", "cache", "queue", "call", "total"}
        assert found["queue"] + found["call"] <= found["total"]


@pytest.mark.slow
def test_a_refused_call_has_its_times_and_a_body_that_is_none_has_no_header(client):
    with running(CannedProcessor(get_table=RuntimeError("broken"))) as server:
        failed = client.post(server.url, content=b'[1,"get_table",1,1,{}]', headers=WANTED)
        assert "total" in metrics(failed)
        refused = client.post(server.url, content=b"nothing that is Thrift", headers=WANTED)
        assert (refused.status_code, "server-timing" in refused.headers) == (400, False)


@pytest.mark.parametrize("headers", [{}, {"x-hms-server-timing": "0"}])
def test_nothing_is_added_for_others(client, headers):
    with running(CannedProcessor()) as server:
        assert "server-timing" not in client.post(server.url, content=CALL, headers=headers).headers


def test_a_web_page_may_ask_and_read_it(client):
    with running(CannedProcessor()) as server:
        page = {"origin": "https://console.example"}
        preflight = client.options(server.url, headers=page)
        assert "x-hms-server-timing" in preflight.headers["access-control-allow-headers"]
        answer = client.post(server.url, content=CALL, headers={**WANTED, **page})
        assert "server-timing" in answer.headers["access-control-expose-headers"]
        assert metrics(answer)
