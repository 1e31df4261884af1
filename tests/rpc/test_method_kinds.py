"""Every method of the IDL is known to read or known to change, never both."""

import pytest

from hms_gateway.rpc.method_kinds import changes_something, is_known_to_change, is_known_to_read
from hms_gateway.structs import METHODS


@pytest.mark.parametrize("name", METHODS)
def test_each_method_of_the_idl_is_classified(name):
    assert is_known_to_read(name) != is_known_to_change(name)
    assert changes_something(name) == is_known_to_change(name)


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


def test_what_nobody_knows_counts_as_changing():
    assert changes_something("frobnicate_table")
