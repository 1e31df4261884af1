"""The Thrift methods on constraints: catalogs in names, and who is shown them."""

import pytest

from hms_gateway.catalog.constraints import Constraints
from hms_gateway.rpc.call import Call, Dialect, Uncacheable
from hms_gateway.rpc.structs import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    CheckConstraintsRequest,
    DefaultConstraintsRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    InvalidObjectException,
    MetaException,
    NotNullConstraintsRequest,
    PrimaryKeysRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    UniqueConstraintsRequest,
)
from tests.metastore.statistics_world import refusal
from tests.support.catalog import Catalog, new_table

CALL = Call("tester")
NEWER = Call("tester", dialect=Dialect.HIVE_4)
ON = ("hive", "default", "t")


@pytest.fixture
def methods(catalog: Catalog) -> Constraints:
    for name in ("t", "u"):
        catalog.tables.create(new_table(name))
    return Constraints(catalog.store, catalog.event_maker, catalog.clock)


def test_keys_of_2_3_say_the_catalog_to_newer_callers_only(methods: Constraints) -> None:
    methods.add_primary_key(CALL, AddPrimaryKeyRequest([SQLPrimaryKey("@hive#default", "t", "a", 1, "k")]))
    methods.add_foreign_key(
        CALL, AddForeignKeyRequest([SQLForeignKey("default", "t", "a", "@hive#default", "u", "a", 1, fk_name="f")])
    )

    def catalogs(call: Call, db_name: str = "default", catalog: str | None = None) -> list[str | None]:
        primary = methods.get_primary_keys(call, PrimaryKeysRequest(db_name, "t", catalog)).primaryKeys
        request = ForeignKeysRequest(None, None, db_name, "u", catalog)
        # What refers to another table changes with that one, too, so it is not kept.
        found = methods.get_foreign_keys(call, request)
        foreign = (found.answer if isinstance(found, Uncacheable) else found).foreignKeys
        return [one.catName for one in (*primary, *foreign)]

    assert catalogs(CALL) == [None, None]
    assert catalogs(NEWER) == catalogs(CALL, "@hive#default") == catalogs(CALL, catalog="hive") == ["hive", "hive"]
    assert catalogs(CALL, catalog="spark") == []


def test_foreign_keys_by_their_parent_are_for_newer_callers(methods: Constraints) -> None:
    methods.add_foreign_key(
        CALL, AddForeignKeyRequest([SQLForeignKey("default", "t", "a", "default", "u", "a", 1, fk_name="f")])
    )
    request = ForeignKeysRequest("default", "t", None, None)
    assert isinstance(refusal(lambda: methods.get_foreign_keys(CALL, request)), MetaException)
    assert [one.fk_name for one in methods.get_foreign_keys(NEWER, request).answer.foreignKeys] == ["f"]
    nothing = ForeignKeysRequest("default", None, "default", None)
    assert isinstance(refusal(lambda: methods.get_foreign_keys(NEWER, nothing)), MetaException)


def test_the_kinds_of_newer_versions(methods: Constraints) -> None:
    methods.add_unique_constraint(CALL, AddUniqueConstraintRequest([SQLUniqueConstraint(*ON, "a", 1, "u")]))
    methods.add_not_null_constraint(CALL, AddNotNullConstraintRequest([SQLNotNullConstraint(*ON, "a", "n")]))
    methods.add_default_constraint(CALL, AddDefaultConstraintRequest([SQLDefaultConstraint(*ON, "a", "1", "d")]))
    methods.add_check_constraint(CALL, AddCheckConstraintRequest([SQLCheckConstraint(*ON, "a", "a > 1", "c")]))
    [unique] = methods.get_unique_constraints(CALL, UniqueConstraintsRequest(*ON)).uniqueConstraints
    [not_null] = methods.get_not_null_constraints(CALL, NotNullConstraintsRequest(*ON)).notNullConstraints
    [default] = methods.get_default_constraints(CALL, DefaultConstraintsRequest(*ON)).defaultConstraints
    [check] = methods.get_check_constraints(CALL, CheckConstraintsRequest(*ON)).checkConstraints
    assert unique == SQLUniqueConstraint(*ON, "a", 1, "u", False, False, False)
    assert not_null == SQLNotNullConstraint(*ON, "a", "n", False, False, False)
    assert default == SQLDefaultConstraint(*ON, "a", "1", "d", False, False, False)
    assert check == SQLCheckConstraint(*ON, "a", "a > 1", "c", False, False, False)
    every = methods.get_all_table_constraints(CALL, AllTableConstraintsRequest("default", "t", "hive"))
    found = every.allTableConstraints
    assert (found.uniqueConstraints, found.checkConstraints, found.primaryKeys) == ([unique], [check], [])
    methods.drop_constraint(CALL, DropConstraintRequest("default", "t", "U", "hive"))
    assert methods.get_unique_constraints(CALL, UniqueConstraintsRequest(*ON)).uniqueConstraints == []


def test_another_catalog_has_no_tables(methods: Constraints) -> None:
    request = AddUniqueConstraintRequest([SQLUniqueConstraint("spark", "default", "t", "a")])
    assert refusal(lambda: methods.add_unique_constraint(CALL, request)) == InvalidObjectException(
        "Parent table not found: t"
    )
    assert methods.get_unique_constraints(CALL, UniqueConstraintsRequest("x", "default", "t")).uniqueConstraints == []


def test_what_is_left_out_is_a_meta_exception(methods: Constraints) -> None:
    for name in dir(methods):
        if not name.startswith("_"):
            method = getattr(methods, name)
            assert isinstance(refusal(lambda method=method: method(CALL, None)), MetaException)
    assert isinstance(refusal(lambda: methods.add_primary_key(CALL, AddPrimaryKeyRequest(None))), MetaException)
    given = AddPrimaryKeyRequest([None])
    assert isinstance(refusal(lambda: methods.add_primary_key(CALL, given)), MetaException)
