"""A Spark session that runs statements: each line of its input is a JSON list of statements that run at once.

A list in the place of a statement is an append: the query of its rows, the table, and options of the writer. It answers
with a line of JSON: for each statement its rows, or the beginning of its error. The argument is a JSON object of
settings.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    builder = SparkSession.builder
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def answer(statement: Any) -> object:
        try:
            if isinstance(statement, list):
                query, table, options = statement
                spark.sql(query).writeTo(table).options(**options).append()
                return []
            return [list(row) for row in spark.sql(statement).collect()]
        except Exception as error:
            # An exception of Java is named in the second line.
            return " ".join(str(error).strip().splitlines()[:2])

    with ThreadPoolExecutor(8) as threads:
        for line in sys.stdin:
            answers = list(threads.map(answer, json.loads(line)))
            print(json.dumps(answers, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
