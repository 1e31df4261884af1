"""What the environment says to every Spark that a test starts, by a command of ours or `spark-submit`.

As a program it archives the classes that each of them loads first, which takes a third off its start.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.sample import sample

# A test's JVM ends before it would have paid to compile its code well; this takes half of the CPU time. Its classes
# need more than the 21 MB that it begins to collect garbage at.
_COMPILES_LITTLE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=512m"
ARCHIVE: Final = Path(sys.prefix) / "spark-classes.jsa"
# An archive that does not fit any more is passed over; nothing is said about it where a test may read.
SHORT_LIFE: Final = (
    f'{_COMPILES_LITTLE} -Xlog:disable "-XX:SharedArchiveFile={ARCHIVE}"' if ARCHIVE.exists() else _COMPILES_LITTLE
)
# PYTHONPATH of sessions on this machine: their Python workers have loaded what they need, and find functions of tests.
WORKER_PATH: Final = os.pathsep.join([str(Path(__file__).with_name("spark_workers")), str(Path(__file__).parents[2])])
# Compiling code for a query takes longer than running it over a few rows, and so does planning it again while it runs:
# 20 s of CPU time for 64 queries, 29 s with both. `make test-all` has what users have.
_SMALL_QUERIES: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": sample("NO_CODEGEN", of="FALLBACK"),
    "spark.sql.adaptive.enabled": sample("false", of="true"),
}


def submit_arguments(**more: str) -> str:
    """For PYSPARK_SUBMIT_ARGS; names have `_` for the dots, and no `spark_` before them."""
    given = {f"spark.{name.replace('_', '.')}": value for name, value in more.items()}
    return " ".join([*(f"--conf {name}={value}" for name, value in (_SMALL_QUERIES | given).items()), "pyspark-shell"])


VARIABLES: Final = {
    "SPARK_SUBMIT_OPTS": SHORT_LIFE,
    "SPARK_LAUNCHER_OPTS": _COMPILES_LITTLE,
    "PYSPARK_SUBMIT_ARGS": submit_arguments(),
}


def main() -> None:
    from pyspark.sql import SparkSession

    new = ARCHIVE.with_suffix(".new")
    dumped = f'{_COMPILES_LITTLE} -Xlog:disable "-XX:ArchiveClassesAtExit={new}"'
    os.environ |= VARIABLES | {"SPARK_SUBMIT_OPTS": dumped, "SPARK_LOCAL_IP": "127.0.0.1"}
    with TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
        spark = builder.config("spark.log.level", "OFF").config("spark.local.dir", folder).getOrCreate()
        spark.range(9).selectExpr("id % 3 AS k", "id").groupBy("k").count().write.parquet(f"{folder}/written")
        spark.read.parquet(f"{folder}/written").where("k > 1").collect()
        java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        java.stdin.close()
        java.wait()
    new.rename(ARCHIVE)


if __name__ == "__main__":
    main()
