"""Every refusal is counted; log lines are few."""

from structlog.testing import capture_logs

from hms_gateway.gateway.admission.identity import LOG_EVERY_SECONDS, Refusals
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text


def test_all_are_counted_and_a_line_says_how_many_were_left_out():
    now = 0.0
    metrics = Metrics(())
    refusals = Refusals(metrics, lambda: now)
    with capture_logs() as lines:
        for _ in range(100):
            refusals.note("share_per_user of streams_max", user="ann", address="10.0.0.1")
        refusals.note("uploads_max")
        now += LOG_EVERY_SECONDS
        refusals.note("share_per_user of streams_max", user="bob")
    assert [(line["limit"], line["user"], line["left_out"]) for line in lines] == [
        ("share_per_user of streams_max", "ann", 0),
        ("uploads_max", "", 0),
        ("share_per_user of streams_max", "bob", 99),
    ]
    assert metrics.limited == {"share_per_user of streams_max": 101, "uploads_max": 1}
    assert b'hms_gateway_limited_total{limit="share_per_user of streams_max"} 101.0' in metrics_text(metrics)
