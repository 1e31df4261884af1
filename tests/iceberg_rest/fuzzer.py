"""Sends requests that schemathesis makes of the OpenAPI document: `fuzzer.py DOCUMENT URL PASSWORD COUNT SEED FILE...`

It runs in the environment of schemathesis, which has nothing else of the project. The FILEs are metadata files that can
be registered. Prints how many requests got which status, and each answer that the document does not have.
"""

import json
import random
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

NAMESPACES = ["sales", "sales", "sales", "other", "new"]
TABLES, VIEWS = ["orders", "bills", "late", "new"], ["seen", "newer"]
NUMBERS = [0, 1, 2, 3, 4]
LEFT_OUT = ("plan", "tasks", "credentials", "sign", "functions")
# Also of requests that no longer fit their route, and of a key that was used for another request.
ANYWHERE = {404, 405, 422}
SECONDS_MAX = 30
# Of requests with a key.
KEYS_EVERY = 5
# The part of names and numbers that are chosen of those that are there.
AIMED = 0.85
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def prepared(document: dict[str, Any]) -> dict[str, Any]:
    """The document without a prefix and what is not served."""
    document["paths"] = {
        path.replace("/{prefix}", ""): item
        for path, item in document["paths"].items()
        if not any(segment in path.split("/") for segment in LEFT_OUT)
    }
    for item in document["paths"].values():
        parameters = item.get("parameters", [])
        item["parameters"] = [one for one in parameters if one.get("$ref") != "#/components/parameters/prefix"]
    return document


def aim(case: Any, chosen: random.Random, files: list[str]) -> None:
    """Have a request name mostly what is there, so that it does something."""
    names = {"namespace": NAMESPACES, "table": TABLES, "view": VIEWS}
    for name in case.path_parameters or ():
        if chosen.random() < AIMED:
            case.path_parameters[name] = chosen.choice(names[name])
    if isinstance(case.body, dict):
        case.body = _aimed(case.body, chosen, files)


def _aimed(value: Any, chosen: random.Random, files: list[str], field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _aimed(each, chosen, files, key) for key, each in value.items()}
    if chosen.random() > AIMED:
        return value
    match field:
        case "namespace":
            return [chosen.choice(NAMESPACES)]
        case "name":
            return chosen.choice([*TABLES, *VIEWS])
        case "metadata-location":
            return chosen.choice(files)
        case "requirements":
            return []
        case "location":
            return None
        case "fields" if all(isinstance(each, dict) for each in value or ()):
            return [{**each, "name": f"f{number}", "source-id": 1} for number, each in enumerate(value)]
        case "snapshot-id" | "parent-snapshot-id" | "sequence-number" | "schema-id":
            return chosen.choice(NUMBERS)
    return [_aimed(each, chosen, files) for each in value] if isinstance(value, list) else value


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

    def __init__(self, url: str, password: str, files: list[str]) -> None:
        self._url = url
        self._files = files
        self._session = requests.Session()
        self._session.auth = ("admin", password)
        self._sent = 0
        self.statuses: Counter[int] = Counter()
        self.problems: dict[str, str] = {}

    def prepare(self) -> None:
        """Make what earlier requests may have taken away."""
        post = partial(self._session.post, timeout=SECONDS_MAX)
        for namespace in NAMESPACES[2:4]:
            post(f"{self._url}/v1/namespaces", json={"namespace": [namespace]})
        for table in TABLES[:3]:
            properties = {"hms.append-rebase": "true"} if table == "late" else {}
            body: dict[str, Any] = {"name": table, "schema": SCHEMA, "properties": properties}
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
        chosen = random.Random(f"{first_seed} {operation.label}")

        @seed(first_seed)
        @settings(
            max_examples=count, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            if mode is GenerationMode.POSITIVE:
                aim(case, chosen, self._files)
            self.send(case)

        # Nothing can be wrong with a request without parameters.
        with suppress(Unsatisfiable):
            send()


def main(document: str, url: str, password: str, count: int, first_seed: int, files: list[str]) -> None:
    raw = yaml.safe_load(Path(document).read_text("utf-8"))
    api = schemathesis.openapi.from_dict(prepared(raw))
    # Those that take things away are the last ones.
    operations = sorted(
        (result.ok() for result in api.get_all_operations()),
        key=lambda one: (one.method.upper() == "DELETE", one.label),
    )
    fuzzer = Fuzzer(url, password, files)
    each = max(1, count // (2 * len(operations)))
    for operation in operations:
        fuzzer.prepare()
        for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
            fuzzer.run(operation, mode, each, first_seed)
    statuses = {str(key): value for key, value in sorted(fuzzer.statuses.items())}
    print(json.dumps({"statuses": statuses, "problems": fuzzer.problems}))


if __name__ == "__main__":
    document, url, password, count, first_seed, *files = sys.argv[1:]
    main(document, url, password, int(count), int(first_seed), files)
