"""The table of rights fits the IDL: a line for each method, and paths that are there."""

import pytest

from hms_gateway.rpc.idl import ListType, SetType, StructType
from hms_gateway.rpc.idl.method_facts import Need, method_rights, read_facts
from hms_gateway.rpc.structs import IDL, METHODS

# Paths behind these verbs may lead to a list; `named` may lead to the keys of a map.
ACTIONS = {"see", "select", "insert", "delete", "create", "register", "alter", "drop"}
VERBS = {*ACTIONS, "admin", "lock", "move", "give", "grant", "revoke", "write", "own", "self", "principal"} | {
    *("owned", "acted", "shown", "replication", "about"),
}
ANSWERS = {
    *("databases", "database_objects", "table_names", "table_objects", "table_metas", "table_infos", "functions"),
    *("events", "locks", "blocking_locks", "leases", "compactions", "txn_infos", "roles", "role_members"),
    *("privileges", "foreign_keys", "constraints", "found_names", "table", "database_counts"),
}


def type_at(fields, path):
    kind = None
    for word in path.split("."):
        name, *lists = word.split("[]")
        kind = {field.name: field.type for field in fields}[name]
        for _ in lists:
            assert isinstance(kind, (ListType, SetType))
            kind = kind.element
        fields = IDL.structs[kind.name].fields if isinstance(kind, StructType) else ()
    return kind


def test_every_method_has_a_line_and_no_other():
    assert set(method_rights()) == set(METHODS)


def test_paths_lead_to_arguments():
    for name, method in METHODS.items():
        rights, arguments = method_rights()[name], method.definition.arguments
        for need in (*rights.needs, *rights.names):
            assert need.verb in VERBS, name
            for path in need.paths:
                for end in path.split(".."):
                    assert type_at(arguments, end) is not None, name
        assert not rights.answer or rights.answer[0] in ANSWERS, name
        for path in rights.answer[1:]:
            type_at(arguments, path)


def test_parts_of_a_line():
    rights = method_rights()
    assert rights["drop_table"].needs == (Need("drop", "table", ("dbname", "name")),)
    assert rights["heartbeat"].needs == (Need("own", "lock", ("ids.lockid",)), Need("own", "txn", ("ids.txnid",)))
    assert rights["getVersion"].needs == ()
    assert rights["show_locks"].needs == ()
    assert rights["show_locks"].names == (Need("about", "table", ("rqst.dbname", "rqst.tablename")),)
    assert rights["get_all_tables"].answer == ("table_names", "db_name")
    assert rights["lock"].refused
    assert not rights["get_table"].refused


@pytest.mark.parametrize(
    "needs", ["needs = about table db_name tbl_name", "needs = open\nneeds = see table db_name tbl_name", ""]
)
def test_a_line_is_open_by_that_word_only(needs):
    with pytest.raises(ValueError, match="get_table"):
        list(read_facts(f"# Head.\n\n[get_table]\n{needs}\n"))


@pytest.mark.parametrize("row", ["hidden = yes", "cached by = table", "changes = ", "needs"])
def test_a_row_that_is_not_known_is_refused(row):
    with pytest.raises(ValueError, match="get_table has an unknown row"):
        list(read_facts(f"# Head.\n\n[get_table]\n{row}\nneeds = open\n"))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            "[get_table]\nneeds = open\n\n[lock]\nneeds = open\n\n[get_table]\nneeds = admin\n",
            "get_table is there twice",
        ),
        ("[get_table]\nrates = pass\nneeds = open\nrates = pass\n", "get_table has two rows rates"),
    ],
)
def test_what_is_there_twice_is_refused(table, says):
    """Else the later one would count without a word, such as for the rights that a method needs."""
    with pytest.raises(ValueError, match=says):
        list(read_facts(f"# Head.\n\n{table}"))
