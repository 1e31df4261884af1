"""Makes OpenTelemetry spans of traced calls and sends them to a collector by OTLP over HTTP.

Names and attributes are those of OpenTelemetry's semantic conventions. Spans have the text of statements and the names
of users and objects; values, arguments and headers never come here.
"""

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from hms_gateway.gateway.observability.figures import GOOD_OUTCOMES, INTERNAL_OUTCOMES
from hms_gateway.runtime.addresses import host_of
from hms_gateway.runtime.call_record import CallRecord, Trace, TraceSpan, object_names

SERVICE = "ThriftHiveMetastore"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.27.0"
STATEMENT = "sql"
TEXT_CHARACTERS_MAX = 4_000
NAME_CHARACTERS_MAX = 256
LOG_EVERY_SECONDS = 60.0


class TraceExport:
    """An `Export` of `traces`. `database` is the value of `db.system`; methods that are not known share a name."""

    def __init__(self, exporter: SpanExporter, version: str, database: str, known_methods: Collection[str]) -> None:
        self._exporter = exporter
        self._database = database
        self._known = frozenset(known_methods)
        self._made = _Made()
        ours = {"service.name": "hms-gateway", "service.version": version}
        # What the standard variables say goes before it.
        resource = Resource(ours).merge(OTELResourceDetector().detect())
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(self._made)
        self._tracer = provider.get_tracer("hms_gateway", version, SCHEMA_URL)

    def __call__(self, calls: Sequence[CallRecord]) -> bool:
        for call in calls:
            self._make(call)
        spans, self._made.spans = self._made.spans, []
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def _make(self, call: CallRecord) -> None:
        offset = call.time - call.ended
        method = call.method if call.method in self._known else "_OTHER"
        root = self._tracer.start_span(
            f"{SERVICE}/{method}",
            _remote(call.trace),
            SpanKind.SERVER,
            _attributes(call, method),
            start_time=_nanoseconds(call.time - call.seconds),
        )
        if call.outcome in INTERNAL_OUTCOMES or call.status >= 500:
            root.set_status(Status(StatusCode.ERROR, call.outcome))
        self._make_parts(call, root, offset)
        root.end(_nanoseconds(call.time))

    def _make_parts(self, call: CallRecord, root: Span, offset: float) -> None:
        """Each part belongs to the shortest one that it lies within."""
        around: list[tuple[float, Span]] = []
        for part in sorted(call.parts, key=lambda part: (part.begin, -part.end)):
            while around and around[-1][0] < part.end:
                around.pop()
            parent = around[-1][1] if around else root
            span = self._tracer.start_span(
                part.name if part.name != STATEMENT else _operation(part.text),
                set_span_in_context(parent),
                SpanKind.CLIENT if part.name == STATEMENT else SpanKind.INTERNAL,
                self._attributes_of(part, call),
                start_time=_nanoseconds(part.begin + offset),
            )
            span.end(_nanoseconds(part.end + offset))
            around.append((part.end, span))

    def _attributes_of(self, part: TraceSpan, call: CallRecord) -> dict[str, str | bool | int]:
        if part.name == "cache":
            return {"hms.cache.hit": call.cached}
        if part.name != STATEMENT:
            return {}
        batch: dict[str, str | bool | int] = (
            {} if part.statement_count == 1 else {"db.operation.batch.size": part.statement_count}
        )
        return {
            "db.system": self._database,
            "db.operation.name": _operation(part.text),
            "db.query.text": part.text[:TEXT_CHARACTERS_MAX],
            **batch,
        }


def open_exporter(endpoint: str) -> SpanExporter:
    """Of the collector at `endpoint`. Headers, certificates, timeout and compression are those of OTEL_EXPORTER_OTLP_….

    Raises ValueError for such a variable that cannot be read.
    """
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(_seldom)
    return OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")


class _Seldom(logging.Filter):
    """A collector that is away would otherwise fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._next_at = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + LOG_EVERY_SECONDS
        return True


_seldom = _Seldom()


class _Made(SpanProcessor):  # type: ignore[misc]
    """Takes the spans that were made; one thread makes them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def _remote(trace: Trace | None) -> object:
    """The context that the call came in; None where it begins a trace."""
    if trace is None or trace.parent is None:
        return None
    state = TraceState.from_header([trace.state]) if trace.state else None
    parent = SpanContext(trace.parent.trace_id, trace.parent.span_id, True, TraceFlags(TraceFlags.SAMPLED), state)
    return set_span_in_context(NonRecordingSpan(parent))


def _attributes(call: CallRecord, method: str) -> dict[str, object]:
    attributes: dict[str, object] = {
        "rpc.system": "thrift",
        "rpc.service": SERVICE,
        "rpc.method": method,
        "client.address": host_of(call.address),
        "enduser.id": call.user[:NAME_CHARACTERS_MAX],
        "hms.request_id": call.request_id,
        "hms.outcome": call.outcome,
        "hms.cached": call.cached,
        "hms.objects": list(_short(object_names(call.objects))),
    }
    if call.status:
        attributes["http.response.status_code"] = call.status
    if call.outcome not in GOOD_OUTCOMES:
        attributes["error.type"] = call.outcome
    return attributes


def _short(names: Iterable[str]) -> Iterable[str]:
    return (name[:NAME_CHARACTERS_MAX] for name in names)


@lru_cache(maxsize=1024)
def _operation(text: str) -> str:
    """What the statements do: their first words, one of each."""
    words = dict.fromkeys(each.split(None, 1)[0].upper() for each in text.split("; ") if each.strip())
    return " ".join(words) if len(words) < 2 else f"BATCH {' '.join(words)}"


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
