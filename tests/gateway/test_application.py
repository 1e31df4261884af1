"""The pages beside the endpoint."""

import httpx
import pytest

from hms_gateway.gateway.application import NotReady
from tests.gateway.serving import running


def test_alive_and_ready():
    with running() as server:
        assert (httpx.get(f"{server.root}/healthz").status_code, httpx.get(f"{server.root}/readyz").text) == (
            200,
            "ready\n",
        )


@pytest.mark.slow
def test_not_ready_while_the_database_cannot_be_used_and_ready_again_afterwards():
    problems = [OSError("password=secret"), None]

    def ready():
        problem = problems.pop(0)
        if problem is not None:
            raise problem

    with running(ready=ready) as server:
        first = httpx.get(f"{server.root}/readyz")
        assert first.status_code == 503
        assert "secret" not in first.text
        assert httpx.get(f"{server.root}/healthz").status_code == 200
        assert httpx.get(f"{server.root}/readyz").status_code == 200


def test_the_reason_for_which_it_is_not_ready_is_one_line():
    def ready():
        raise NotReady("the disk of the database is full")

    with running(ready=ready) as server:
        answer = httpx.get(f"{server.root}/readyz")
        assert (answer.status_code, answer.text) == (503, "the disk of the database is full\n")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/nothing", "/metastore/other", "/metrics/x", "/%2e%2e/etc/passwd"])
def test_other_paths_are_not_found(path):
    with running() as server:
        answer = httpx.get(server.root + path)
        assert answer.status_code == 404
        assert "/metastore" in answer.text


@pytest.mark.slow
def test_pages_are_for_reading():
    with running() as server:
        refused = httpx.post(f"{server.root}/healthz")
        assert (refused.status_code, set(refused.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
        head = httpx.head(f"{server.root}/healthz")
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "3")


def test_a_slash_behind_a_page_changes_nothing():
    with running() as server:
        assert httpx.get(f"{server.root}/healthz/").text == "ok\n"


@pytest.mark.parametrize("end", ["%0a", "/%0a", "%0a?x"])
def test_a_page_with_a_line_end_behind_it_which_rules_of_proxies_do_not_stop_is_none(end):
    with running() as server:
        assert httpx.get(f"{server.root}/metrics{end}").status_code == 404
