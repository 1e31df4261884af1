"""Every method that Hive 2.3 has is in the corpus, with every exception it can throw."""

from collections.abc import Iterator
from functools import cache

import pytest

from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import METHODS
from tests.comparison import corpus
from tests.comparison.unreached import unreached

# 153 of the metastore, 13 of fb303.
HIVE_2_METHODS = 166


@cache
def recorded() -> frozenset[tuple[str, str]]:
    """Method and outcome: an exception's name, or "success"."""
    calls = (call for script in corpus.SCRIPTS for call in corpus.read(script))
    return frozenset((step.method, next(iter(reply), "success")) for step, reply in calls)


def methods() -> list[str]:
    return [name for name, method in METHODS.items() if "2.3" in method_facts()[name].known_to]


def declared() -> Iterator[tuple[str, str]]:
    for name in methods():
        for field in METHODS[name].definition.throws:
            assert isinstance(field.type, StructType)
            yield name, field.type.name


def test_hive_has_as_many_methods() -> None:
    assert len(methods()) == HIVE_2_METHODS


@pytest.mark.slow
def test_every_method_is_recorded() -> None:
    assert {*methods()} - {method for method, _ in recorded()} == set()


def test_every_exception_is_recorded_or_never_thrown() -> None:
    assert sorted({*declared()} - recorded() - {*unreached()}) == []


def test_what_is_said_never_to_be_thrown_is_declared_and_not_recorded() -> None:
    said = {*unreached()}
    assert sorted(said & recorded()) == []
    assert sorted(said - {*declared()}) == []
