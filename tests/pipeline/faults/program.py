"""A job as a program of its own, so that its driver can be killed; the argument is a file with a pickled Given."""

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

from tests.pipeline.faults.killing import Given
from tests.spark.spark_session import MASTER

CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
}


def main() -> None:
    given: Given = pickle.loads(Path(sys.argv[1]).read_bytes())
    options = replace(
        given.options, master=given.options.master or MASTER, conf={**CONFIGURATION, **given.options.conf}
    )
    print(json.dumps(replace(given, options=options).run()))


if __name__ == "__main__":
    main()
