"""A crawl as a program of its own, so that its driver can be killed: connection, location, state, run to resume."""

import json
import sys

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl
from hms_gateway.pipeline.jobs.options import JobOptions
from tests.pipeline.conftest import CONFIGURATION, MASTER


def main() -> None:
    connection, location, state, run = sys.argv[1:]
    options = JobOptions(
        connection=Connection.of(json.loads(connection)),
        state=state,
        master=MASTER,
        conf=CONFIGURATION,
        resume=run or None,
        calls=2,
    )
    print(crawl(options, CrawlArguments(location=location, partitions_a_call=10)).as_json())


if __name__ == "__main__":
    main()
