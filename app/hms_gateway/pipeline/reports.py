"""One page of HTML about a run: facts, tables and plots, with nothing that is loaded from elsewhere and no script."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from pathlib import Path
from string import Template
from typing import Final

# Nothing may be loaded or run by a page, even if a name in it got through as markup: its policy says so.
_TEMPLATE: Final = Template(Path(__file__).with_name("report.html").read_text("utf-8"))


class Tone(StrEnum):
    """The weight of something for the reader: colours it, and is never said by colour alone."""

    PLAIN = "plain"
    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Unit(StrEnum):
    """Units of numbers, which decide how they are written."""

    COUNT = "count"
    BYTES = "bytes"
    SECONDS = "seconds"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of the page's head: `12 missing`."""

    name: str
    value: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts and numbers; numbers are written by the unit of their column, and at its right edge.

    `left_out` says how many rows the table does not show. Where a cell is a Tone, it is shown as a label.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | float | Tone | None]]
    units: Sequence[Unit | None] = ()
    title: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Bars:
    """A horizontal bar for each name; `whole` is what the full width means, without it the largest value."""

    title: str
    bars: Sequence[Bar]
    unit: Unit = Unit.COUNT
    whole: float | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values between two edges: `counts` has one item less than `edges`, whose unit is `unit`.

    `marks` are vertical lines with a name at values between the edges.
    """

    title: str
    edges: Sequence[float]
    counts: Sequence[int]
    unit: Unit = Unit.COUNT
    marks: Sequence[tuple[float, str]] = ()

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(
                f"histogram {self.title!r} has {len(self.edges)} edges and {len(self.counts)} counts;"
                " give one edge more than counts"
            )


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence below it, and what is shown."""

    title: str
    blocks: Sequence[Table | Bars | Histogram] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """`title` and `subtitle` head the page, `facts` are its figures, `foot` says how it was made."""

    title: str
    subtitle: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    foot: str = ""


# Numbers as people read them: counts, bytes, seconds, shares.


_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECOND_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SCALE: Final = 1_024


def amount_text(value: float, unit: Unit | None = None) -> str:
    """A number in its unit."""
    if unit is Unit.BYTES:
        return bytes_text(value)
    if unit is Unit.SECONDS:
        return duration_text(value)
    if unit is Unit.PERCENT:
        return f"{value:.1f} %".replace(".0 %", " %")
    return count_text(value)


def count_text(value: float) -> str:
    """`1,234`, `0.25`."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}"


def bytes_text(value: float) -> str:
    """`17 B`, `1.5 GiB`: three digits at most, as long as there is a larger unit."""
    size, steps = float(value), 0
    while abs(size) >= _SCALE - 0.5 and steps < len(_BYTE_UNITS) - 1:
        size /= _SCALE
        steps += 1
    digits = 1 if steps and abs(size) < 9.95 else 0
    return f"{size:,.{digits}f}".removesuffix(".0") + f" {_BYTE_UNITS[steps]}"


def duration_text(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    for length, name in _SECOND_UNITS:
        if abs(seconds) >= length:
            return f"{seconds / length:,.1f}".removesuffix(".0") + f" {name}"
    return (f"{seconds:.1f}".removesuffix(".0") if abs(seconds) < 10 else f"{seconds:.0f}") + " s"


# Plots as SVG: bars by name, histograms. Every bar has its figures as text, so that nothing depends on its length.


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
            f'<g class="{bar.tone.value}"><title>{plain_text(bar.name)}: {plain_text(value)}</title>'
            f'<text class="name" x="{_NAME_WIDTH - 10}" y="{top + 13}">{plain_text(_shortened(bar.name))}</text>'
            f'<rect class="track" x="{_NAME_WIDTH}" y="{top}" width="{space}" height="{_BAR}" rx="3"/>'
            f'<rect class="bar" x="{_NAME_WIDTH}" y="{top}" width="{length:.1f}" height="{_BAR}" rx="3"/>'
            f'<text class="value" x="{_NAME_WIDTH + space + 8}" y="{top + 13}">{plain_text(value)}</text></g>'
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
            f'<g class="plain"><title>{plain_text(low)} to {plain_text(high)}: {plain_text(count_text(count))}</title>'
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
            f'<text class="tick count" x="{_LEFT - 8}" y="{y + 4:.1f}">{plain_text(count_text(value))}</text>'
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
        f'<text class="tick edge" x="{_LEFT + number * step:.1f}" y="{y}">'
        f"{plain_text(amount_text(edge, plot.unit))}</text>"
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
        f'<text class="tick mark-name" text-anchor="{anchor}" x="{text_x:.1f}" y="{_TOP - 5}">{plain_text(name)}</text>'
    )


def _length(value: float, full: float, space: float) -> float:
    """The length of a bar: a value above zero can be seen."""
    if value <= 0:
        return 0.0
    return max(2.0, min(value / full, 1.0) * space)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<title>{plain_text(title)}</title>{''.join(parts)}</svg>"
    )


def _shortened(name: str) -> str:
    if len(name) <= _NAME_CHARACTERS_MAX:
        return name
    half = (_NAME_CHARACTERS_MAX - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def plain_text(text: str) -> str:
    return escape(printable(text))


def printable(text: str) -> str:
    """Without what an HTML page may not have, such as control characters and halves of characters in names of files."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


# A page as HTML: one file with its styles in it, for light and dark, that is read as XML too.


def render(page: Page) -> str:
    """The whole page. It is UTF-8 when written; write it with `encoding="utf-8"`."""
    return _TEMPLATE.substitute(
        title=plain_text(page.title),
        subtitle=_paragraph(page.subtitle),
        facts=_facts(page.facts),
        sections="".join(map(_section, page.sections)),
        foot=_paragraph(page.foot),
    )


def _facts(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    items = "".join(
        f'<div class="{fact.tone.value}"><dd>{plain_text(fact.value)}</dd><dt>{plain_text(fact.name)}</dt></div>'
        for fact in facts
    )
    return f"<dl>{items}</dl>\n"


def _section(section: Section) -> str:
    blocks = "".join(map(_block, section.blocks))
    return f"<section><h2>{plain_text(section.title)}</h2>{_paragraph(section.text)}{blocks}</section>\n"


def _block(block: Table | Bars | Histogram) -> str:
    if isinstance(block, Table):
        return _table(block)
    plot = bars_svg(block) if isinstance(block, Bars) else histogram_svg(block)
    return f"<figure><figcaption>{plain_text(block.title)}</figcaption>{plot}</figure>\n"


def _table(table: Table) -> str:
    units = [*table.units, *[None] * (len(table.columns) - len(table.units))]
    numeric = [any(_is_number(row[place]) for row in table.rows) for place in range(len(table.columns))]
    heads = "".join(
        f'<th class="number">{plain_text(name)}</th>' if right else f"<th>{plain_text(name)}</th>"
        for name, right in zip(table.columns, numeric, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(cell, unit) for cell, unit in zip(row, units, strict=True))}</tr>\n" for row in table.rows
    )
    caption = f"<figcaption>{plain_text(table.title)}</figcaption>" if table.title else ""
    more = f"<p>{table.left_out:,} more {'row is' if table.left_out == 1 else 'rows are'} not shown.</p>"
    return (
        f'<figure>{caption}<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more if table.left_out else ''}</figure>\n"
    )


def _cell(cell: str | float | Tone | None, unit: Unit | None) -> str:
    if isinstance(cell, Tone):
        return f'<td><span class="label {cell.value}">{cell.value}</span></td>'
    if isinstance(cell, int | float):
        return f'<td class="number">{plain_text(amount_text(cell, unit))}</td>'
    return f"<td>{plain_text(cell or '')}</td>"


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float)


def _paragraph(text: str) -> str:
    return f"<p>{plain_text(text)}</p>" if text else ""
