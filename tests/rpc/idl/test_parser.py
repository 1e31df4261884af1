from pathlib import Path

import pytest

from hms_gateway.rpc.idl import (
    BaseType,
    EnumType,
    IdlError,
    ListType,
    MapType,
    Requiredness,
    StructKind,
    StructType,
    parse_file,
)


def parse(tmp_path: Path, text: str, name: str = "main.thrift"):
    path = tmp_path / name
    path.write_text(text)
    return parse_file(path)


def test_struct_fields_keep_ids_requiredness_and_defaults(tmp_path):
    idl = parse(
        tmp_path,
        """
        struct Point {            // trailing comment
          1: required i32 x,
          2: optional i64 y = -1; # the other comment
          5: string label = "a \\"b\\""  /* no separator */
          6: bool big = true
        }
        """,
    )
    x, y, label, big = idl.structs["Point"].fields
    assert (x.id, x.type, x.requiredness, x.default) == (1, BaseType.I32, Requiredness.REQUIRED, None)
    assert (y.id, y.requiredness, y.default) == (2, Requiredness.OPTIONAL, -1)
    assert (label.id, label.requiredness, label.default) == (5, Requiredness.DEFAULT, 'a "b"')
    assert big.default is True


def test_enum_members_count_on_from_the_last_given_value(tmp_path):
    idl = parse(tmp_path, "enum E { A, B = 5, C\n D }")
    assert idl.enums["E"].members == {"A": 0, "B": 5, "C": 6, "D": 7}


def test_types_may_be_declared_after_their_use_and_nest(tmp_path):
    idl = parse(
        tmp_path,
        """
        struct Tree { 1: list<Tree> children, 2: map<list<string>, Leaf> leaves, 3: Colour colour, 4: byte b }
        struct Leaf {}
        enum Colour { RED = 3 }
        """,
    )
    children, leaves, colour, byte = idl.structs["Tree"].fields
    assert children.type == ListType(StructType("Tree"))
    assert leaves.type == MapType(ListType(BaseType.STRING), StructType("Leaf"))
    assert colour.type == EnumType("Colour")
    assert byte.type is BaseType.I8


def test_enum_defaults_are_values_and_constants_are_read_over(tmp_path):
    idl = parse(
        tmp_path,
        """
        enum Colour { RED = 3 }
        const string KEY = "k",
        const map<string, list<i32>> NUMBERS = {"a": [1, 2], "b": []}
        struct S { 1: optional Colour colour = Colour.RED }
        """,
    )
    assert idl.structs["S"].fields[0].default == 3


def test_services_inherit_across_includes(tmp_path):
    (tmp_path / "base.thrift").write_text("service Base { oneway void bye() }")
    idl = parse(
        tmp_path,
        """
        include "base.thrift"
        exception Oops { 1: string message }
        service Main extends base.Base {
          list<string> names(1: string pattern = "*", 2: i16 max = -1) throws (1: Oops o1),
          void nothing()
        }
        """,
    )
    names, nothing, bye = idl.methods("Main")
    assert names.returns == ListType(BaseType.STRING)
    assert [(field.id, field.default) for field in names.arguments] == [(1, "*"), (2, -1)]
    assert names.throws[0].type == StructType("Oops")
    assert idl.structs["Oops"].kind is StructKind.EXCEPTION
    assert nothing.returns is None
    assert not nothing.oneway
    assert bye.oneway


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("struct S { 1: Missing x }", "main.thrift:1: expected a declared type, found `Missing`"),
        ("struct S {\n 1 string x }", "main.thrift:2: expected `:`, found `string`"),
        ("struct S { 1: string", "expected a name, found `the end`"),
        ("struct S { 1: string x } !", "main.thrift:1: expected a definition, found `!`"),
        ("// one\n/* two\n*/ const string S = 'open", "main.thrift:3: expected a value, found `'`"),
        ("struct S {\n  one: string x }", "main.thrift:2: expected a whole number, found `one`"),
        ("banana", "expected a definition, found `banana`"),
    ],
)
def test_bad_documents_are_named_by_file_and_line(tmp_path, text, complaint):
    with pytest.raises(IdlError) as caught:
        parse(tmp_path, text)
    assert complaint in str(caught.value)
