"""Random filters of get_table_names_by_filter select what plain Python selects (semantics §2.6).

`HMS_TESTS_SEED` is the seed of the first database.
"""

import random
from dataclasses import dataclass
from typing import Final

import pytest

from hms_gateway.metastore.filters.grammar import FilterError
from hms_gateway.metastore.filters.table_filter import parse_table_filter
from hms_gateway.metastore.ports.store import Transaction
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.filter_reference import (
    OPERATORS,
    Between,
    Comparison,
    In,
    Joined,
    Key,
    Like,
    Literal,
    MultiIn,
    Node,
    like_expression,
)
from tests.contract.objects import database, table
from tests.contract.random_filters import ODD_TEXTS, FilterMaker, RandomTable, parts
from tests.support.sample import FIRST_SEED, sample

OWNER: Final = "hive_filter_field_owner__"
LAST_ACCESS: Final = "hive_filter_field_last_access__"
PARAMETER: Final = "hive_filter_field_params__"
KEYS: Final = (
    Key(OWNER, "string"),
    Key(LAST_ACCESS, "int"),
    Key(f"{PARAMETER}comment", "string"),
    Key(f"{PARAMETER}Comment", "string"),
    Key(f"{PARAMETER}presto.view", "string"),
)
NO_LIKE: Final = "Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS"
EQUALITY_ONLY: Final = "Only [=, <>, !=, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS"


@dataclass(frozen=True)
class RandomDescription:
    owner: str | None
    last_access: int
    parameters: dict[str, str]

    def value(self, key: Key) -> str | int | None:
        if key.name == OWNER:
            return self.owner
        return self.last_access if key.name == LAST_ACCESS else self.parameters.get(key.name.removeprefix(PARAMETER))


class TableFilterMaker(FilterMaker):
    """Key names as they are: their case counts."""

    def _name(self, key: Key) -> str:
        return f"`{key.name}`" if "." in key.name else key.name


def compares(key: Key, sign: str, literal: Literal, of: RandomDescription) -> bool:
    if key.name.startswith(PARAMETER) and sign not in ("=", "!=", "<>"):
        raise FilterError(EQUALITY_ONLY)
    value = of.value(key)
    if key.name == LAST_ACCESS:
        return literal.kind == "integer" and OPERATORS[sign](value, int(literal.text))
    return value is not None and OPERATORS[sign](value, text_of(literal))


def text_of(literal: Literal) -> str:
    """As it is written, a date with all its digits."""
    if literal.kind == "date":
        return "-".join(part.zfill(2) for part in literal.text.split("-"))
    return "2024-01-02 03:04:05" if literal.kind == "timestamp" else literal.text


def holds(node: Node, of: RandomDescription) -> bool:
    match node:
        case Joined():
            held = [holds(part, of) for part in node.parts]
            return all(held) if node.is_and else any(held)
        case Comparison():
            return compares(node.key, node.sign, node.literal, of)
        case Between():
            bounds = (("<", node.low), (">", node.high)) if node.negated else ((">=", node.low), ("<=", node.high))
            held = [compares(node.key, sign, literal, of) for sign, literal in bounds]
            return any(held) if node.negated else all(held)
        case In():
            held = [compares(node.key, "!=" if node.negated else "=", literal, of) for literal in node.literals]
            return all(held) if node.negated else any(held)
        case MultiIn():
            sign = "!=" if node.negated else "="
            rows = [
                [compares(key, sign, literal, of) for key, literal in zip(node.keys, constant, strict=True)]
                for constant in node.constants
            ]
            return all(map(any, rows)) if node.negated else any(map(all, rows))
        case Like():
            value = of.value(node.key)
            if node.key.name == LAST_ACCESS:
                raise FilterError(NO_LIKE)
            return isinstance(value, str) and like_expression(node.pattern).fullmatch(value) is not None


def random_tables(source: random.Random) -> dict[str, RandomDescription]:
    texts = source.sample([text for text in ODD_TEXTS if text], 8)
    return {
        f"t{number:02}": RandomDescription(
            source.choice([None, *texts]),
            source.choice((0, 1, -1, 10, 9, 1_700_000_000, 2**31 - 1)),
            {
                name: source.choice([*texts, ""])
                for name in ("comment", "Comment", "presto.view")
                if source.random() < 0.6
            },
        )
        for number in range(source.randint(1, 30))
    }


def create_tables(store: SqlStore, db_name: str, tables: dict[str, RandomDescription]) -> None:
    def create(transaction: Transaction) -> None:
        database_id = transaction.insert_database(database(db_name))
        for name, of in tables.items():
            described = table(name, db_name, owner=of.owner, lastAccessTime=of.last_access, parameters=of.parameters)
            transaction.insert_table(database_id, described)

    store.write(create)


def answered(store: SqlStore, db_name: str, text: str) -> list[str] | str:
    try:
        parsed = parse_table_filter(text)
        return store.read(lambda snapshot: snapshot.table_names(db_name, filter=parsed))
    except FilterError as refusal:
        return str(refusal)


def expected(tables: dict[str, RandomDescription], node: Node) -> list[str] | set[str]:
    """Names, or the texts of everything that is wrong with the filter."""
    refusals = set()
    for part in parts(node)[:-1] if isinstance(node, Joined) else [node]:
        try:
            holds(part, next(iter(tables.values())))
        except FilterError as refusal:
            refusals.add(str(refusal))
    return refusals or [name for name, of in tables.items() if holds(node, of)]


@pytest.mark.slow
def test_table_filters_select_what_plain_python_selects(store: SqlStore) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + sample(3, of=6)):
        source = random.Random(seed)
        tables = random_tables(source)
        create_tables(store, f"d{seed}", tables)
        rows = tuple(tuple(str(of.value(key) or "") for key in KEYS) for of in tables.values())
        maker = TableFilterMaker(source, RandomTable(KEYS, rows))
        for _ in range(60):
            node = maker.filter(1)
            found, wanted = answered(store, f"d{seed}", node.written), expected(tables, node)
            is_right = found in wanted if isinstance(wanted, set) else found == wanted
            if not is_right:
                pytest.fail(f"{seed=}\n{node.written}\n{wanted=}\n{found=}")
