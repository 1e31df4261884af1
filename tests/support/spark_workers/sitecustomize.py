"""Loads modules in each daemon that forks the Python workers of a Spark session; the folder is on its path.

The daemon itself loads none, so that each worker that it forks loads PySpark, pyarrow and the data source: 0.4 s of
CPU.
Spark has a daemon for the rows, which `spark.python.daemon.module` can name, and one for each step of the planning of a
data source, which it cannot.
"""

import gc
import importlib
import sys

LOADED = ("pyarrow", "hms_gateway.pipeline.source.data_source", "hms_gateway.pipeline.jobs.batches")

if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    for name in (sys.orig_argv[3], *LOADED):
        importlib.import_module(name)
    gc.freeze()
