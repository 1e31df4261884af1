"""Sends requests that schemathesis makes of the OpenAPI document: `python fuzzer.py DOCUMENT URL PASSWORD COUNT SEED FILE...`

It runs in the environment of schemathesis, which has nothing else of the project. The FILEs are metadata files that can
be registered. Prints how many requests got which status, and each answer that the document does not have.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

NAMESPACES, TABLES, VIEWS = ["sales", "other", "new"], ["orders", "bills", "late", "new"], ["seen", "newer"]
NUMBERS = [1, 2, 3, 4]
LEFT_OUT = ("plan", "tasks", "credentials", "sign", "functions")
# Also of requests that no longer fit their route, and of a key that was used for another request.
ANYWHERE = {404, 405, 422}
SECONDS_MAX = 30


def one_of(values: list[Any], other: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"enum": values}, other]}


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


def main(document: str, url: str, password: str, count: int, first_seed: int, files: list[str]) -> None:
    raw = yaml.safe_load(Path(document).read_text("utf-8"))
    api = schemathesis.openapi.from_dict(prepared(raw, files))
    api.config.base_url = url
    operations = [result.ok() for result in api.get_all_operations()]
    each = max(1, count // (2 * len(operations)))
    statuses: Counter[int] = Counter()
    problems: dict[str, str] = {}
    session = requests.Session()
    session.auth = ("admin", password)
    # Those that take things away are the last ones of each round.
    order = sorted(operations, key=lambda one: (one.method.upper() == "DELETE", one.label))
    rounds = max(1, min(each, 10))
    for number in range(rounds):
        for operation in order:
            for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:

                @seed(first_seed + number)
                @settings(
                    max_examples=max(1, each // rounds), deadline=None, database=None, phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )  # fmt: skip
                @given(case=operation.as_strategy(generation_mode=mode))
                def send(case: Any) -> None:
                    try:
                        response = case.call(base_url=url, session=session, timeout=SECONDS_MAX)
                    except requests.RequestException as error:
                        # Some values cannot be sent at all.
                        if isinstance(error, requests.Timeout | requests.ConnectionError):
                            problems.setdefault(f"{case.operation.label} {type(error).__name__}", repr(case)[:2000])
                        return
                    statuses[response.status_code] += 1
                    found = problem(case, response)
                    if found is not None:
                        shown = f"{case.as_curl_command()[:3000]} -> {response.content[:500]!r}"
                        problems.setdefault(f"{case.operation.label} {found}", shown)

                try:
                    send()
                except Exception as error:
                    # Such as a negative mode without anything that could be wrong.
                    if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):
                        problems.setdefault(f"{operation.label} {mode} {type(error).__name__}", str(error)[:2000])
    print(json.dumps({"statuses": {str(key): value for key, value in sorted(statuses.items())}, "problems": problems}))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
