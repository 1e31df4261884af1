"""Footers of Parquet and ORC files: columns in Hive's types, rows, and what is known about the values of each column.

Nothing of Spark is needed, and no data is read.
"""

from hms_gateway.pipeline.footers.figures import FooterFigures, Value, joined
from hms_gateway.pipeline.footers.footer import Column, Footer, FooterProblem
from hms_gateway.pipeline.footers.reading import FOOTER_FORMATS, read_footer
from hms_gateway.pipeline.footers.widening import TypesConflict, fits, united, widened

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
