"""Where Spark finds the data source `hms` by itself: it looks into modules whose names begin with `pyspark_`."""

from hms_gateway.pipeline import HmsDataSource as DefaultSource

__all__ = ["DefaultSource"]
