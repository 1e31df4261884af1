"""The metastore in Spark: the data source `hms`. Only this room imports PySpark (extra `spark`)."""

from hms_gateway.pipeline.source import HmsDataSource, register

__all__ = ["HmsDataSource", "register"]
