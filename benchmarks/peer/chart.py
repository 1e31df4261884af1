"""The ratios as an SVG: one line for each operation, a dot for each of our sides, on a logarithmic scale."""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

from benchmarks.peer.results import Row
from benchmarks.peer.sides import BRIDGE, OURS, SQLITE, TITLES

COLOURS: Final = {OURS: "#0969da", BRIDGE: "#bc4c00", SQLITE: "#1a7f37"}
LINE, LEFT, WIDTH, TOP, RIGHT = 18, 330, 620, 64, 40


def svg(rows: Sequence[Row]) -> str:
    shown = [row for row in rows if row.ratios]
    low, high = _range([ratio for row in shown for ratio in row.ratios.values()])
    height = TOP + LINE * len(shown) + 30
    parts = [*_legend(), *_grid(low, high, height)]
    for number, row in enumerate(shown):
        parts += _operation(row, TOP + LINE * number + LINE // 2, low, high)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _legend() -> Iterator[str]:
    yield _text(10, 18, "Times as fast as Apache Hive Metastore 2.3.10 on the same PostgreSQL", weight="bold")
    x = 10
    for name, colour in COLOURS.items():
        title = TITLES[name]
        yield f'<circle cx="{x + 5}" cy="36" r="4.5" fill="{colour}"/>'
        yield _text(x + 14, 40, title)
        x += 30 + round(6.1 * len(title))


def _grid(low: int, high: int, height: int) -> Iterator[str]:
    for power in range(low, high + 1):
        x = _x(10.0**power, low, high)
        width = 1.5 if power == 0 else 0.6
        yield f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - 24}" stroke="#8c959f" stroke-width="{width}"/>'
        yield _text(x, height - 8, f"{10.0**power:g} ×", anchor="middle")


def _operation(row: Row, y: int, low: int, high: int) -> Iterator[str]:
    clients = f", {row.clients} clients" if row.clients > 1 else ""
    yield _text(LEFT - 12, y + 4, f"{row.operation}{clients}", anchor="end")
    places = {name: _x(ratio, low, high) for name, ratio in row.ratios.items()}
    yield (
        f'<line x1="{min(places.values())}" y1="{y}" x2="{max(places.values())}" y2="{y}" stroke="#d0d7de" '
        f'stroke-width="2"/>'
    )
    for name, x in places.items():
        label = f"{row.ratios[name]:,.1f} ×"
        yield f'<circle cx="{x}" cy="{y}" r="4.5" fill="{COLOURS[name]}"><title>{name}: {label}</title></circle>'


def _range(ratios: Sequence[float]) -> tuple[int, int]:
    if not ratios:
        return 0, 1
    return min(0, floor(log10(min(ratios)))), max(1, ceil(log10(max(ratios))))


def _x(ratio: float, low: int, high: int) -> float:
    return round(LEFT + WIDTH * (log10(ratio) - low) / (high - low), 1)


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="#24292f">{escape(text)}</text>'
