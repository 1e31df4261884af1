"""One page of HTML about a run: facts, tables and plots, with nothing that is loaded from elsewhere and no script."""

from hms_gateway.pipeline.reports.amounts import bytes_text, count_text, duration_text
from hms_gateway.pipeline.reports.page import Bar, Bars, Fact, Histogram, Page, Section, Table, Tone, Unit
from hms_gateway.pipeline.reports.rendering import render

__all__ = [
    "render",
    "Page",
    "Section",
    "Fact",
    "Table",
    "Bars",
    "Bar",
    "Histogram",
    "Tone",
    "Unit",
    "bytes_text",
    "count_text",
    "duration_text",
]
