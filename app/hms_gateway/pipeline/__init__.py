"""The metastore in Spark: the data source `hms` and the jobs (extra `spark`). PySpark is loaded by the first use."""

from importlib import import_module
from typing import Any, Final

__all__ = ["HmsDataSource", "register"]

_PLACES: Final = dict.fromkeys(__all__, "hms_gateway.pipeline.source.data_source")


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
