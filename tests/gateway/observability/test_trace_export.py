"""What a collector gets: a real one by OTLP over HTTP, on loopback, from a real gateway."""

import gzip
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")

from hms_gateway.gateway.observability.trace_export import TraceExport, open_exporter
from hms_gateway.runtime.call_record import Trace, TraceSpan
from tests.bridge.bridge_process import connected
from tests.gateway.serving import record
from tests.support.patience import until
from tests.support.server import PASSWORD, USER, GatewayServer, basic, free_port

pytestmark = pytest.mark.otel

SPAN_ID = "00f067aa0ba902b7"
SECRETS = ("planted-parameter", "planted-header", PASSWORD)


class Collector:
    """Takes traces as OpenTelemetry collectors do."""

    def __init__(self) -> None:
        self.requests: list = []
        self.bodies: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        assert path == "/v1/traces"
        self.bodies.append(body)
        self.requests.append(ExportTraceServiceRequest.FromString(body))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self, trace_id: str) -> list:
        return [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if span.trace_id.hex() == trace_id
        ]


@pytest.fixture(scope="module")
def collector():
    it = Collector()
    yield it
    it.close()


@pytest.fixture(scope="module")
def thrift_port():
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory, collector, thrift_port):
    settings = {"otel.endpoint": collector.url, "tls": False, "thrift_port": thrift_port}
    folder = tmp_path_factory.mktemp("traced")
    with GatewayServer(folder, settings=settings, environment={"OTEL_SERVICE_NAME": "catalog of ann"}) as it:
        yield it


def call(server, trace_id: str, method: str, arguments: dict, *, flags: str = "01", parent: str | None = None) -> list:
    headers = {**basic(USER, PASSWORD), "X-Other": "planted-header", "X-Request-Id": f"r-{method}"}
    headers["traceparent"] = parent or f"00-{trace_id}-{SPAN_ID}-{flags}"
    status, answer = server.post(json.dumps([1, method, 1, 1, arguments]).encode(), path="/metastore", headers=headers)
    assert status == 200, answer
    return json.loads(answer)


def traced(collector, trace_id: str) -> dict[str, list]:
    """The spans of a trace by name, when it is there whole: a call's span comes in the same request as its parts."""
    until(lambda: any(span.kind == 2 for span in collector.spans(trace_id)))
    by_name: dict[str, list] = {}
    for span in collector.spans(trace_id):
        by_name.setdefault(span.name, []).append(span)
    return by_name


def attributes(span) -> dict:
    def value(of):
        kind = of.WhichOneof("value")
        return [value(each) for each in of.array_value.values] if kind == "array_value" else getattr(of, kind)

    return {each.key: value(each.value) for each in span.attributes}


def table(name: str) -> dict:
    columns = {"lst": ["rec", 1, {"1": {"str": "id"}, "2": {"str": "bigint"}}]}
    descriptor = {"1": columns, "7": {"rec": {"2": {"str": "serde"}}}}
    parameters = {"map": ["str", "str", 1, {"fs.s3a.secret.key": "planted-parameter"}]}
    names = {"1": {"str": name}, "2": {"str": "default"}, "3": {"str": "ann"}}
    return {"1": {"rec": {**names, "7": {"rec": descriptor}, "9": parameters}}}


def test_a_change_has_its_statements_its_files_and_its_commit(server, collector):
    trace_id = "a" * 32
    assert call(server, trace_id, "create_table", table("orders"))[4] == {}
    spans = traced(collector, trace_id)
    (root,) = spans["ThriftHiveMetastore/create_table"]
    assert (root.parent_span_id.hex(), root.kind, root.status.code) == (SPAN_ID, 2, 0)
    found = attributes(root)
    assert {name: found[name] for name in ("rpc.system", "rpc.service", "rpc.method", "hms.outcome", "hms.cached")} == {
        "rpc.system": "thrift", "rpc.service": "ThriftHiveMetastore", "rpc.method": "create_table",
        "hms.outcome": "ok", "hms.cached": False,
    }  # fmt: skip
    assert (found["enduser.id"], found["hms.objects"], found["hms.request_id"]) == (
        USER, ["default.orders"], "r-create_table",
    )  # fmt: skip
    (work,), (commit,), (ran,) = spans["write"], spans["commit"], spans["call"]
    (made,) = spans["files make_directory"]
    assert ran.parent_span_id == root.span_id
    assert {work.parent_span_id, made.parent_span_id} == {ran.span_id}
    assert commit.parent_span_id == work.span_id
    inserts = [span for name, those in spans.items() if name.startswith(("INSERT", "BATCH")) for span in those]
    assert inserts
    assert all(insert.parent_span_id == commit.span_id for insert in inserts)
    statement = attributes(inserts[0])
    assert (statement["db.system"], inserts[0].kind) == ("sqlite", 3)
    assert statement["db.query.text"].startswith("INSERT INTO ")
    times = [(span.start_time_unix_nano, span.end_time_unix_nano) for those in spans.values() for span in those]
    assert all(root.start_time_unix_nano <= begin <= end <= root.end_time_unix_nano for begin, end in times)


def test_a_read_has_its_statements_and_a_cached_one_the_look_up_only(server, collector):
    uncached, cached = "b" * 32, "c" * 32
    assert call(server, "9" * 32, "create_table", table("read_often"))[4] == {}
    arguments = {"1": {"str": "default"}, "2": {"str": "read_often"}}
    call(server, uncached, "get_table", arguments)
    for _ in range(3):
        call(server, "8" * 32, "get_table", arguments, flags="00")
    call(server, cached, "get_table", arguments)
    spans = traced(collector, uncached)
    assert {"parse", "cache", "queue", "call", "read", "SELECT"} <= set(spans)
    (unit,) = spans["read"]
    assert {select.parent_span_id for select in spans["SELECT"]} == {unit.span_id}
    texts = [attributes(select)["db.query.text"] for select in spans["SELECT"]]
    assert not [text for text in texts if "read_often" in text]
    assert [attributes(look_up)["hms.cache.hit"] for look_up in spans["cache"]] == [False]
    again = traced(collector, cached)
    assert set(again) == {"ThriftHiveMetastore/get_table", "parse", "cache"}
    assert attributes(again["cache"][0])["hms.cache.hit"] is True


def test_a_lock_which_needs_no_thread_has_its_statements(server, collector):
    trace_id = "d" * 32
    call(server, trace_id, "open_txns", {"1": {"rec": {"1": {"i32": 1}, "2": {"str": "ann"}, "3": {"str": "host"}}}})
    spans = traced(collector, trace_id)
    (work,) = spans["write"]
    assert work.parent_span_id == spans["ThriftHiveMetastore/open_txns"][0].span_id
    assert "commit" in spans


def test_an_unsampled_trace_is_not_exported_and_a_broken_header_begins_one(server, collector):
    unsampled, broken, last = "e" * 32, "0" * 32, "f" * 32
    call(server, unsampled, "get_all_databases", {}, flags="00")
    call(server, broken, "get_all_functions", {})
    call(server, last, "get_catalogs", {})
    traced(collector, last)
    assert collector.spans(unsampled) == collector.spans(broken) == []
    scopes = [resource.scope_spans[0] for request in collector.requests for resource in request.resource_spans]
    every = [span for scope in scopes for span in scope.spans]
    (own,) = [span for span in every if span.name == "ThriftHiveMetastore/get_all_functions"]
    assert (own.parent_span_id, own.trace_id == bytes(16)) == (b"", False)


def test_failures_name_their_type_and_only_ours_are_errors(server, collector):
    missing, unknown = "1" * 32, "2" * 32
    call(server, missing, "get_table", {"1": {"str": "default"}, "2": {"str": "nothing"}})
    call(server, unknown, "planted_method", {})
    (root,) = traced(collector, missing)["ThriftHiveMetastore/get_table"]
    assert (attributes(root)["error.type"], root.status.code) == ("NoSuchObjectException", 0)
    (other,) = traced(collector, unknown)["ThriftHiveMetastore/_OTHER"]
    assert attributes(other)["rpc.method"] == "_OTHER"


def test_the_service_is_named_and_nothing_secret_is_sent(server, collector):
    trace_id = "3" * 32
    call(server, trace_id, "create_table", table("secrets"))
    traced(collector, trace_id)
    resource = collector.requests[-1].resource_spans[0].resource
    assert attributes(resource)["service.name"] == "catalog of ann"
    assert not [secret for secret in SECRETS if any(secret.encode() in body for body in collector.bodies)]


def test_a_call_by_the_thrift_port_is_a_span(server, collector, thrift_port):
    with connected(SimpleNamespace(port=thrift_port)) as client:
        client.get_all_databases()

    def found() -> list:
        scopes = [resource.scope_spans[0] for request in collector.requests for resource in request.resource_spans]
        spans = [span for scope in scopes for span in scope.spans if not span.parent_span_id]
        return [span for span in spans if "http.response.status_code" not in attributes(span)]

    until(lambda: bool(found()))
    assert [span.name for span in found()] == ["ThriftHiveMetastore/get_all_databases"]


def test_what_was_exported_is_in_the_metrics(server, collector):
    trace_id = "4" * 32
    call(server, trace_id, "get_all_databases", {})
    traced(collector, trace_id)

    def figures() -> dict[str, float]:
        with server.connection() as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("hms_gateway_spans")}

    until(lambda: figures()["hms_gateway_spans_exported_total"] > 0)
    assert figures()["hms_gateway_spans_dropped_total"] == 0


def exported(parts: list[TraceSpan], make: Callable[[], object] = lambda: open_exporter("http://127.0.0.1:9")) -> bool:
    export = TraceExport(make(), "1", "sqlite", {"get_table"})
    return export([record(time=9.0, ended=2.0, seconds=1.0, trace=Trace(None), notes=parts)])


def test_a_collector_that_is_away_is_no_error(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    assert exported([]) is False


def test_statements_are_named_by_what_they_do(collector):
    parts = [
        TraceSpan("sql", 1.1, 1.2, "SELECT a FROM b; SELECT c FROM d", 2),
        TraceSpan("sql", 1.3, 1.4, "INSERT INTO b (a) VALUES (?); UPDATE d SET c = ?", 2),
    ]
    before = len(collector.requests)
    assert exported(parts, lambda: open_exporter(f"{collector.url}/"))
    spans = collector.requests[before].resource_spans[0].scope_spans[0].spans
    statements = [span for span in spans if span.kind == 3]
    assert [span.name for span in statements] == ["SELECT", "BATCH INSERT UPDATE"]
    assert attributes(statements[0])["db.operation.batch.size"] == 2
