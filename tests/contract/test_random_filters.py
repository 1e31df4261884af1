"""Random filters over random tables select what plain Python selects (semantics §4).

`HMS_TESTS_SEED` is the seed of the first table. A failure names the seed and the smallest part of the filter that is
wrong.
"""

import random
from collections.abc import Sequence
from typing import TypeAlias

import pytest

from hms_gateway.catalog.partitions.reads import PartitionList
from hms_gateway.metastore.checks.selection import TableName, matching_filter, matching_partial
from hms_gateway.metastore.ports.store import Snapshot, StoredTable
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import (
    DropPartitionsExpr,
    FieldSchema,
    GetPartitionsFilterSpec,
    MetaException,
    PartitionFilterMode,
    PartitionValuesRequest,
    RequestPartsSpec,
)
from hms_gateway.runtime.limits import DEFAULT_LIMITS
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.filter_reference import DEFAULT_PARTITION, Key, Node, Refused, selected
from tests.contract.objects import create, read_structs, table
from tests.contract.random_filters import TYPES, FilterMaker, RandomTable, parts, random_table
from tests.support.catalog import to_tjson
from tests.support.manual_clock import ManualClock
from tests.support.partition_calls import PartitionCalls
from tests.support.sample import FIRST_SEED, sample

FILTERS = sample(100, of=50_000)
FILTERS_PER_TABLE = 100

# Names in order, or the text of the MetaException.
Answer: TypeAlias = list[str] | str


def stored(store: SqlStore, drawn: RandomTable, seed: int) -> StoredTable:
    return create(store, table(f"t{seed}", partitionKeys=fields(drawn)), drawn.rows)


def fields(drawn: RandomTable) -> list[FieldSchema]:
    return [FieldSchema(name, key.type) for name, key in zip(drawn.bare_names, drawn.keys, strict=True)]


def names_of(drawn: RandomTable, chosen: Sequence[int]) -> list[str]:
    return sorted((make_name(drawn.bare_names, drawn.rows[number]) for number in chosen), key=str.encode)


def expected(drawn: RandomTable, node: Node) -> Answer:
    try:
        return names_of(drawn, selected(node, drawn.values))
    except Refused as refusal:
        return str(refusal)


def answered(store: SqlStore, of: StoredTable, nodes: Sequence[Node]) -> list[Answer]:
    def answer(snapshot: Snapshot, text: str) -> Answer:
        try:
            return snapshot.partition_names(of, matching_filter(of, text, DEFAULT_LIMITS))
        except MetaException as refusal:
            return refusal.message or ""

    return store.read(lambda snapshot: [answer(snapshot, node.written) for node in nodes])


def check(store: SqlStore, of: StoredTable, drawn: RandomTable, nodes: Sequence[Node], seed: int) -> None:
    for node, found in zip(nodes, answered(store, of, nodes), strict=True):
        if found != expected(drawn, node):
            pytest.fail(explanation(store, of, drawn, node, seed))


def explanation(store: SqlStore, of: StoredTable, drawn: RandomTable, wrong: Node, seed: int) -> str:
    for node in parts(wrong):
        wanted, (found,) = expected(drawn, node), answered(store, of, [node])
        if wanted != found:
            break
    keys = [(key.name, key.type) for key in drawn.keys]
    if isinstance(wanted, list) and isinstance(found, list):
        wanted, found = (
            [name for name in one if name not in other] for one, other in ((wanted, found), (found, wanted))
        )
    return f"seed {seed}, {keys=}\n{node.written}\nonly wanted: {wanted}\nonly found: {found}"


@pytest.mark.slow
def test_filters_select_what_plain_python_selects(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some of the small tables are treated as SQLite's large ones are.
    monkeypatch.setattr("hms_gateway.storage.partitions.reads.LOOKED_AT_MAX", 20)
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, FILTERS // FILTERS_PER_TABLE)):
        source = random.Random(seed)
        drawn = random_table(source)
        maker = FilterMaker(source, drawn)
        nodes = [maker.filter() for _ in range(FILTERS_PER_TABLE)]
        check(store, stored(store, drawn, seed), drawn, nodes, seed)


def test_a_key_of_another_type_compares_as_that_type(store: SqlStore) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + 3):
        source = random.Random(seed)
        drawn = random_table(source)
        of = stored(store, drawn, seed)
        changed = RandomTable(tuple(Key(key.name, source.choice(TYPES)) for key in drawn.keys), drawn.rows)
        of.table.partitionKeys = fields(changed)
        store.write(lambda transaction, of=of: transaction.update_table(of.table_id, of.database_id, of.table))
        maker = FilterMaker(source, changed)
        check(store, of, changed, [maker.filter() for _ in range(20)], seed)


@pytest.mark.slow
def test_partial_values_select_what_plain_python_selects(store: SqlStore) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + 10):
        source = random.Random(seed)
        drawn = random_table(source)
        of = stored(store, drawn, seed)
        for _ in range(20):
            row = source.choice(drawn.rows)
            wanted = [value if source.random() < 0.6 else "" for value in row][: source.randint(1, len(row))]
            chosen = [
                number
                for number, values in enumerate(drawn.rows)
                if all(asked in ("", found or DEFAULT_PARTITION) for asked, found in zip(wanted, values, strict=False))
            ]
            found = store.read(lambda snapshot, of=of, w=wanted: snapshot.partition_names(of, matching_partial(of, w)))
            assert found == names_of(drawn, chosen), (seed, wanted)


def names_in(found: PartitionList, drawn: RandomTable) -> list[str]:
    partitions = found if isinstance(found, list) else read_structs(found)
    return [make_name(drawn.bare_names, one.values) for one in partitions]


@pytest.mark.slow
def test_every_call_that_takes_a_filter_answers_alike(store: SqlStore) -> None:
    service = PartitionCalls(store, Directories(), ManualClock(), MetastoreSettings(), to_tjson)
    for seed in range(FIRST_SEED, FIRST_SEED + 4):
        source = random.Random(seed)
        drawn = random_table(source, rows_max=20)
        stored(store, drawn, seed)
        named = TableName("sales", f"T{seed}")
        maker = FilterMaker(source, drawn, stray=0)
        for _ in range(5):
            node = maker.filter(2)
            wanted = expected(drawn, node)
            if isinstance(wanted, str):
                continue
            check_reads(service, named, drawn, node.written, wanted, source.randint(0, 3))
        drop_one_after_another(service, named, drawn, maker)


def check_reads(
    service: PartitionCalls, named: TableName, drawn: RandomTable, text: str, wanted: list[str], limit: int
) -> None:
    expression = text.encode()
    by_expression, is_unsure = service.list_by_expression(named, expression, limit)
    specs_by_expression, are_unsure = service.specs_by_expression(named, expression, -1)
    condition = GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_EXPR, filters=[text, text])
    assert names_in(service.list_by_filter(named, text, -1), drawn) == wanted, text
    assert names_in(service.list_by_filter(named, text, limit), drawn) == wanted[:limit], text
    assert service.count_by_filter(named, text) == len(wanted), text
    assert names_in(by_expression, drawn) == wanted[:limit], text
    assert service.names_by_expression(named, expression, -1) == wanted, text
    assert not is_unsure
    assert not are_unsure
    for specs in (service.specs_by_filter(named, text, -1), specs_by_expression,
                  service.projected_specs(named, condition)):  # fmt: skip
        assert [name for spec in specs for name in names_in(spec.partitionList.partitions, drawn)] == wanted, text
    keys = [FieldSchema(name) for name in drawn.bare_names]
    values = service.values(
        named, PartitionValuesRequest(dbName="sales", partitionKeys=keys, filter=text, applyDistinct=False)
    )
    assert len(values) == len(wanted), text


def drop_one_after_another(service: PartitionCalls, named: TableName, drawn: RandomTable, maker: FilterMaker) -> None:
    """Each drop takes what its filters select together, and nothing else."""
    left = names_of(drawn, range(len(drawn.rows)))
    for _ in range(3):
        nodes = [maker.filter(1), maker.filter(1)]
        wanted = [expected(drawn, node) for node in nodes]
        if any(isinstance(one, str) for one in wanted):
            continue
        going = {name for one in wanted for name in one}
        parts_to_drop = RequestPartsSpec(exprs=[DropPartitionsExpr(expr=node.written.encode()) for node in nodes])
        dropped = service.drop_all(named, parts_to_drop, ignores_missing=True, deletes_data=False)
        assert names_in(dropped, drawn) == [name for name in left if name in going], [node.written for node in nodes]
        left = [name for name in left if name not in going]
        assert service.names(named, -1) == left
