"""Forks the Python workers of tests' Spark sessions (`spark.python.daemon.module`).

PySpark's own daemon loads nothing before it forks, so that each of the several workers that a query starts loads
PySpark, pyarrow and the data source: 0.4 s of CPU every time.
"""

import gc
import importlib

from pyspark.daemon import manager

LOADED = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyarrow",
    "hms_gateway.pipeline.source.data_source",
    "hms_gateway.pipeline.jobs.batches",
)

if __name__ == "__main__":
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()
    manager()
