"""Spark in a job: its session, Python over batches of Arrow, work of the package in tasks."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from hms_gateway.pipeline.errors import JobFailed, UsageRefused

# Python over batches of Arrow in executors.


MapArrow = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: MapArrow, schema: Any) -> DataFrame:
    """Does what `DataFrame.mapInArrow` does without its import of pandas, which is 100 MB for every executor."""
    function_of_columns = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = function_of_columns(*(frame[name] for name in _quoted(frame)))
    return DataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)


def _quoted(frame: DataFrame) -> list[str]:
    """A name with a point or a backtick is a name all the same."""
    return ["`" + name.replace("`", "``") + "`" for name in frame.columns]


# Work of the package in tasks of Spark, a number for each: RDDs start in a third of the time that a query takes.


def run_in_tasks(spark: SparkSession, count: int, work: Callable[[int], None]) -> None:
    """Call `work` with each number below `count`, in a task of its own. Raises the JobFailed that one of them raised.

    It comes as a row: an exception would come with the traces of two languages, after the task was tried again.
    """

    def run(numbers: Iterator[int]) -> Iterator[JobFailed]:
        for number in numbers:
            try:
                work(number)
            except JobFailed as failed:
                yield failed

    if count:
        for failure in spark.sparkContext.parallelize(range(count), count).mapPartitions(run).collect():
            raise failure


# The Spark session of a job, where its caller has none.


_LOCAL: Final = "local[*]"
# A task whose worker process was killed is tried again, as on a cluster.
_ATTEMPTS: Final = 4
_CONFIGURATION: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Jobs hand their failures over as rows; what is left are faults, whose Python trace is enough.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
_LOCAL_CONFIGURATION: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.daemon.module": "hms_gateway.pipeline.jobs.worker_daemon",
}
# A JVM that hands out tasks of Python ends before it would have paid to compile its code well: half the CPU time.
_LIGHT: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


@contextmanager
def session(
    name: str, master: str, conf: Mapping[str, str], given: SparkSession | None, *, is_light: bool = False
) -> Iterator[SparkSession]:
    """The session that was `given`, or a new one that is stopped at the end. Raises UsageRefused.

    `is_light` is for jobs whose work is done in Python, not by Spark's own operators.
    """
    if given is not None:
        yield given
        return
    spark = _open(name, master, conf, is_light)
    try:
        yield spark
    finally:
        spark.stop()


def _open(name: str, master: str, conf: Mapping[str, str], is_light: bool) -> SparkSession:
    _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder, values = SparkSession.builder.appName(f"hms-gateway {name}"), {"spark.log.level": "ERROR"}
    # Under spark-submit the master is decided.
    if master or "PYSPARK_GATEWAY_PORT" not in os.environ:
        chosen = _with_attempts(master or _LOCAL)
        builder = builder.master(chosen)
        if chosen.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            values = _local_configuration(is_light=is_light)
    for key, value in {**_CONFIGURATION, **values, **conf}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageRefused(f"Spark does not start: {said[0]}", "look at --master, --conf and JAVA_HOME") from error


def _local_configuration(*, is_light: bool) -> dict[str, str]:
    java = list(_LIGHT if is_light else ())
    logging = {"spark.log.level": "ERROR"}
    # A folder of configuration may say what is logged. A level here would be announced on standard error.
    if "SPARK_CONF_DIR" not in os.environ:
        java.append(f'-Dlog4j2.configurationFile="{_LOGGING}"')
        logging = {}
    return _LOCAL_CONFIGURATION | logging | {"spark.driver.extraJavaOptions": " ".join(java)}


def _check_java() -> None:
    """Spark would say that a gateway process has ended. Raises UsageRefused."""
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        where = f"JAVA_HOME {home} has no bin/java" if home else "Java is not on the PATH"
        raise UsageRefused(f"Spark does not start: {where}", "install Java 17, or set JAVA_HOME to where it is")


def _with_attempts(master: str) -> str:
    """`local[2]` as `local[2,4]`."""
    if master == "local":
        return f"local[1,{_ATTEMPTS}]"
    if master.startswith("local[") and "," not in master:
        return f"{master.removesuffix(']')},{_ATTEMPTS}]"
    return master
