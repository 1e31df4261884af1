"""Constraints as the service keeps them, with the texts of semantics §2.15."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.catalog.constraints import ConstraintKind, Constraints
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.rpc.call import Call, Uncacheable
from hms_gateway.rpc.structs import (
    AddPrimaryKeyRequest,
    AllTableConstraintsRequest,
    CheckConstraintsRequest,
    Database,
    DefaultConstraintsRequest,
    DropConstraintRequest,
    EnvironmentContext,
    ForeignKeysRequest,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    PrimaryKeysRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
    UniqueConstraintsRequest,
)
from tests.metastore.statistics_world import refusal
from tests.support.catalog import Catalog, columns, new_table, open_catalog

CALL = Call("tester")
T = TableName("default", "t")
U = TableName("default", "u")
KEEP = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
OF_THREE = {
    SQLUniqueConstraint: ("uk_name", ConstraintKind.UNIQUE),
    SQLNotNullConstraint: ("nn_name", ConstraintKind.NOT_NULL),
    SQLDefaultConstraint: ("dc_name", ConstraintKind.DEFAULT),
    SQLCheckConstraint: ("dc_name", ConstraintKind.CHECK),
}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as opened:
        opened.tables.create(new_table())
        opened.tables.create(new_table("u", keys=columns("p int")))
        yield opened


class Calls:
    """The methods on constraints by short names; constraints of any kinds go with one call."""

    def __init__(self, catalog: Catalog) -> None:
        self.methods = Constraints(catalog.store, catalog.event_maker, catalog.clock)

    def add(self, columns: Any) -> None:
        self.methods.add_primary_key(CALL, AddPrimaryKeyRequest(columns))

    def drop(self, table: TableName, name: str | None) -> None:
        self.methods.drop_constraint(CALL, DropConstraintRequest(table.db_name, table.tbl_name, name))

    def of_table(self, table: TableName, kind: ConstraintKind) -> list[Any]:
        names = {"db_name": table.db_name, "tbl_name": table.tbl_name}
        if kind is ConstraintKind.PRIMARY_KEY:
            return self.methods.get_primary_keys(CALL, PrimaryKeysRequest(**names)).primaryKeys or []
        request, response = _READS[kind]
        method = getattr(self.methods, f"get_{kind.name.lower()}_constraints")
        found: list[Any] = getattr(method(CALL, request(**names)), response)
        return found

    def foreign_keys(self, parent: TableName, child: TableName) -> list[Any]:
        request = ForeignKeysRequest(
            parent.db_name,
            parent.tbl_name,
            child.db_name,
            child.tbl_name,
            catName=None if child.db_name and child.tbl_name else "hive",
        )
        found: Any = self.methods.get_foreign_keys(CALL, request)
        return (found.answer if isinstance(found, Uncacheable) else found).foreignKeys

    def all_of_table(self, table: TableName) -> Any:
        found: Any = self.methods.get_all_table_constraints(
            CALL, AllTableConstraintsRequest(table.db_name, table.tbl_name)
        )
        return (found.answer if isinstance(found, Uncacheable) else found).allTableConstraints


_READS: dict[ConstraintKind, tuple[Any, str]] = {
    ConstraintKind.UNIQUE: (UniqueConstraintsRequest, "uniqueConstraints"),
    ConstraintKind.NOT_NULL: (NotNullConstraintsRequest, "notNullConstraints"),
    ConstraintKind.DEFAULT: (DefaultConstraintsRequest, "defaultConstraints"),
    ConstraintKind.CHECK: (CheckConstraintsRequest, "checkConstraints"),
}


@pytest.fixture
def service(catalog: Catalog) -> Calls:
    return Calls(catalog)


def primary(column: str | None, name: str | None = None, sequence: int | None = 1, table: str = "t") -> SQLPrimaryKey:
    return SQLPrimaryKey("default", table, column, sequence, name)


def foreign(child: str = "a", parent: str = "a", name: str | None = None, **fields: Any) -> SQLForeignKey:
    return SQLForeignKey("default", "t", parent, "default", "u", child, 1, fk_name=name, **fields)


def keys(service: Calls, table: TableName = T) -> list[tuple[Any, ...]]:
    found = service.of_table(table, ConstraintKind.PRIMARY_KEY)
    return [(one.column_name, one.key_seq, one.pk_name) for one in found]


def referring(service: Calls, parent: TableName = T, child: TableName = U) -> list[str]:
    return [one.fk_name for one in service.foreign_keys(parent, child)]


def test_a_primary_key_comes_back_whole(service: Calls) -> None:
    service.add([primary("A", "PK1", 1), primary("b", "pk1", 2)])
    assert service.of_table(TableName("DEFAULT", " T"), ConstraintKind.PRIMARY_KEY) == [
        SQLPrimaryKey("default", "t", "a", 1, "PK1", False, False, False),
        SQLPrimaryKey("default", "t", "b", 2, "PK1", False, False, False),
    ]


def test_a_name_reads_as_it_was_sent_and_is_found_however_it_is_spelled(service: Calls) -> None:
    service.add([primary("a", "The_Key"), foreign(name="To_T")])
    assert ([name for _, _, name in keys(service)], referring(service)) == (["The_Key"], ["To_T"])
    error = InvalidObjectException("Constraint name already exists: TO_t")
    assert refusal(lambda: service.add([foreign("b", "b", name="TO_t")])) == error
    service.drop(U, "to_T")
    service.drop(T, "the_key")
    assert keys(service) == referring(service) == []


def test_a_foreign_key_names_the_key_it_refers_to(service: Calls) -> None:
    service.add([foreign(name="f1"), foreign(name="f2", pk_name="sent")])
    assert [one.pk_name for one in service.foreign_keys(T, U)] == [None, "sent"]
    service.add([primary("a", "The_Key")])
    assert [one.pk_name for one in service.foreign_keys(T, U)] == ["The_Key", "The_Key"]
    assert [one.pk_name for one in service.foreign_keys(TableName(None, None), U)] == ["The_Key", "The_Key"]


def test_flags_are_kept(service: Calls) -> None:
    service.add([SQLPrimaryKey("default", "t", "a", 1, "k", True, False, True)])
    [one] = service.of_table(T, ConstraintKind.PRIMARY_KEY)
    assert (one.enable_cstr, one.validate_cstr, one.rely_cstr) == (True, False, True)


def test_a_key_without_name_gets_one(service: Calls) -> None:
    service.add([primary("a"), primary("b", sequence=2)])
    [(_, _, first), (_, _, second)] = keys(service)
    assert first == second
    prefix, digest, milliseconds, number = first.split("_")
    assert (prefix, milliseconds, number) == ("pk", "1700000000000", "0")
    assert 0 <= int(digest) < 2**31


def test_only_one_primary_key(service: Calls) -> None:
    service.add([primary("a")])
    error = MetaException(" Primary key already exists for: default.t")
    assert refusal(lambda: service.add([primary("b")])) == error
    assert refusal(lambda: service.add([primary("b", table="u"), primary("b", table="t")])) == error
    assert keys(service, U) == []


@pytest.mark.parametrize("name", ["missing", "", "x\0y", "\udfff", "täble", "x" * 5000])
def test_tables_that_are_not_there(service: Calls, name: str) -> None:
    error = InvalidObjectException(f"Parent table not found: {name}")
    assert refusal(lambda: service.add([primary("a", table=name)])) == error
    for struct_class in OF_THREE:
        given = struct_class(table_db="default", table_name=name, column_name="a")
        assert refusal(lambda given=given: service.add([given])) == error
    key = foreign()
    key.pktable_name = name
    assert refusal(lambda: service.add([key])) == error
    key = foreign()
    key.fktable_name = name
    assert refusal(lambda: service.add([key])) == InvalidObjectException(f"Child table not found: {name}")
    table = TableName("default", name)
    assert keys(service, table) == referring(service, parent=table) == referring(service, child=table) == []
    assert service.all_of_table(table).primaryKeys == []
    assert refusal(lambda: service.drop(table, "k")) == NoSuchObjectException(
        f"The constraint: k does not exist for the associated table: default.{name}"
    )


@pytest.mark.parametrize("name", ["c", "", "a\0b", "\udfff", "ä", "x" * 5000])
def test_columns_that_are_not_there(service: Calls, name: str) -> None:
    error = InvalidObjectException(f"Parent column not found: {name}")
    assert refusal(lambda: service.add([primary(name)])) == error
    assert refusal(lambda: service.add([foreign(parent=name)])) == error
    assert refusal(lambda: service.add([foreign(child=name)])) == InvalidObjectException(
        f"Child column not found: {name}"
    )
    for struct_class in OF_THREE:
        given = struct_class(table_db="default", table_name="t", column_name=name)
        assert refusal(lambda given=given: service.add([given])) == error


def test_what_is_left_out(service: Calls) -> None:
    for given in (None, [None], [primary(None)], [SQLPrimaryKey("default", None, "a")], [SQLPrimaryKey()]):
        assert isinstance(refusal(lambda given=given: service.add(given)), MetaException)
    assert isinstance(refusal(lambda: service.drop(T, None)), MetaException)
    assert isinstance(refusal(lambda: service.of_table(TableName(None, "t"), ConstraintKind.CHECK)), MetaException)
    assert isinstance(
        refusal(lambda: service.foreign_keys(TableName(None, None), TableName(None, None))), MetaException
    )
    service.add([])


@pytest.mark.parametrize("name", ["x\0y", "\udfff", "x" * 5000])
def test_names_no_database_can_keep(service: Calls, name: str) -> None:
    assert isinstance(refusal(lambda: service.add([primary("a", name)])), MetaException)
    assert isinstance(refusal(lambda: service.drop(T, name)), NoSuchObjectException)
    assert keys(service) == []


def test_a_key_may_be_on_a_partition_key(service: Calls) -> None:
    service.add([primary("p", "k", table="u")])
    assert keys(service, U) == [("p", 1, "k")]


def test_foreign_keys_by_either_end(service: Calls) -> None:
    service.add([foreign("a", "b", "Fk1", pk_name="any", update_rule=1, enable_cstr=True)])
    anything = TableName(None, None)
    assert referring(service) == referring(service, anything, U) == referring(service, T, anything) == ["Fk1"]
    assert referring(service, U, T) == referring(service, U, anything) == []
    assert service.foreign_keys(T, U) == [
        SQLForeignKey(
            *("default", "t", "b", "default", "u", "a", 1, 1, 0, "Fk1", "any", True, False, False),
        )
    ]


def test_foreign_keys_where_only_a_part_of_a_name_is_said(service: Calls) -> None:
    service.add([foreign("a", "b", "Fk1")])
    assert referring(service, TableName(None, "T"), U) == referring(service, T, TableName(None, "u")) == ["Fk1"]
    assert referring(service, TableName(None, "nosuch"), U) == referring(service, TableName("nosuch", None), U) == []


def test_foreign_keys_of_several_columns_and_without_names(service: Calls) -> None:
    second = foreign("b", "b")
    second.key_seq = 2
    service.add([foreign(), second, foreign()])
    found = service.foreign_keys(T, U)
    assert [one.key_seq for one in found] == [1, 2, 1]
    assert found[0].fk_name == found[1].fk_name != found[2].fk_name
    assert found[0].fk_name.startswith("fk_")


@pytest.mark.parametrize("struct_class", OF_THREE)
def test_the_kinds_of_newer_versions(service: Calls, struct_class: type[Struct]) -> None:
    name_field, kind = OF_THREE[struct_class]
    on = {"table_db": "DEFAULT", "table_name": "T"}
    service.add([struct_class(**on, column_name="a"), struct_class(**on, column_name="B", **{name_field: "Named"})])
    generated, named = service.of_table(T, kind)
    assert getattr(generated, name_field).startswith({"CHECK": "cc_", "DEFAULT": "dc_"}.get(kind.name, name_field[:3]))
    assert (getattr(named, name_field), named.table_db, named.table_name) == ("Named", "default", "t")
    assert (generated.column_name, named.column_name) == ("a", "b")
    assert (named.enable_cstr, named.validate_cstr, named.rely_cstr) == (False, False, False)
    error = InvalidObjectException("Constraint name already exists: NAMED")
    assert refusal(lambda: service.add([struct_class(**on, column_name="a", **{name_field: "NAMED"})])) == error


def test_values_and_expressions_are_kept_as_they_are(service: Calls) -> None:
    text = "a > 'x\0\n' AND ä"
    service.add([SQLDefaultConstraint("hive", "default", "t", "a", text)])
    service.add([SQLCheckConstraint("hive", "default", "t", None, text)])
    [default] = service.of_table(T, ConstraintKind.DEFAULT)
    [check] = service.of_table(T, ConstraintKind.CHECK)
    assert (default.default_value, check.check_expression, check.column_name) == (text, text, None)


def test_everything_about_a_table(service: Calls) -> None:
    service.add([primary("a", "k")])
    service.add([foreign(name="f")])
    service.add([SQLNotNullConstraint("hive", "default", "t", "a", "n")])
    found = service.all_of_table(T)
    assert [one.pk_name for one in found.primaryKeys] == ["k"]
    assert [one.nn_name for one in found.notNullConstraints] == ["n"]
    assert found.foreignKeys == found.uniqueConstraints == found.defaultConstraints == found.checkConstraints == []
    assert [one.fk_name for one in service.all_of_table(U).foreignKeys] == ["f"]


def test_dropping_by_name_in_any_case(service: Calls) -> None:
    service.add([primary("a", "k"), primary("b", "k", 2)])
    service.add([foreign(name="f1")])
    service.add([foreign(name="f2")])
    service.drop(TableName("DEFAULT", "T"), " K ")
    assert keys(service) == []
    service.drop(U, "f1")
    service.drop(T, "f2")
    assert referring(service) == []
    assert refusal(lambda: service.drop(T, "K")) == NoSuchObjectException(
        "The constraint: K does not exist for the associated table: default.t"
    )


def test_dropping_a_key_leaves_what_refers_to_it(service: Calls) -> None:
    service.add([primary("a", "k")])
    service.add([foreign(name="f", pk_name="k")])
    service.drop(T, "k")
    assert [one.pk_name for one in service.foreign_keys(T, U)] == ["k"]


def test_a_rename_takes_them_along(catalog: Catalog, service: Calls) -> None:
    service.add([primary("a", "k")])
    service.add([foreign(name="f")])
    catalog.alterations.alter(T, new_table("renamed", location=""))
    renamed = TableName("default", "renamed")
    assert keys(service, renamed) == [("a", 1, "k")]
    assert [one.pktable_name for one in service.foreign_keys(renamed, U)] == ["renamed"]
    assert keys(service) == []


def test_a_column_that_goes_takes_its_constraints_along(catalog: Catalog, service: Calls) -> None:
    service.add([primary("a", "k"), primary("b", "k", 2)])
    service.add([SQLNotNullConstraint("hive", "default", "t", "a", "n")])
    service.add([SQLCheckConstraint("hive", "default", "t", None, "1 = 1", "c")])
    service.add([foreign("a", "b", "f")])
    catalog.alterations.alter(T, new_table(cols=columns("a int")), KEEP)
    found = service.all_of_table(T)
    assert found.primaryKeys == []
    assert [one.nn_name for one in found.notNullConstraints] == ["n"]
    assert [one.dc_name for one in found.checkConstraints] == ["c"]
    assert referring(service) == []


def test_constraints_on_partition_keys_survive_changes_of_columns(catalog: Catalog, service: Calls) -> None:
    service.add([primary("p", "k", table="u")])
    catalog.alterations.alter(U, new_table("u", cols=columns("x int"), keys=columns("p int")), KEEP)
    assert keys(service, U) == [("p", 1, "k")]


def test_a_dropped_table_takes_its_constraints_and_those_that_refer_to_it(catalog: Catalog, service: Calls) -> None:
    service.add([primary("a", "k")])
    service.add([foreign(name="f")])
    catalog.tables.drop(T, False)
    assert referring(service, TableName(None, None), U) == []
    catalog.tables.create(new_table())
    assert keys(service) == []


def test_a_dropped_database_takes_foreign_keys_of_others_along(catalog: Catalog, service: Calls) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table("t", "d"))
    service.add([SQLForeignKey("d", "t", "a", "default", "u", "a", 1, fk_name="f")])
    catalog.databases.drop("d", True, True)
    assert referring(service, TableName(None, None), U) == []


def test_constraints_come_with_a_new_table(catalog: Catalog, service: Calls) -> None:
    constraints = [
        SQLForeignKey(None, None, "a", None, None, "a", 1, fk_name="f"),
        SQLPrimaryKey(column_name="a"),
        SQLNotNullConstraint(column_name="b"),
    ]
    constraints[0].pktable_db, constraints[0].pktable_name = "default", "t"
    catalog.tables.create(new_table("v"), constraints=constraints)
    found = service.all_of_table(TableName("default", "v"))
    assert [len(found.primaryKeys), len(found.foreignKeys), len(found.notNullConstraints)] == [1, 1, 1]


def test_a_wrong_constraint_prevents_the_table(catalog: Catalog) -> None:
    wrong = [SQLPrimaryKey(column_name="nope")]
    error = refusal(lambda: catalog.tables.create(new_table("v"), constraints=wrong))
    assert error == InvalidObjectException("Parent column not found: nope")
    assert catalog.tables.names("default", "v") == []
    assert not (catalog.warehouse / "v").exists()


def test_events(catalog: Catalog, service: Calls) -> None:
    service.add([primary("a", "k"), primary("b", "k", 2)])
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("ADD_PRIMARYKEY", "default", "t")
    assert [json.loads(text)["3"]["str"] for text in message["primaryKeyListJson"]] == ["a", "b"]
    service.add([foreign(name="f")])
    kind, _, table_name, message = catalog.last_event()
    assert (kind, table_name, len(message["foreignKeyListJson"])) == ("ADD_FOREIGNKEY", "u", 1)
    service.drop(T, "K")
    kind, _, table_name, message = catalog.last_event()
    assert (kind, table_name, message["constraintName"]) == ("DROP_CONSTRAINT", "t", "k")
