"""What a scenario is made of: requests to a Spark session, with the answers they must have."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One request of `statement_runner`. What `rows` and `error` leave open the real metastore decides.

    One that is `like` others only reads, and only `make test-all` asks it.
    """

    request: dict[str, Any]
    rows: list[list[Any]] | None = None
    error: str | None = None
    like: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps in a database of the scenario's name, which is the current one. `{location}` is its directory."""

    name: str
    steps: tuple[Step, ...]


def run(*statements: str) -> list[Step]:
    """Statements that must work."""
    return [Step({"sql": statement}) for statement in statements]


def gives(statement: str, *rows: tuple[Any, ...], like: bool = False) -> Step:
    """A statement with the rows that it must give, in this order."""
    return Step({"sql": statement}, rows=[list(row) for row in rows], like=like)


def fails(statement: str, condition: str) -> Step:
    """A statement that Spark must refuse with this error condition."""
    return Step({"sql": statement}, error=condition)


def at_once(*statements: str) -> Step:
    """Statements that run at the same time, each in a thread of one session."""
    return Step({"parallel": list(statements)})


def catalog(method: str, *arguments: str) -> Step:
    """A call of `spark.catalog`."""
    return Step({"catalog": method, "arguments": list(arguments)})


def look() -> Step:
    """The whole content of the catalog at this moment, which must be that of the real metastore."""
    return Step({"look": True})


def save(
    select: str,
    table: str,
    file_format: str,
    mode: str = "append",
    partitions: list[str] | None = None,
    buckets: str = "",
) -> Step:
    """`saveAsTable` of what `select` gives."""
    request = {"save": select, "table": table, "format": file_format, "mode": mode}
    return Step(request | {"partitions": partitions or [], "buckets": buckets})
