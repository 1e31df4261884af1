"""A page as HTML: one file with its styles in it, for light and dark, that is read as XML too."""

from collections.abc import Sequence
from html import escape
from typing import Final

from hms_gateway.pipeline.reports.amounts import amount_text
from hms_gateway.pipeline.reports.page import Bars, Fact, Histogram, Page, Section, Table, Tone, Unit
from hms_gateway.pipeline.reports.plots import bars_svg, histogram_svg, printable
from hms_gateway.pipeline.reports.style import STYLE

# Nothing may be loaded or run, even if a name in the page got through as markup.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(page: Page) -> str:
    """The whole page. It is UTF-8 when written; write it with `encoding="utf-8"`."""
    title = _text(page.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{title}</h1>{_paragraph(page.subtitle)}</header>\n"
        f"{_facts(page.facts)}{''.join(map(_section, page.sections))}"
        f"<footer>{_paragraph(page.foot)}</footer>\n</main>\n</body>\n</html>\n"
    )


def _facts(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    items = "".join(
        f'<div class="{fact.tone.value}"><dd>{_text(fact.value)}</dd><dt>{_text(fact.name)}</dt></div>'
        for fact in facts
    )
    return f"<dl>{items}</dl>\n"


def _section(section: Section) -> str:
    blocks = "".join(map(_block, section.blocks))
    return f"<section><h2>{_text(section.title)}</h2>{_paragraph(section.text)}{blocks}</section>\n"


def _block(block: Table | Bars | Histogram) -> str:
    if isinstance(block, Table):
        return _table(block)
    plot = bars_svg(block) if isinstance(block, Bars) else histogram_svg(block)
    return f"<figure><figcaption>{_text(block.title)}</figcaption>{plot}</figure>\n"


def _table(table: Table) -> str:
    units = [*table.units, *[None] * (len(table.columns) - len(table.units))]
    numeric = [any(_is_number(row[place]) for row in table.rows) for place in range(len(table.columns))]
    heads = "".join(
        f'<th class="number">{_text(name)}</th>' if right else f"<th>{_text(name)}</th>"
        for name, right in zip(table.columns, numeric, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(cell, unit) for cell, unit in zip(row, units, strict=True))}</tr>\n" for row in table.rows
    )
    caption = f"<figcaption>{_text(table.title)}</figcaption>" if table.title else ""
    more = f"<p>{table.left_out:,} more {'row is' if table.left_out == 1 else 'rows are'} not shown.</p>"
    return (
        f'<figure>{caption}<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more if table.left_out else ''}</figure>\n"
    )


def _cell(cell: str | float | Tone | None, unit: Unit | None) -> str:
    if isinstance(cell, Tone):
        return f'<td><span class="label {cell.value}">{cell.value}</span></td>'
    if isinstance(cell, int | float):
        return f'<td class="number">{_text(amount_text(cell, unit))}</td>'
    return f"<td>{_text(cell or '')}</td>"


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float)


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>" if text else ""


def _text(text: str) -> str:
    return escape(printable(text))
