"""Footers of Parquet and ORC files: columns in Hive's types, rows, and what is known about the values of each column.

Nothing of Spark is needed, and no data is read.
"""

from hms_gateway.pipeline.footers.footer import (
    Column,
    Footer,
    FooterFigures,
    FooterProblem,
    TypesConflict,
    Value,
    fits,
    joined,
    united,
    widened,
)
from hms_gateway.pipeline.footers.reading import FOOTER_FORMATS, read_footer

__all__ = [
    "read_footer",
    "Footer",
    "Column",
    "FooterProblem",
    "FOOTER_FORMATS",
    "FooterFigures",
    "Value",
    "joined",
    "fits",
    "united",
    "widened",
    "TypesConflict",
]
