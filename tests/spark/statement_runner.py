"""A Spark session as a program of its own: one request as a line of JSON in, one answer as a line of JSON out.

A process of its own, so that a test can have several sessions that share nothing, and a JVM ends with its test. The
session that all tests of a run share is in the process of the tests.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

# Small queries: what costs time otherwise is compiling code for them, and shuffling three rows over 200 tasks.
SETTINGS = {
    "spark.sql.catalogImplementation": "hive",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    # Without Hadoop's native library every directory would cost a process that runs chmod.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
}

FACTORY_MODE = "spark.sql.codegen.factoryMode"


def main() -> None:
    uri, warehouse, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    # Spark and the JVM write what they like to standard output; answers go where nobody else writes.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = start(uri, warehouse, folder)
    print(json.dumps({"ready": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


def start(uri: str, warehouse: str, folder: Path, master: str = "local[2]", log_level: str = "ERROR") -> SparkSession:
    """A session on the metastore at `uri`."""
    # What small queries leave behind is garbage soon: with much room for it little is copied.
    collecting = "-XX:+UseSerialGC -XX:MetaspaceSize=512m -Xms800m -Xmn512m"
    java = f"-XX:TieredStopAtLevel=1 {collecting} -Duser.timezone=UTC -Djava.io.tmpdir={folder}"
    settings = SETTINGS | {
        "spark.hadoop.hive.metastore.uris": uri,
        # Spark, not the metastore, says where a new database lies.
        "spark.sql.warehouse.dir": f"file:{warehouse}",
        "spark.local.dir": str(folder),
        "spark.log.level": log_level,
        "spark.hadoop.hive.exec.scratchdir": f"file:{folder}/scratch",
        "spark.hadoop.hive.exec.local.scratchdir": f"{folder}/local-scratch",
        "spark.driver.extraJavaOptions": f"{java} -Dderby.system.home={folder}",
    }
    builder = SparkSession.builder.master(master).appName("hms-gateway")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    """`{"rows": …}` or `{"error": condition, "text": …}`; for several statements at once a list of these."""
    if "parallel" in request:
        with ThreadPoolExecutor(len(request["parallel"])) as pool:
            return {"parallel": list(pool.map(lambda sql: answer(spark, {"sql": sql}), request["parallel"]))}
    try:
        return {"rows": perform(spark, request)}
    except PySparkException as error:
        return {"error": error.getCondition() or type(error).__name__, "text": str(error).partition("\n")[0]}
    except Exception as error:  # what py4j did not recognise is still the statement's answer, not our end
        return {"error": type(error).__name__, "text": str(error)[:2000]}


def perform(spark: SparkSession, request: dict[str, Any]) -> list[Any]:
    if "save" in request:
        return save(spark, request)
    if "catalog" in request:
        return ask_catalog(spark, request)
    return [[plain(value) for value in row] for row in spark.sql(request["sql"]).collect()]


def ask_catalog(spark: SparkSession, request: dict[str, Any]) -> list[Any]:
    # Spark makes the objects of its catalog with compiled code only.
    mode = spark.conf.get(FACTORY_MODE)
    spark.conf.set(FACTORY_MODE, "FALLBACK")
    try:
        found = getattr(spark.catalog, request["catalog"])(*request.get("arguments", ()))
    finally:
        spark.conf.set(FACTORY_MODE, mode)
    listed = found if isinstance(found, list) else [found]
    return [plain(list(row)) if isinstance(row, tuple) else plain(row) for row in listed]


def save(spark: SparkSession, request: dict[str, Any]) -> list[Any]:
    writer = spark.sql(request["save"]).write.format(request["format"]).mode(request["mode"])
    if request.get("partitions"):
        writer = writer.partitionBy(*request["partitions"])
    if request.get("buckets"):
        writer = writer.bucketBy(2, request["buckets"]).sortBy(request["buckets"])
    writer.saveAsTable(request["table"])
    return []


def plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


if __name__ == "__main__":
    main()
