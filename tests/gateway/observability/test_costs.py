"""What calls cost: counted by method, user and object, added up over workers, shown to those who may see it."""

import os
import subprocess
import sys

import httpx
import pytest

from hms_gateway.gateway.admission.identity import Refused
from hms_gateway.gateway.application import GatewayStatus
from hms_gateway.gateway.observability.costs import cost_report
from hms_gateway.gateway.observability.figures import (
    SECONDS_BUCKETS,
    Figures,
    Replica,
    WorkerFigures,
    make_folder,
    merged,
    percentile,
)
from hms_gateway.gateway.observability.metrics import (
    FOLD_SECONDS,
    GROUPS_MAX,
    OBJECTS_MAX,
    WINDOW_SECONDS,
    CallCounter,
    Metrics,
)
from hms_gateway.gateway.observability.metrics_text import metrics_text
from tests.gateway.serving import CALL, Anybody, record, running

SCOPES = (("table", "sales", "orders"),)


class Moments:
    """A clock that moves when it is asked to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def counter(moments) -> CallCounter:
    return CallCounter({"get_table", "lock"}, moments, moments)


def add(counter, method="get_table", outcome="ok", *, user="ann", about=SCOPES, seconds=0.002, cached=False):
    counter.add(
        record(
            method=method,
            outcome=outcome,
            user=user,
            objects=about,
            seconds=seconds,
            cached=cached,
            bytes_in=100,
            bytes_out=1_000,
        )
    )


def report(counter, **changes):
    figures = counter.read()
    return cost_report(figures, **{"user": "ann", "sees_all": True, "newest_event": None, "now": 1_000.0, **changes})


def row(rows, name):
    return next(each for each in rows if each["name"] == name)


def test_calls_are_counted_by_method_user_and_object(counter):
    add(counter)
    add(counter, cached=True, seconds=0.0002)
    add(counter, outcome="NoSuchObjectException", user="bob", about=("sales.nothing",))
    add(counter, "lock", user="bob", about=("sales.orders", "sales.lines"), seconds=3.0)
    add(counter, "no_such_method", outcome="UNKNOWN_METHOD", about=())
    found = report(counter)
    get_table = row(found["methods"], "get_table")
    assert (get_table["calls"], get_table["errors"], get_table["cached"]) == (3, 1, 1)
    assert get_table["outcomes"] == {"ok": 2, "NoSuchObjectException": 1}
    assert (get_table["bytes_in"], get_table["bytes_out"]) == (300, 3_000)
    assert row(found["methods"], "unknown")["calls"] == 1
    assert next(each["name"] for each in found["methods"]) == "lock"
    assert (row(found["users"], "bob")["calls"], row(found["users"], "bob")["errors"]) == (2, 1)
    assert row(found["objects"], "sales.orders")["calls"] == 2
    assert row(found["objects"], "sales")["calls"] == 1
    assert row(found["objects"], "sales.nothing")["errors"] == 1


def test_a_user_who_may_not_see_all_gets_no_names_of_others(counter):
    add(counter)
    add(counter, user="bob")
    counter.add_slow(record(method="lock", user="bob", objects=("sales.orders",), spans=[("read", 2.0, 3.0)]))
    found = report(counter, sees_all=False)
    assert [each["name"] for each in found["users"]] == ["ann"]
    assert found["objects"] == found["slow_calls"] == []
    assert report(counter)["slow_calls"][0]["spans"] == {"read": 1.0}


def test_names_are_bounded_and_the_busiest_are_kept(counter):
    for number in range(20 * OBJECTS_MAX):
        add(counter, about=(f"a.t{number}",))
        add(counter, about=("a.hot",))
    assert len(counter.read().window.objects) <= OBJECTS_MAX
    assert row(report(counter)["objects"], "a.hot")["calls"] == 20 * OBJECTS_MAX


def test_users_and_outcomes_without_end_are_bounded(counter, moments):
    for number in range(3 * GROUPS_MAX):
        add(counter, user=f"u{number}")
        moments.now += 0.001
    figures = counter.read()
    assert len(figures.window.users) < 2 * GROUPS_MAX
    assert figures.methods["get_table"].calls == 3 * GROUPS_MAX


def test_the_window_forgets_and_totals_do_not(counter, moments):
    add(counter)
    for _ in range(2):
        moments.now += WINDOW_SECONDS
        counter.look()
    add(counter, "lock", about=())
    assert set(counter.read().window.methods) == {"lock"}
    assert counter.methods()["get_table"].calls == 1
    assert report(counter, now=moments.now)["objects"] == []


def test_rates_are_those_of_the_last_minute(counter, moments):
    for _ in range(120):
        add(counter, cached=True)
        moments.now += 1.0
        counter.look()
    now = report(counter, now=moments.now)["now"]
    assert now["calls_per_second"] == pytest.approx(1.0, rel=0.1)
    assert (now["cache_hit_share"], now["errors_per_second"]) == (1.0, 0.0)
    series = report(counter, now=moments.now)["series"]
    assert series["calls_per_second"][-10:] == [1.0] * 10
    assert {len(column) for column in series.values() if isinstance(column, list)} == {len(series["time"])}


@pytest.mark.parametrize(
    ("seconds", "part", "low", "high"),
    [([], 0.5, None, None), ([0.002], 0.5, 0.001, 0.0025), ([0.0001] * 99 + [2.0], 0.99, 0, 0.0001),
     ([0.0001] * 98 + [2.0] * 2, 0.99, 1.0, 2.5), ([1_000.0], 0.5, 60.0, 60.0)],
)  # fmt: skip
def test_percentiles_lie_in_the_bucket_of_the_call(counter, seconds, part, low, high):
    for each in seconds:
        add(counter, seconds=each)
    methods = counter.methods()
    found = percentile(methods["get_table"].counts if methods else [0] * len(SECONDS_BUCKETS), part)
    assert found is None if low is None else low <= found <= high


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_figures_of_workers_are_added_up_and_those_of_a_dead_one_stay_counted(counter, tmp_path):
    add(counter)
    dead, own = counter.read(), counter.read()
    dead.pid, dead.gauges, own.gauges = ended_process(), {"calls_in_flight": 7}, {"calls_in_flight": 1}
    dead.replicas, own.replicas = [Replica("a", dead.pid, 4)], [Replica("a", own.pid, 5)]
    folder = make_folder(tmp_path)
    WorkerFigures(folder).leave(dead)
    (folder / "broken").write_bytes(b"x")
    (folder / "12").write_bytes(b"x")
    found = WorkerFigures(folder).all(own)
    assert found.methods["get_table"].calls == 2
    assert (found.gauges, found.workers, found.replicas) == ({"calls_in_flight": 1}, 1, own.replicas)
    assert b'hms_gateway_calls_total{method="get_table",outcome="ok"} 2.0' in metrics_text(Metrics(()), found)


def test_older_figures_do_not_replace_newer_ones(counter, tmp_path, moments):
    shared = WorkerFigures(make_folder(tmp_path))
    older = counter.read()
    moments.now += 1
    add(counter)
    assert shared.all(counter.read()).methods["get_table"].calls == 1
    assert shared.all(older).methods["get_table"].calls == 1


def test_folders_of_killed_gateways_are_removed(tmp_path):
    folder = make_folder(tmp_path)
    left = folder.with_name(folder.name.replace(str(os.getpid()), str(ended_process())))
    left.mkdir()
    make_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_lag_is_what_the_catalog_has_and_the_process_has_not_seen():
    figures = merged([Figures(os.getpid(), 1.0, replicas=[Replica("a:1", 5, 40)])], frozenset({os.getpid()}))
    (found,) = cost_report(figures, user="ann", sees_all=True, newest_event=42)["replicas"]
    assert (found["name"], found["pid"], found["event_id"]) == ("a:1", 5, 40)
    assert (found["lag_events"], found["lag_seconds"]) == (2, None)
    (found,) = cost_report(figures, user="ann", sees_all=True, newest_event=40)["replicas"]
    assert (found["lag_events"], found["lag_seconds"]) == (0, 0)


def test_machines_are_shown_to_who_sees_all():
    others = [Replica("b.internal:1", 6, 41, "id", "1.2", 1.0, 2.0, 1, 0.5)]
    figures = Figures(os.getpid(), 1.0, replicas=[Replica("a.internal:1", 5, 40)], others=others)
    rows = cost_report(figures, user="ann", sees_all=False, newest_event=42)["replicas"]
    assert [(row["name"], row["pid"], row["version"]) for row in rows] == [
        ("gateway 1", None, ""),
        ("gateway 2", None, ""),
    ]
    assert [(row["is_own"], row["lag_events"], row["lag_seconds"]) for row in rows] == [
        (True, 2, None),
        (False, 1, 0.5),
    ]


def test_names_are_in_the_metrics_only_where_that_is_set(counter):
    add(counter)
    assert b"orders" not in metrics_text(Metrics(()), counter.read())
    assert b'hms_gateway_object_recent_calls{object="sales.orders"} 1.0' in metrics_text(
        Metrics(()), counter.read(), show_names=True
    )


def test_the_page_needs_a_login_and_shows_what_was_called():
    with running(slow_call_seconds=1e-9) as server:
        server.server._gateway.status = GatewayStatus(server.metrics, administrators=["ann"], follow=lambda: None)
        httpx.post(server.url, content=CALL)
        reply = httpx.get(f"{server.root}/status/costs")
    assert reply.headers["cache-control"] == "no-store"
    found = reply.json()
    assert (found["user"], found["sees_all"]) == ("ann", True)
    assert row(found["methods"], "get_all_databases")["calls"] == 1
    assert {"queue", "call"} <= set(found["slow_calls"][0]["spans"])


@pytest.mark.slow
def test_the_page_refuses_strangers_and_other_pages():
    class Closed(Anybody):
        def remembered(self, head):
            return None

        async def authenticate(self, head):
            raise Refused(401, "Log in", headers=((b"www-authenticate", b"Basic"),))

    with running(authenticator=Closed(), origins=()) as server:
        stranger = httpx.get(f"{server.root}/status/costs")
        page = httpx.get(f"{server.root}/status/costs", headers={"origin": "https://evil.example"})
    assert (stranger.status_code, stranger.headers["www-authenticate"], stranger.text) == (401, "Basic", "Log in\n")
    assert page.status_code == 403


def test_a_fold_is_not_in_the_way_of_a_group_that_was_just_made(counter, moments):
    add(counter)
    moments.now += FOLD_SECONDS
    add(counter, user="bob")
    add(counter, user="bob")
    assert counter.methods()["get_table"].calls == 3
