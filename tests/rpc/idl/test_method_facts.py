"""The table of what the IDL does not say about methods, and that no other module says it."""

import ast
from pathlib import Path

import pytest

import hms_gateway
from hms_gateway.rpc import structs
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.idl.method_facts import changes_something, method_facts
from hms_gateway.rpc.structs import METHODS

PACKAGE = Path(hms_gateway.__file__).parent
# Modules and rooms that call methods or answer them, and so name them. Words that also name
# something else do not count.
CALLERS = {
    "bridge/relays/relay.py",
    # A bridge gives no token away that would be one of its own user.
    "bridge/relays/https_relay.py",
    # A list of write ids is given by one method.
    "cache/replies.py",
    # Whether statistics hold is part of an answer.
    "cache/reader_lists.py",
    "cli/coordination/leases.py",
    "cli/coordination/locks.py",
    "client/acquiring.py",
    "client/in_catalog.py",
    "client/transaction.py",
    # The one method whose declared exceptions differ between the dialects.
    "rpc/binding.py",
}
ROOMS_OF_CALLERS = ("handlers/", "iceberg/", "pipeline/", "cli/catalog/", "cli/sql/", "cli/hiveql/")
ALSO_WORDS = {"lock", "compact"}


def test_the_table_has_each_method_of_the_idl_once_and_in_order():
    assert method_facts().keys() == METHODS.keys()
    assert list(method_facts()) == sorted(METHODS, key=str.lower)


@pytest.mark.slow
def test_no_other_table_names_methods():
    """A new method is a declaration in the IDL, a function of a handler, a row of the table and a test: four files."""
    naming = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        constants = {
            node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)
        }
        named = {value for value in constants if isinstance(value, str)} & METHODS.keys() - ALSO_WORDS
        if named and place not in CALLERS and not place.startswith(ROOMS_OF_CALLERS):
            naming[place] = named
    assert naming == {}


def test_only_calls_that_change_something_are_repeated_by_value_or_hold_no_thread():
    for name, facts in method_facts().items():
        assert facts.changes or not (facts.keeps_value or facts.suspendable), name
        assert facts.keeps_value or not facts.suspendable, name
        assert not (facts.changes and facts.cached_by), name


@pytest.mark.parametrize(
    "name", ["get_table", "get_partitions_by_filter", "list_roles", "show_locks", "partition_name_to_vals"]
)
def test_these_read(name):
    assert not changes_something(name)


@pytest.mark.parametrize(
    "name", ["create_table", "lock", "check_lock", "open_txns", "get_delegation_token", "find_next_compact"]
)
def test_these_change(name):
    assert changes_something(name)


def test_an_unknown_method_counts_as_changing():
    assert changes_something("frobnicate_table")


def test_lists_of_write_ids_are_read_where_the_idl_has_them():
    for name, facts in method_facts().items():
        requests = {
            field.name for field in METHODS[name].definition.arguments if _has_list(field.type) and facts.cached_by
        }
        if facts.write_ids_in == "header":
            assert not requests, name
        elif facts.write_ids_in:
            assert requests == {facts.write_ids_in}, name
        assert bool(facts.write_ids_in) or not requests, name


def test_a_read_of_one_table_may_say_which_write_ids_it_sees():
    for name, facts in method_facts().items():
        if facts.cached_by in ("table", "columns", "foreign_keys", "named_tables"):
            assert facts.write_ids_in, name


def _has_list(type_):
    return isinstance(type_, StructType) and hasattr(getattr(structs, type_.name)(), "validWriteIdList")
