"""What runs on the cluster, started by spark-submit: prints one JSON document of what was seen."""

import json
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

from hms_gateway.pipeline import register
from hms_gateway.pipeline.source.data_source import HmsDataSource, PartitionWriter

TWIN_SECONDS_MAX = 60.0


def main(folder: Path) -> None:
    spark = SparkSession.builder.appName("cluster").getOrCreate()
    register(spark)
    seen = {
        # Tasks of a barrier run at the same time, so on different executors, and no speculation runs them again on one.
        "executors": spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(where).collect(),
        "read": read(spark),
        "events": follow(spark, folder),
    }
    write_with_a_twin(spark, folder)
    print(json.dumps(seen))
    spark.stop()


def where(_numbers):
    import hms_gateway

    yield hms_gateway.__file__


def read(spark):
    frame = spark.read.format("hms").options(object="partitions", table="sales.orders", partitionsPerTask="3").load()
    frame = frame.where("key.ds = '2024-01-02'")
    return sorted(row.location.rpartition("/orders/")[2] for row in frame.collect())


def follow(spark, folder):
    events = spark.readStream.format("hms").options(object="events", startingEvent="earliest", eventsPerTask="5").load()
    writer = events.select("id", "type").writeStream.format("parquet").option("path", str(folder / "events"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(row.id for row in spark.read.parquet(str(folder / "events")).collect())


def write_with_a_twin(spark, folder):
    """An attempt of the first task ends only when another has made the same calls: Spark has to start one."""

    class SlowWriter(PartitionWriter):
        def write(self, iterator):
            context = TaskContext.get()
            done = super().write(iterator)
            if context.partitionId() == 0:
                (folder / f"attempt-{context.attemptNumber()}").touch()
                end = time.monotonic() + TWIN_SECONDS_MAX
                while len(list(folder.glob("attempt-*"))) < 2 and time.monotonic() < end:
                    time.sleep(0.05)
            return done

    class SlowSource(HmsDataSource):
        @classmethod
        def name(cls):
            return "hms_slow"

        def writer(self, schema, overwrite):
            writer = super().writer(schema, overwrite)
            writer.__class__ = SlowWriter
            return writer

    SlowSource.defaults = {
        name.removeprefix("spark.hms."): value
        for name, value in spark.sparkContext.getConf().getAll()
        if name.startswith("spark.hms.")
    }
    spark.dataSource.register(SlowSource)
    rows = spark.range(40, numPartitions=4).selectExpr("'2024-02-01' AS ds", "int(id) AS hr")
    given = {"object": "partitions", "table": "stock.twice", "ifExists": "fail", "batchSize": "5"}
    rows.write.format("hms_slow").options(**given).mode("append").save()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
