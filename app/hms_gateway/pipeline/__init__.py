"""The metastore in Spark: the data source `hms` and the jobs (extra `spark`). PySpark is loaded by the first use."""

from importlib import import_module
from typing import Any, Final

__all__ = ["HmsDataSource", "register", "Connection", "JobOptions", "JobFailed", "JobResult"]

_PLACES: Final = {
    "HmsDataSource": "hms_gateway.pipeline.source.data_source",
    "register": "hms_gateway.pipeline.source.data_source",
    "Connection": "hms_gateway.pipeline.connection",
    "JobOptions": "hms_gateway.pipeline.jobs.options",
    "JobFailed": "hms_gateway.pipeline.jobs.failures",
    "JobResult": "hms_gateway.pipeline.jobs.results",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
