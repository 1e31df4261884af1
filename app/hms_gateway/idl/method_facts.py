"""Facts about each method from `schema/methods.txt`: the one table of what the IDL does not say."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from hms_gateway.idl.schema_files import schema_file

TABLE = "methods.txt"
_ALL_GENERATIONS = "2.3, 3.1, 4"


class MethodFacts(NamedTuple):
    """One row of the table.

    changes       repeating a call could do something twice, so it is repeated only under a key
    keeps_value   a repetition under a key runs the handler with what its unit of work gave the first time
    suspendable   a call holds no thread while its unit of work waits
    passes_rates  the rates of a user never refuse it, and under load it does not wait for the user's other calls
    partitions_in  where the partitions are that it is paid for by
    known_to      the generations of clients that know the method, such as "3.1, 4"
    cached_by     what a reply depends on, as words for `cache.scopes`; empty when replies are not kept
    write_ids_in  the argument that carries the reader's list of write ids, "header", or empty
    called_by     known clients that call it
    """

    changes: bool
    keeps_value: bool
    suspendable: bool
    passes_rates: bool
    partitions_in: tuple[str, ...]
    known_to: str
    cached_by: tuple[str, ...]
    write_ids_in: str
    called_by: str


@cache
def method_facts() -> Mapping[str, MethodFacts]:
    """The facts by method name. Raises ValueError for a table that cannot be read."""
    return dict(_rows(schema_file(TABLE).read_text("utf-8")))


def changes_something(method: str) -> bool:
    """True if a repeated call of `method` could do something twice; also for a method that is not in the table."""
    facts = method_facts().get(method)
    return facts is None or facts.changes


def _rows(text: str) -> Iterator[tuple[str, MethodFacts]]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    next(lines)  # the names of the columns
    for line in lines:
        name, kind, repetition, suspendable, rates, known_to, cached_by, write_ids_in, called_by = map(
            str.strip, line.split("|")
        )
        if kind not in ("reads", "changes") or repetition not in ("", "value", "answer"):
            raise ValueError(f"schema/{TABLE}: {name} has an unknown kind or repetition; see the file's comments")
        yield (
            name,
            MethodFacts(
                kind == "changes",
                repetition == "value",
                suspendable == "yes",
                rates == "pass",
                () if rates == "pass" else tuple(rates.split()),
                _ALL_GENERATIONS if known_to == "all" else known_to,
                tuple(cached_by.split()),
                write_ids_in,
                called_by,
            ),
        )
