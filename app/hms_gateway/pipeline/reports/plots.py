"""Plots as SVG: bars by name, histograms. Every bar has its figures as text, so that nothing depends on its length."""

from collections.abc import Sequence
from html import escape
from typing import Final

from hms_gateway.pipeline.reports.amounts import amount_text, count_text
from hms_gateway.pipeline.reports.page import Bars, Histogram

_WIDTH: Final = 960
_NAME_WIDTH: Final = 200
_VALUE_WIDTH: Final = 90
_ROW: Final = 26
_BAR: Final = 16
# What fits the space left of the bars; the whole name is the bar's title.
_NAME_CHARACTERS_MAX: Final = 30
_PLOT_HEIGHT: Final = 180
_TOP: Final = 22
_BOTTOM: Final = 30
_LEFT: Final = 56
_EDGE_LABELS_MAX: Final = 8
_GAP: Final = 2


def bars_svg(plot: Bars) -> str:
    """A row for each bar."""
    height = _ROW * len(plot.bars) + 4
    full = plot.whole or max((bar.value for bar in plot.bars), default=0) or 1
    space = _WIDTH - _NAME_WIDTH - _VALUE_WIDTH
    rows = []
    for number, bar in enumerate(plot.bars):
        top = _ROW * number + 2
        length = _length(bar.value, full, space)
        value = amount_text(bar.value, plot.unit)
        rows.append(
            f'<g class="{bar.tone.value}"><title>{_text(bar.name)}: {_text(value)}</title>'
            f'<text class="name" x="{_NAME_WIDTH - 10}" y="{top + 13}">{_text(_shortened(bar.name))}</text>'
            f'<rect class="track" x="{_NAME_WIDTH}" y="{top}" width="{space}" height="{_BAR}" rx="3"/>'
            f'<rect class="bar" x="{_NAME_WIDTH}" y="{top}" width="{length:.1f}" height="{_BAR}" rx="3"/>'
            f'<text class="value" x="{_NAME_WIDTH + space + 8}" y="{top + 13}">{_text(value)}</text></g>'
        )
    return _svg(height, plot.title, rows)


def histogram_svg(plot: Histogram) -> str:
    """Columns of equal width, whatever the distances of the edges: sizes spread over many powers of ten."""
    height = _TOP + _PLOT_HEIGHT + _BOTTOM
    peak = max(plot.counts, default=0) or 1
    step = (_WIDTH - _LEFT - 16) / max(len(plot.counts), 1)
    width = step - _GAP
    parts = _grid(peak)
    for number, count in enumerate(plot.counts):
        length = _length(count, peak, _PLOT_HEIGHT)
        left, top = _LEFT + number * step + _GAP / 2, _TOP + _PLOT_HEIGHT - length
        low, high = (amount_text(edge, plot.unit) for edge in plot.edges[number : number + 2])
        parts.append(
            f'<g class="plain"><title>{_text(low)} to {_text(high)}: {_text(count_text(count))}</title>'
            f'<rect class="reach" x="{left:.1f}" y="{_TOP}" width="{width:.1f}" height="{_PLOT_HEIGHT}"/>'
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{length:.1f}" rx="2"/></g>'
        )
    parts += _edge_labels(plot, step)
    parts += [_mark(plot.edges, value, name, step) for value, name in plot.marks]
    return _svg(height, plot.title, parts)


def _grid(peak: int) -> list[str]:
    """Lines at the round numbers up to the largest count."""
    parts = []
    for value in _round_values(peak):
        y = _TOP + _PLOT_HEIGHT - _PLOT_HEIGHT * value / peak
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 16}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick count" x="{_LEFT - 8}" y="{y + 4:.1f}">{_text(count_text(value))}</text>'
        )
    return parts


def _round_values(peak: int) -> list[int]:
    """0 and three to five more: 1, 2 or 5 times a power of ten apart."""
    size = 1
    while peak / size > 50:
        size *= 10
    distance = next(size * factor for factor in (1, 2, 5, 10) if peak / (size * factor) <= 5)
    return list(range(0, peak + 1, distance))


def _edge_labels(plot: Histogram, step: float) -> list[str]:
    every = max(1, -(-len(plot.edges) // _EDGE_LABELS_MAX))
    y = _TOP + _PLOT_HEIGHT + 18
    return [
        f'<text class="tick edge" x="{_LEFT + number * step:.1f}" y="{y}">{_text(amount_text(edge, plot.unit))}</text>'
        for number, edge in enumerate(plot.edges)
        if number % every == 0
    ]


def _mark(edges: Sequence[float], value: float, name: str, step: float) -> str:
    """A line at a value, within its column by its share of it."""
    place = next((number for number, edge in enumerate(edges[1:]) if value < edge), len(edges) - 2)
    low, high = edges[place], edges[place + 1]
    share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
    x = _LEFT + (place + share) * step
    anchor = "end" if x > _WIDTH * 0.75 else "start"
    text_x = x - 5 if anchor == "end" else x + 5
    return (
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 14}" y2="{_TOP + _PLOT_HEIGHT}"/>'
        f'<text class="tick mark-name" text-anchor="{anchor}" x="{text_x:.1f}" y="{_TOP - 5}">{_text(name)}</text>'
    )


def _length(value: float, full: float, space: float) -> float:
    """What is more than nothing can be seen."""
    if value <= 0:
        return 0.0
    return max(2.0, min(value / full, 1.0) * space)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<title>{_text(title)}</title>{''.join(parts)}</svg>"
    )


def _shortened(name: str) -> str:
    if len(name) <= _NAME_CHARACTERS_MAX:
        return name
    half = (_NAME_CHARACTERS_MAX - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _text(text: str) -> str:
    return escape(printable(text))


def printable(text: str) -> str:
    """Without what an HTML page may not have, such as control characters and halves of characters in names of files."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
