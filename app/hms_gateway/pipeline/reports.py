"""One page of HTML about a run: facts, tables and bars, with nothing that is loaded from elsewhere and no script."""

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
class Section:
    """A heading, a sentence below it, and what is shown."""

    title: str
    blocks: Sequence[Table | Bars] = ()
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
# The width of a bar that is whole.
_WIDTH: Final = 670


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


def _block(block: Table | Bars) -> str:
    return _table(block) if isinstance(block, Table) else _bars(block)


def _bars(plot: Bars) -> str:
    """A row for each bar, with its figure as text, so that nothing depends on its length."""
    full = plot.whole or max((bar.value for bar in plot.bars), default=0) or 1
    rows = "".join(
        f'<tr class="{bar.tone.value}"><td>{plain_text(bar.name)}</td><td class="plot">'
        f'<svg viewBox="0 0 {_WIDTH} 1" preserveAspectRatio="none"><rect class="track" width="{_WIDTH}" height="1"/>'
        f'<rect class="bar" width="{_length(bar.value / full):.1f}" height="1"/></svg></td>'
        f'<td class="number">{plain_text(amount_text(bar.value, plot.unit))}</td></tr>\n'
        for bar in plot.bars
    )
    return f"<figure><figcaption>{plain_text(plot.title)}</figcaption><table><tbody>{rows}</tbody></table></figure>\n"


def _length(share: float) -> float:
    """The length of a bar: a value above zero can be seen."""
    return max(2.0, min(share, 1.0) * _WIDTH) if share > 0 else 0.0


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
