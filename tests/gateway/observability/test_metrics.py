"""What /metrics says."""

import httpx
import pytest

from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from tests.gateway.serving import CALL, record, running
from tests.support.patience import until


def count(metrics: Metrics, method: str, outcome: str, seconds: float) -> None:
    metrics.served.add(record(method=method, outcome=outcome, seconds=seconds))


def value(text: str, name: str) -> float:
    """The value of the line that begins with `name`."""
    lines = [line for line in text.splitlines() if line.startswith(name + " ")]
    assert len(lines) == 1, lines
    return float(lines[0].rpartition(" ")[2])


def test_calls_are_counted_by_method_and_outcome():
    metrics = Metrics({"get_table"})
    count(metrics, "get_table", "ok", 0.002)
    count(metrics, "get_table", "ok", 0.3)
    count(metrics, "get_table", "NoSuchObjectException", 0.002)
    text = metrics_text(metrics).decode()
    assert value(text, 'hms_gateway_calls_total{method="get_table",outcome="ok"}') == 2
    assert value(text, 'hms_gateway_calls_total{method="get_table",outcome="NoSuchObjectException"}') == 1
    assert value(text, 'hms_gateway_call_seconds_bucket{le="0.0025",method="get_table"}') == 2
    assert value(text, 'hms_gateway_call_seconds_bucket{le="0.25",method="get_table"}') == 2
    assert value(text, 'hms_gateway_call_seconds_bucket{le="0.5",method="get_table"}') == 3
    assert value(text, 'hms_gateway_call_seconds_bucket{le="+Inf",method="get_table"}') == 3
    assert abs(value(text, 'hms_gateway_call_seconds_sum{method="get_table"}') - 0.304) < 1e-9


def test_a_call_longer_than_all_buckets_is_counted():
    metrics = Metrics({"get_table"})
    count(metrics, "get_table", "ok", 1e6)
    text = metrics_text(metrics).decode()
    assert value(text, 'hms_gateway_call_seconds_bucket{le="60.0",method="get_table"}') == 0
    assert value(text, 'hms_gateway_call_seconds_count{method="get_table"}') == 1


def test_unknown_method_names_share_one_label():
    metrics = Metrics({"get_table"})
    for number in range(100):
        count(metrics, f'evil"{number}', "UNKNOWN_METHOD", 0.001)
    text = metrics_text(metrics).decode()
    assert "evil" not in text
    assert value(text, 'hms_gateway_calls_total{method="unknown",outcome="UNKNOWN_METHOD"}') == 100


@pytest.mark.slow
def test_the_page_shows_what_the_endpoint_did():
    with running() as server:
        for _ in range(3):
            httpx.post(server.url, content=CALL)
        httpx.get(server.url)
        until(lambda: server.metrics.calls_in_flight == 0)
        reply = httpx.get(f"{server.root}/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert value(reply.text, 'hms_gateway_calls_total{method="get_all_databases",outcome="ok"}') == 3
    assert value(reply.text, 'hms_gateway_http_responses_total{status="200"}') == 3
    assert value(reply.text, 'hms_gateway_http_responses_total{status="405"}') == 1
    assert value(reply.text, "hms_gateway_received_bytes_total") == 3 * len(CALL)
    assert value(reply.text, "hms_gateway_calls_in_flight") == 0


def test_refusals_are_counted_by_reason():
    metrics = Metrics(())
    metrics.refusals["wrong_password"] += 1
    assert (
        value(metrics_text(metrics).decode(), 'hms_gateway_authentication_refused_total{reason="wrong_password"}') == 1
    )
