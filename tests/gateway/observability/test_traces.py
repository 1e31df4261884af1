"""Which calls are traced, and that nothing waits for the collector."""

import sys
import threading
from random import Random

import pytest

from hms_gateway.cli.operations.start_checks import start_problems
from hms_gateway.gateway.assembly import build_gateway
from hms_gateway.gateway.observability.traces import SPANS_WAITING_MAX, Traces, parse_trace_parent
from hms_gateway.runtime.call_record import (
    CallRecord,
    Trace,
    TraceParent,
    TraceSpan,
    TraceSpans,
    set_notes,
    shared_notes,
)
from hms_gateway.runtime.call_record import current_notes as notes_here
from hms_gateway.runtime.settings import SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.serving import CALL, CannedProcessor, post, read_response, record, running
from tests.support.patience import PATIENCE_SECONDS, until

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [
        (PARENT, True),
        (f"00-{TRACE_ID}-{SPAN_ID}-00", False),
        (f"00-{TRACE_ID}-{SPAN_ID}-03", True),
        (f"cc-{TRACE_ID}-{SPAN_ID}-01-what-later-versions-add", True),
        ("", None),
        (PARENT.upper(), None),
        (f"ff-{TRACE_ID}-{SPAN_ID}-01", None),
        (f"{PARENT}-more", None),
        (f"00-{'0' * 32}-{SPAN_ID}-01", None),
        (f"00-{TRACE_ID}-{'0' * 16}-01", None),
        (f"00-{TRACE_ID}-{SPAN_ID}", None),
        (f"00-{TRACE_ID[:-1]}-{SPAN_ID}-01", None),
        (f" {PARENT}", None),
        ("\xe9" * 55, None),
    ],
)
def test_a_header_names_a_span_or_is_ignored(header, is_sampled):
    found = parse_trace_parent(header.encode("latin-1"))
    expected = None if is_sampled is None else TraceParent(int(TRACE_ID, 16), int(SPAN_ID, 16), is_sampled)
    assert found == expected


@pytest.fixture
def exported():
    return []


@pytest.fixture
def traces(exported):
    def export(calls):
        exported.extend(calls)
        return True

    it = Traces(export, 1.0)
    yield it
    it.close()


def test_a_parent_decides_and_without_one_the_share(traces):
    parent = TraceParent(int(TRACE_ID, 16), int(SPAN_ID, 16), True)
    assert traces.begin([PARENT.encode()], [b"a=1", b"b=2"]) == Trace(parent, "a=1,b=2")
    assert traces.begin([PARENT.encode()[:-1] + b"0"], []) is None
    for without in ([], [b"broken"], [PARENT.encode(), PARENT.encode()]):
        assert traces.begin(without, [b"a=1"]) == Trace(None)
    some = Traces(lambda calls: True, 0.25, Random(1))
    traced = sum(some.begin([], []) is not None for _ in range(1_000))
    some.close()
    assert 200 < traced < 300


def a_call(parts: int = 0) -> CallRecord:
    return record(trace=Trace(None), notes=[TraceSpan("parse", 1.0, 2.0)] * parts)


def test_calls_that_a_slow_collector_has_no_place_for_are_counted_and_not_waited_for():
    goes_on = threading.Event()
    begun = threading.Event()

    def export(calls):
        begun.set()
        return goes_on.wait(PATIENCE_SECONDS)

    traces = Traces(export, 1.0)
    traces.end(a_call(599))
    assert begun.wait(PATIENCE_SECONDS)
    traces.end(a_call(SPANS_WAITING_MAX - 601))
    assert traces.dropped == 0
    traces.end(a_call())
    assert traces.dropped == 1
    goes_on.set()
    until(lambda: traces.exported == SPANS_WAITING_MAX)
    traces.end(a_call())
    traces.close()
    assert (traces.exported, traces.dropped) == (SPANS_WAITING_MAX + 1, 1)


def test_what_the_collector_does_not_take_is_counted():
    def export(calls):
        if calls[0].parts:
            raise OSError("no collector")
        return False

    traces = Traces(export, 1.0)
    traces.end(a_call(599))
    until(lambda: traces.dropped == 600)
    traces.end(a_call())
    traces.close()
    assert (traces.exported, traces.dropped) == (0, 601)


def test_a_call_is_handed_over_when_it_is_answered(traces, exported):
    with running(CannedProcessor(), traces=traces) as server, server.connect() as connection:
        connection.sendall(post(CALL, f"traceparent: {PARENT}", "tracestate: a=1", "x-request-id: r-1"))
        assert read_response(connection)[0] == 200
        connection.sendall(post(CALL, f"traceparent: {PARENT[:-1]}0", "x-request-id: r-2"))
        read_response(connection)
        connection.sendall(post(b"nothing that is Thrift"))
        read_response(connection)
    traces.close()
    (call,) = exported
    assert (call.request_id, call.method, call.outcome, call.status, call.user) == (
        "r-1", "get_all_databases", "ok", 200, "ann",
    )  # fmt: skip
    assert call.trace.parent.span_id == int(SPAN_ID, 16)
    assert [part.name for part in sorted(call.parts, key=lambda part: part.begin)] == [
        "parse",
        "cache",
        "queue",
        "call",
    ]


def test_what_is_done_for_several_calls_at_once_is_noted_for_each():
    one, other = TraceSpans(), TraceSpans()
    set_notes(shared_notes([one, None, other]))
    assert notes_here() is not None
    notes_here().add("sql", 0.0, "SELECT 1")
    set_notes(shared_notes([None]))
    assert notes_here() is None
    assert one.parts == other.parts
    assert one.parts[0].text == "SELECT 1"


def test_without_the_extra_the_setting_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    settings = load_settings(
        data_dir=tmp_path, tls=False, log_level="warning", otel={"endpoint": "http://127.0.0.1:4318"}
    )
    line = "otel.endpoint needs packages that are missing: pip install 'hms-gateway[otel]'"
    assert line in start_problems(settings)
    with pytest.raises(SettingsError, match=r"otel\.endpoint needs packages") as refused:
        build_gateway(
            settings, codecs=None, processor=None, cache=None, ready=None, metrics=None, certificate=None, database=""
        )  # fmt: skip
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("127.0.0.1:4318", "is not an http:// or https:// address"),
        ("http://", "is not an http:// or https:// address"),
        ("http://[::", "is not an http:// or https:// address"),
        ("https://collector.example/?key=planted", "is not an http:// or https:// address"),
        ("https://ann:planted@collector.example", "has a user in it; set OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_an_endpoint_that_is_none_is_refused_without_repeating_it(endpoint, problem):
    with pytest.raises(SettingsError, match=problem) as refused:
        load_settings(otel={"endpoint": endpoint})
    assert "planted" not in str(refused.value)


def test_a_share_is_between_none_and_all():
    with pytest.raises(SettingsError, match=r"otel\.share must be"):
        load_settings(otel={"share": 1.5})
