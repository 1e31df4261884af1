import random
from datetime import date

import pytest

from hms_gateway.metastore.filters.hive_expression import (
    CHARACTERS_MAX,
    NODES_MAX,
    ColumnReference,
    Constant,
    Expression,
    Function,
    _decimal,
    _Unreadable,
    read_expression,
)
from tests.metastore.recorded_expressions import recorded

RECORDED = recorded()
EQUALS, GREATER = "GenericUDFOPEqual", "GenericUDFOPGreaterThan"


def test_everything_recorded_can_be_read() -> None:
    assert [one.sql for one in RECORDED if read_expression(one.data) is None] == []


def columns(expression: Expression) -> set[str]:
    match expression:
        case ColumnReference(name):
            return {name}
        case Function(_, children):
            return set().union(*map(columns, children))
        case _:
            return set()


@pytest.mark.slow
def test_all_its_columns_are_those_of_the_text() -> None:
    for one in RECORDED:
        found = read_expression(one.data)
        assert found is not None
        words = set(one.sql.replace("(", " ").replace(")", " ").split())
        assert columns(found) <= words


@pytest.mark.parametrize(
    ("sql", "expression"),
    [
        ("(ds = 'ab')", Function(EQUALS, (ColumnReference("ds", "string"), Constant("string", "ab")))),
        (
            "(9223372036854775807 = n)",
            Function(EQUALS, (Constant("bigint", 2**63 - 1), ColumnReference("n", "bigint"))),
        ),
        ("(d > 2024-01-02)", Function(GREATER, (ColumnReference("d", "date"), Constant("date", date(2024, 1, 2))))),
        ("(d = '2024-01-02')", Function(EQUALS, (ColumnReference("d", "date"), Constant("string", "2024-01-02")))),
        ("('a' = v)", Function(EQUALS, (Constant("varchar", "a"), ColumnReference("v", "varchar")))),
        ("(ds like 'a%')", Function("UDFLike", (ColumnReference("ds", "string"), Constant("string", "a%")))),
        (
            "(ds) IN ('ab', 'é')",
            Function(
                "GenericUDFIn", (ColumnReference("ds", "string"), Constant("string", "ab"), Constant("string", "é"))
            ),
        ),
    ],
)
def test_expressions_become_trees(sql: str, expression: Expression) -> None:
    data = next(one.data for one in RECORDED if one.sql == sql)
    assert read_expression(data) == expression


@pytest.mark.slow
def test_values_of_every_type_are_found() -> None:
    constants: set[tuple[str, object]] = set()

    def collect(expression: Expression) -> None:
        if isinstance(expression, Constant):
            constants.add((expression.type_name, expression.value))
        elif isinstance(expression, Function):
            for child in expression.children:
                collect(child)

    for one in RECORDED:
        found = read_expression(one.data)
        assert found is not None
        collect(found)
    assert {
        ("string", "😀"), ("string", ""), ("string", None), ("int", -3), ("bigint", 2**63 - 1), ("bigint", -(2**63)),
        ("double", 1e300), ("date", date(1969, 7, 20)), ("varchar", "xyz"), ("boolean", True),
    } <= constants  # fmt: skip
    assert {str(value) for kind, value in constants if kind == "decimal"} >= {"1.5", "-0.25", "12345678.9", "0"}


def test_a_cut_expression_is_none() -> None:
    data = min((one.data for one in RECORDED if " and " in one.sql), key=len)
    assert read_expression(data) is not None
    assert all(read_expression(data[:end]) is None for end in range(len(data)))
    assert read_expression(data + b"\x00") is None


def test_bytes_that_are_none_raise_nothing() -> None:
    source = random.Random(1)
    for one in RECORDED[:200]:
        data = bytearray(one.data)
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        read_expression(bytes(data))
        read_expression(source.randbytes(source.randint(0, 60)))


class Nested:
    """Writes AND of AND of …, each with the one below twice: as it is, and once more by its number."""

    def __init__(self) -> None:
        self._names: list[bytes] = []

    def written(self, depth: int) -> bytes:
        return b"\x01" + self._content(depth, 1)

    def _content(self, depth: int, level: int) -> bytes:
        """An AND on this level; before its child there are a function and a list for each level above."""
        children = b"\x00"
        named_list = self._class(b"java.util.ArrayLis\xf4")
        if depth:
            named_child = self._class(b"org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3")
            child = named_child + b"\x01" + self._content(depth - 1, level + 1)
            again = self._class(b"org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3")
            children = b"\x02" + child + again + bytes([2 * level + 2])
        function = self._class(b"org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPAn\xe4") + b"\x01\x00"
        return named_list + b"\x01" + children + function + b"\x00\x00"

    def _class(self, name: bytes) -> bytes:
        if name in self._names:
            return bytes([1, self._names.index(name)])
        self._names.append(name)
        return bytes([1, len(self._names) - 1]) + name


@pytest.mark.slow
def test_nested_expressions_are_read_to_a_size_and_a_depth() -> None:
    small = read_expression(Nested().written(3))
    assert isinstance(small, Function)
    assert small.children[0] == small.children[1] != small
    assert NODES_MAX < 2**15
    assert read_expression(Nested().written(15)) is None
    assert read_expression(Nested().written(40)) is None
    assert read_expression(b"\x01" * 100_000) is None


def repeated(text: bytes, count: int) -> bytes:
    """An AND of one constant, so many times: once as it is, then by its number."""
    marked = text[:-1] + bytes([text[-1] | 0x80])
    type_info = b"\x01\x02org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInf\xef\x01\x01strin\xe7"
    constant = b"\x01\x01org.apache.hadoop.hive.ql.plan.ExprNodeConstantDes\xe3\x01" + type_info + b"\x03\x01" + marked
    length = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
    children = b"\x01\x00java.util.ArrayLis\xf4\x01" + length + constant + b"\x01\x01\x04" * (count - 1)
    function = b"\x01\x03org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPAn\xe4\x01\x00"
    return b"\x01" + children + function + b"\x00\x00"


@pytest.mark.slow
def test_texts_that_are_referred_to_count_each_time() -> None:
    found = read_expression(repeated(b"a" * 1_000, 500))
    assert isinstance(found, Function)
    assert found.children == (Constant("string", "a" * 1_000),) * 500
    assert read_expression(repeated(b"a" * 1_000, CHARACTERS_MAX // 1_000 + 1)) is None
    assert read_expression(repeated(b"a" * 900_000, 15_000)) is None


def test_decimals_are_exact_and_of_hives_scales() -> None:
    whole = {"fast0": 1234567890123456, "fast1": 1234567890123456, "fast2": 123456, "fastSignum": -1}
    assert str(_decimal(**whole, fastScale=38)) == "-0.12345612345678901234561234567890123456"
    for scale in (-1, 39, 1_000_000, 2**55):
        with pytest.raises(_Unreadable):
            _decimal(**whole, fastScale=scale)
