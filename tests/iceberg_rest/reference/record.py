"""Records the answers of Iceberg's own REST adapter anew: `python -m tests.iceberg_rest.reference.record URL`.

URL is that of an adapter (`org.apache.iceberg.rest.RESTCatalogServer`) over an empty catalog, such as JdbcCatalog on
SQLite, whose warehouse is a folder `warehouse`: http://127.0.0.1:8181.
"""

import json
import sys

import httpx

from tests.iceberg_rest.reference.answers import Send, played, record
from tests.iceberg_rest.reference.requests import Step


def sending(client: httpx.Client) -> Send:
    def send(step: Step) -> tuple[int, object]:
        content = None if step.body is None else json.dumps(step.body).encode()
        head = {} if content is None else {"content-type": "application/json"}
        answer = client.request(step.method, step.path, params=step.query, content=content, headers=head)
        return answer.status_code, answer.json() if answer.content else None

    return send


if __name__ == "__main__":
    with httpx.Client(base_url=f"{sys.argv[1]}/v1/", timeout=60) as client:
        answers = list(played(sending(client)))
    record(answers)
    print(f"{len(answers)} answers")
