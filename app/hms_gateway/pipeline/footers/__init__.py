"""Footers of Parquet and ORC files: columns in Hive's types, rows, and what is known about the values of each column.

Nothing of Spark is needed, and no data is read.
"""

from hms_gateway.pipeline.footers.figures import Figures, Value, joined
from hms_gateway.pipeline.footers.footer import Column, Footer, FooterProblem
from hms_gateway.pipeline.footers.reading import FOOTER_FORMATS, file_reader, local_reader, read_footer
from hms_gateway.pipeline.footers.widening import TypesConflict, united, widened

__all__ = [
    "read_footer",
    "file_reader",
    "local_reader",
    "Footer",
    "Column",
    "FooterProblem",
    "FOOTER_FORMATS",
    "Figures",
    "Value",
    "joined",
    "united",
    "widened",
    "TypesConflict",
]
