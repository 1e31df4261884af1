"""What a page shows, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How much something matters to the reader: colours it, and is never said by colour alone."""

    PLAIN = "plain"
    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Unit(StrEnum):
    """What numbers count, and so how they are written."""

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
    """How many fall between two edges: `counts` has one item less than `edges`, whose unit is `unit`.

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
