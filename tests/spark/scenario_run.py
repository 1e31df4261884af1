"""Run a scenario on one metastore, and compare what came out of two."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.catalog_content import ThriftPort, comparable, content
from tests.spark.spark_session import Statements
from tests.spark.steps import Scenario
from tests.support.sample import WHOLE

MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class Place:
    """A metastore with a Spark session on it, and the folder of its databases."""

    metastore: ThriftPort
    spark: Statements
    warehouse: Path


def outcome(place: Place, scenario: Scenario, *, is_whole: bool = WHOLE) -> dict[str, Any]:
    """The answers of all steps and the catalog's content after them, comparable; None where a step is not asked."""
    name = scenario.name
    place.spark.sql(f"CREATE DATABASE {name}")
    place.spark.sql(f"USE {name}")
    try:
        directory = next(value for label, value in place.spark.sql(f"DESCRIBE DATABASE {name}") if label == "Location")
        answers = [
            _answer(place, name, _filled(step.request, directory)) if is_whole or not step.like else None
            for step in scenario.steps
        ]
        return {"answers": answers, "content": content(place.metastore, name, place.warehouse)}
    finally:
        place.spark.sql("USE default")
        place.spark.sql(f"DROP DATABASE {name} CASCADE")
        assert not (place.warehouse / f"{name}.db").exists()


def _answer(place: Place, database: str, request: dict[str, Any]) -> dict[str, Any]:
    if "look" in request:
        return content(place.metastore, database, place.warehouse)
    found: dict[str, Any] = comparable(place.spark.ask(request), place.warehouse)
    return found


def unexpected(scenario: Scenario, answers: list[dict[str, Any] | None]) -> Iterator[str]:
    """The answers that are not what the scenario says."""
    for step, answer in zip(scenario.steps, answers, strict=True):
        if answer is None:
            continue
        has_failed = any("error" in each for each in answer.get("parallel", [answer]))
        is_right_error = step.error == answer.get("error") if step.error else not has_failed
        if not is_right_error or step.rows not in (None, answer.get("rows")):
            yield f"{step.request}\n  expected {step.error or step.rows or 'no error'}, got {answer}"


def _filled(value: Any, directory: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, directory) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, directory) for item in value]
    return value.replace("{location}", directory) if isinstance(value, str) else value


def differences(real: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two outcomes differ, as (path, real, ours)."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted(set(real) | set(ours)):
            yield from differences(real.get(key, MISSING), ours.get(key, MISSING), f"{path}/{key}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (left, right) in enumerate(zip(real, ours, strict=True)):
            yield from differences(left, right, f"{path}/{index}")
    elif real != ours:
        yield path, real, ours
