"""Sends requests that schemathesis makes of the OpenAPI document: `fuzzer.py DOCUMENT URL PASSWORD COUNT SEED FILE...`

It runs in the environment of schemathesis, which has nothing else of the project. The FILEs are metadata files that can
be registered. Prints how many requests got which status, and each answer that the document does not have.
"""

import json
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

NAMESPACES, TABLES, VIEWS = ["sales", "other", "new"], ["orders", "bills", "late", "new"], ["seen", "newer"]
NUMBERS = [1, 2, 3, 4]
LEFT_OUT = ("plan", "tasks", "credentials", "sign", "functions")
# Also of requests that no longer fit their route, and of a key that was used for another request.
ANYWHERE = {404, 405, 422}
SECONDS_MAX = 30
# Of requests with a key, and of one operation at once.
KEYS_EVERY, EACH_MAX = 5, 10
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def one_of(values: list[Any], other: dict[str, Any]) -> dict[str, Any]:
    """Mostly the first of the values."""
    return {"anyOf": [{"enum": values[:1]}, {"enum": values}, other]}


def prepared(document: dict[str, Any], files: list[str]) -> dict[str, Any]:
    """The document without a prefix and what is not served, and with names and numbers that are often there."""
    document["paths"] = {
        path.replace("/{prefix}", ""): item
        for path, item in document["paths"].items()
        if not any(segment in path.split("/") for segment in LEFT_OUT)
    }
    for item in document["paths"].values():
        parameters = item.get("parameters", [])
        item["parameters"] = [one for one in parameters if one.get("$ref") != "#/components/parameters/prefix"]
    text = {"type": "string"}
    for name, values in (("namespace", NAMESPACES), ("table", TABLES), ("view", VIEWS)):
        document["components"]["parameters"][name]["schema"] = one_of(values, text)
    schemas = document["components"]["schemas"]
    schemas["Namespace"] = one_of([[each] for each in NAMESPACES], {"type": "array", "items": text})
    named = one_of([*TABLES, *VIEWS], text)
    for name in ("CreateTableRequest", "CreateViewRequest", "RegisterTableRequest", "RegisterViewRequest"):
        if name in schemas:
            schemas[name]["properties"]["name"] = named
    schemas["TableIdentifier"]["properties"]["name"] = named
    for name in ("RegisterTableRequest", "RegisterViewRequest"):
        if name in schemas:
            schemas[name]["properties"]["metadata-location"] = one_of(files, text)
    number = one_of(NUMBERS, {"type": "integer", "format": "int64"})
    for schema in schemas.values():
        for field in ("snapshot-id", "parent-snapshot-id", "sequence-number", "schema-id"):
            if field in schema.get("properties", {}):
                schema["properties"][field] = number
    return document


def problem(case: Any, response: Any) -> str | None:
    """What the answer has that the document does not."""
    status = response.status_code
    documented = {int(each) for each in case.operation.definition.raw["responses"] if str(each).isdecimal()}
    if status >= 500 or status not in documented | ANYWHERE:
        return f"status {status}"
    if case.method.upper() == "HEAD":
        return "a body" if response.content else None
    if status in (204, 304):
        return "a body" if response.content else None
    try:
        body = json.loads(response.content)
    except ValueError:
        return "no JSON"
    if status >= 400 and not str(case.path).endswith("/oauth/tokens"):
        error = body.get("error") if isinstance(body, dict) else None
        kinds = {"message": str, "type": str, "code": int}
        if not isinstance(error, dict) or any(not isinstance(error.get(key), kind) for key, kind in kinds.items()):
            return "not the error model"
        if error["code"] != status or "Traceback" in error["message"]:
            return "another code, or a traceback"
    if status == 200:
        try:
            case.validate_response(response, checks=[response_schema_conformance, not_a_server_error])
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:600]}"
    return None


class Fuzzer:
    """Sends requests, and keeps what is wrong with the answers."""

    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.auth = ("admin", password)
        self._sent = 0
        self.statuses: Counter[int] = Counter()
        self.problems: dict[str, str] = {}

    def prepare(self) -> None:
        """Make what earlier requests may have taken away."""
        post = partial(self._session.post, timeout=SECONDS_MAX)
        for namespace in NAMESPACES[:2]:
            post(f"{self._url}/v1/namespaces", json={"namespace": [namespace]})
        for table in TABLES[:3]:
            properties = {"hms.append-rebase": "true"} if table == "late" else {}
            body = {"name": table, "schema": SCHEMA, "properties": properties}
            post(f"{self._url}/v1/namespaces/sales/tables", json=body)
        version = {
            "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["sales"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        }  # fmt: skip
        body = {"name": VIEWS[0], "schema": SCHEMA, "properties": {}, "view-version": version}
        post(f"{self._url}/v1/namespaces/sales/views", json=body)

    def send(self, case: Any) -> None:
        self._sent += 1
        if self._sent % KEYS_EVERY and case.headers:
            # Most made keys are the same few.
            case.headers.pop("Idempotency-Key", None)
        try:
            response = case.call(base_url=self._url, session=self._session, timeout=SECONDS_MAX)
        except (requests.Timeout, requests.ConnectionError) as error:
            self._note(f"{case.operation.label} {type(error).__name__}", repr(case)[:2000])
        except requests.RequestException:
            # Some values cannot be sent at all.
            pass
        else:
            self.statuses[response.status_code] += 1
            found = problem(case, response)
            if found is not None:
                shown = f"{case.as_curl_command()[:3000]} -> {response.content[:500]!r}"
                self._note(f"{case.operation.label} {found}", shown)

    def _note(self, what: str, shown: str) -> None:
        if what not in self.problems:
            self.problems[what] = shown
            print(what, shown, file=sys.stderr, flush=True)

    def run(self, operation: Any, mode: GenerationMode, count: int, first_seed: int) -> None:
        """Send so many requests of one operation."""

        @seed(first_seed)
        @settings(
            max_examples=count, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            self.send(case)

        # Nothing can be wrong with a request without parameters.
        with suppress(Unsatisfiable):
            send()


def main(document: str, url: str, password: str, count: int, first_seed: int, files: list[str]) -> None:
    raw = yaml.safe_load(Path(document).read_text("utf-8"))
    api = schemathesis.openapi.from_dict(prepared(raw, files))
    # Those that take things away are the last ones of each round.
    operations = sorted(
        (result.ok() for result in api.get_all_operations()),
        key=lambda one: (one.method.upper() == "DELETE", one.label),
    )
    fuzzer = Fuzzer(url, password)
    each = max(1, count // (2 * len(operations)))
    rounds = max(1, each // EACH_MAX)
    for number in range(rounds):
        for operation in operations:
            fuzzer.prepare()
            for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
                fuzzer.run(operation, mode, each // rounds, first_seed + number)
        print(number, dict(fuzzer.statuses), file=sys.stderr, flush=True)
    statuses = {str(key): value for key, value in sorted(fuzzer.statuses.items())}
    print(json.dumps({"statuses": statuses, "problems": fuzzer.problems}))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
