"""Forks the Python workers of a job's session on one machine (`spark.python.daemon.module`).

PySpark's own daemon loads nothing before it forks, so that each worker loads PySpark, pyarrow and the package anew:
a second of CPU time for each processor, before the first task.
"""

import gc
import importlib
from typing import Final

from pyspark.daemon import manager

_LOADED: Final = (
    "pyspark.worker",
    "pyarrow.parquet",
    "hms_gateway.pipeline.jobs.batches",
    "hms_gateway.pipeline.jobs.stored",
    "hms_gateway.pipeline.footers.reading",
)

if __name__ == "__main__":
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()  # what is loaded stays shared with the workers
    manager()
