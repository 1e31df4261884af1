"""Work of the package in tasks of Spark, a number for each: RDDs start in a third of the time that a query takes."""

from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from hms_gateway.pipeline.jobs.failures import JobFailed, packed, unpacked


def run_in_tasks(spark: SparkSession, count: int, work: Callable[[int], None]) -> None:
    """Call `work` with each number below `count`, in a task of its own. Raises the JobFailed that one of them raised.

    It comes as a row: an exception would come with the traces of two languages, after the task was tried again.
    """

    def run(numbers: Iterator[int]) -> Iterator[str]:
        for number in numbers:
            try:
                work(number)
            except JobFailed as failed:
                yield packed(failed)

    if count:
        for failure in spark.sparkContext.parallelize(range(count), count).mapPartitions(run).collect():
            raise unpacked(failure)
