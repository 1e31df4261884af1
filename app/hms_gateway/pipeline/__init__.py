"""The metastore in Spark: the data source `hms` and the jobs (extra `spark`). PySpark is loaded by the first use.

A job is a function `run_crawl(options, CrawlArguments(…), spark=…)`, and so on.
"""

from importlib import import_module
from typing import Any, Final

_PUBLIC: Final = {
    "source.data_source": "HmsDataSource register",
    "connection": "Connection",
    "errors": "JobFailed",
    "jobs.options": "JobOptions JobResult",
    "crawl.job": "CrawlArguments run_crawl",
    "stats.job": "StatsArguments run_stats",
    "audit.job": "AuditArguments run_audit",
    "audit.apply_job": "ApplyArguments run_apply",
    "migrate.job": "MigrateArguments run_migrate",
    "compact.job": "CleanArguments CompactArguments run_clean run_compact",
    "snapshot.job": "SnapshotArguments run_snapshot",
    "snapshot.diff": "DiffArguments run_diff",
}
_MODULES: Final = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """A public name; the function of a job is called `run_…` here, since its room has the job's name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name.removeprefix("run_"))


def __dir__() -> list[str]:
    return list(__all__)
