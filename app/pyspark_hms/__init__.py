"""Where Spark finds the data source `hms` by itself: it looks into modules whose names begin with `pyspark_`."""

from contextlib import suppress

# Beside an older PySpark or without pyarrow there is no `hms`; an error here would hide all other data sources, too.
with suppress(ImportError):
    from hms_gateway.pipeline import HmsDataSource as DefaultSource

__all__ = ["DefaultSource"]
