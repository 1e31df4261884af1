"""`crawl`: finds tables and partitions below a location, registers what is new, reports what is gone."""

from importlib import import_module
from typing import Any, Final

__all__ = ["crawl", "CrawlArguments", "CrawlResult"]

_PLACE: Final = "hms_gateway.pipeline.crawl.job"


def __getattr__(name: str) -> Any:
    """Executors import this package and have no use for the job."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACE), name)
