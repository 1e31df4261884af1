"""Expressions of Hive's compiler through the calls that take them: they answer what Hive itself selected."""

from collections.abc import Sequence

import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.structs import DropPartitionsExpr, FieldSchema, MetaException, Partition, RequestPartsSpec
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import create, read_structs, table
from tests.metastore.recorded_expressions import KEYS, PARTITIONS, VALUES, recorded
from tests.support.catalog import to_tjson
from tests.support.manual_clock import ManualClock
from tests.support.partition_calls import PartitionCalls
from tests.support.sample import sample

EVERY = sample(3, of=1)
ORDERS = TableName("sales", "orders")


@pytest.fixture
def service(store: SqlStore) -> PartitionCalls:
    create(store, table(partitionKeys=[FieldSchema(*key) for key in KEYS]), VALUES)
    return PartitionCalls(store, Directories(), ManualClock(), MetastoreSettings(), to_tjson)


def names_in(found: Sequence[Partition]) -> list[str]:
    return [make_name([name for name, _ in KEYS], one.values or []) for one in found]


@pytest.mark.slow
def test_reads_find_what_hive_finds(service: PartitionCalls) -> None:
    sure, chosen = 0, recorded()[:150:EVERY]
    for one in chosen:
        found, is_unsure = service.list_by_expression(ORDERS, one.data, -1)
        names = names_in(found if isinstance(found, list) else read_structs(found))
        wanted = sorted((PARTITIONS[number] for number in one.selected), key=str.encode)
        assert (set(names) >= set(wanted)) if is_unsure else (names == wanted), one.sql
        assert service.names_by_expression(ORDERS, one.data, -1) == names
        sure += not is_unsure
    assert sure > 0.8 * len(chosen)


@pytest.mark.slow
def test_drops_take_what_hive_finds_or_nothing(service: PartitionCalls) -> None:
    left = service.names(ORDERS, -1)
    for one in recorded():
        parts = RequestPartsSpec(exprs=[DropPartitionsExpr(expr=one.data)])
        _, is_unsure = service.list_by_expression(ORDERS, one.data, 0)
        if is_unsure:
            with pytest.raises(MetaException, match="cannot be evaluated"):
                service.drop_all(ORDERS, parts, ignores_missing=True, deletes_data=False)
        elif len(one.selected) < 10:
            going = {PARTITIONS[number] for number in one.selected} & set(left)
            dropped = service.drop_all(ORDERS, parts, ignores_missing=True, deletes_data=False)
            assert set(names_in(dropped)) == going, one.sql
            left = [name for name in left if name not in going]
        if len(left) < 20:
            break
    assert service.names(ORDERS, -1) == left
    assert len(left) < 40


@pytest.mark.parametrize("text", ["(ds <> 'ab')", "(ds < 'é')", "(ds >= 'ab')", "(ds) IN ('ab', 'b')", "(ds > '😀')"])
def test_an_expression_that_is_a_filter_selects_what_the_filter_selects(service: PartitionCalls, text: str) -> None:
    (data, *_) = (one.data for one in recorded() if one.sql == text)
    found = service.list_by_filter(ORDERS, text, -1)
    names = names_in(found if isinstance(found, list) else read_structs(found))
    assert service.names_by_expression(ORDERS, data, -1) == names
    dropped = service.drop_all(
        ORDERS, RequestPartsSpec(exprs=[DropPartitionsExpr(expr=data)]), ignores_missing=True, deletes_data=False
    )
    assert sorted(names_in(dropped)) == sorted(names)
    assert any("ds=__HIVE_DEFAULT_PARTITION__" in name for name in names) is (text in ("(ds <> 'ab')", "(ds < 'é')"))
