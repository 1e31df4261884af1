"""What the environment says to every Spark that a test starts, by a command of ours or `spark-submit`."""

from typing import Final

# A test's JVM ends before it would have paid to compile its code well; this takes half of the CPU time.
SHORT_LIFE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Compiling code for a query takes longer than running it over a few rows.
_SMALL_QUERIES: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
}


def submit_arguments(**more: str) -> str:
    """For PYSPARK_SUBMIT_ARGS; names have `_` for the dots, and no `spark_` before them."""
    given = {f"spark.{name.replace('_', '.')}": value for name, value in more.items()}
    return " ".join([*(f"--conf {name}={value}" for name, value in (_SMALL_QUERIES | given).items()), "pyspark-shell"])


VARIABLES: Final = {
    "SPARK_SUBMIT_OPTS": SHORT_LIFE,
    "SPARK_LAUNCHER_OPTS": SHORT_LIFE,
    "PYSPARK_SUBMIT_ARGS": submit_arguments(),
}
