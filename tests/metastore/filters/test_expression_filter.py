import pytest

from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.expression_filter import ExpressionFilter, expression_filter
from hms_gateway.metastore.filters.grammar import And, Comparison, Or
from hms_gateway.metastore.filters.hive_expression import (
    ColumnReference,
    Constant,
    Expression,
    Function,
    read_expression,
)
from tests.metastore.recorded_expressions import KEYS, VALUES, Recorded, recorded
from tests.support.filter_evaluation import evaluate


def selected(expression: Expression) -> tuple[list[int], bool]:
    found = expression_filter(expression, KEYS)
    if isinstance(found.selected, bool):
        return list(range(len(VALUES))) if found.selected else [], found.is_exact
    bound = bind(found.selected, KEYS)
    return [number for number, values in enumerate(VALUES) if evaluate(bound, KEYS, values)], found.is_exact


def check(one: Recorded) -> bool:
    expression = read_expression(one.data)
    assert expression is not None
    found, is_exact = selected(expression)
    if is_exact:
        assert (found, one.is_unsure) == (one.selected, False), one.sql
    else:
        assert set(found) >= set(one.selected), one.sql
    return is_exact


@pytest.mark.slow
def test_expressions_select_what_hive_selects() -> None:
    exact = [check(one) for one in recorded()]
    assert sum(exact) > 0.8 * len(exact)


DS, HR = ColumnReference("ds", "string"), ColumnReference("HR", "int")
TEXT, NUMBER = Constant("string", "a"), Constant("int", 1)
IS_A, IS_ONE = Function("GenericUDFOPEqual", (DS, TEXT)), Function("GenericUDFOPEqual", (HR, NUMBER))
TRUE, FALSE, NULL = (Constant("boolean", value) for value in (True, False, None))
STRANGE = Function("GenericUDFOPEqual", (Function("UDFToDouble", (DS,)), Constant("double", 5.0)))


def both(*parts: Expression) -> Function:
    return Function("GenericUDFOPAnd", parts)


def either(*parts: Expression) -> Function:
    return Function("GenericUDFOPOr", parts)


def no(part: Expression) -> Function:
    return Function("GenericUDFOPNot", (part,))


@pytest.mark.parametrize(
    "expression",
    [
        STRANGE,
        NULL,
        no(NULL),
        Function("GenericUDFOPEqual", (DS, NUMBER)),
        Function("GenericUDFOPEqual", (HR, TEXT)),
        Function("GenericUDFOPEqual", (HR, Constant("double", 1.0))),
        Function("GenericUDFOPEqual", (DS, Constant("string", None))),
        Function("GenericUDFOPEqual", (ColumnReference("d", "date"), Constant("string", "tomorrow"))),
        Function("GenericUDFOPEqual", (ColumnReference("note", "string"), TEXT)),
        Function("GenericUDFOPEqual", (DS, ColumnReference("v", "varchar"))),
        Function("GenericUDFOPNull", (ColumnReference("note", "string"),)),
        Function("GenericUDFIn", (DS, TEXT, NULL)),
        Function("GenericUDFIn", (DS, TEXT, DS)),
        Function("GenericUDFIn", (DS,)),
        Function("GenericUDFBetween", (FALSE, DS, TEXT, NULL)),
        Function("UDFLike", (HR, TEXT)),
        Function("UDFLike", (DS, Constant("string", "a\\%"))),
        no(Function("UDFLike", (DS, TEXT))),
        either(IS_A, STRANGE),
        no(both(IS_A, STRANGE)),
    ],
)
def test_what_cannot_be_told_selects_everything_and_says_so(expression: Expression) -> None:
    assert expression_filter(expression, KEYS) == ExpressionFilter(True, is_exact=False)


@pytest.mark.parametrize("type_name", ["char(3)", "boolean", "float", "timestamp", "binary"])
def test_types_that_hive_compares_otherwise_are_left_to_it(type_name: str) -> None:
    key = ColumnReference("k", type_name)
    for expression in (Function("GenericUDFOPEqual", (key, TEXT)), Function("GenericUDFOPNull", (key,))):
        assert expression_filter(expression, [("k", type_name)]) == ExpressionFilter(True, is_exact=False)


def test_one_part_that_cannot_be_told_leaves_the_others_standing() -> None:
    alone = expression_filter(both(TRUE, IS_A), KEYS)
    assert alone.is_exact
    assert expression_filter(both(IS_A, STRANGE), KEYS) == ExpressionFilter(alone.selected, is_exact=False)
    assert expression_filter(no(either(no(IS_A), STRANGE)), KEYS) == ExpressionFilter(alone.selected, is_exact=False)


def test_constants_alone_need_no_condition() -> None:
    for expression in (
        TRUE,
        no(FALSE),
        either(FALSE, TRUE),
        either(STRANGE, TRUE),
        both(TRUE, TRUE),
        either(TRUE, IS_A),
    ):
        assert expression_filter(expression, KEYS) == ExpressionFilter(True)
    for expression in (FALSE, no(TRUE), both(TRUE, FALSE), both(STRANGE, FALSE), either(FALSE, FALSE)):
        assert expression_filter(expression, KEYS) == ExpressionFilter(False)
    assert expression_filter(both(TRUE, IS_A), KEYS) == expression_filter(either(FALSE, IS_A), KEYS)


def test_nested_connectives_of_a_kind_become_one() -> None:
    found = expression_filter(both(IS_A, both(IS_ONE, IS_A)), KEYS).selected
    assert isinstance(found, And)
    assert not any(isinstance(child, And) for child in found.children)
    found = expression_filter(either(IS_A, either(IS_ONE, IS_A)), KEYS).selected
    assert isinstance(found, Or)
    assert [type(child) for child in found.children] == [Comparison, Comparison, Comparison]


DEFAULT = Constant("string", "__HIVE_DEFAULT_PARTITION__")
IS_NOT_A = Function("GenericUDFOPNotEqual", (DS, TEXT))


@pytest.mark.parametrize(
    ("expression", "is_selected"),
    [
        (IS_NOT_A, True),
        (Function("GenericUDFOPLessThan", (DS, Constant("string", "b"))), True),
        (Function("GenericUDFOPEqual", (DS, DEFAULT)), True),
        (Function("GenericUDFIn", (DS, TEXT, DEFAULT)), True),
        (Function("GenericUDFBetween", (TRUE, DS, TEXT, TEXT)), True),
        (either(IS_ONE, IS_NOT_A), True),
        (both(IS_NOT_A, Function("GenericUDFOPNotNull", (HR,))), False),
        (no(IS_A), False),
        (Function("UDFLike", (DS, Constant("string", "%"))), False),
        (both(IS_NOT_A, Function("GenericUDFOPGreaterThan", (HR, NUMBER))), False),
        (Function("GenericUDFOPNotEqual", (DS, Constant("string", "it's"))), False),
        (Function("GenericUDFIn", (DS, TEXT, Constant("string", ""))), False),
        (Function("GenericUDFOPEqual", (DS, Constant("string", ""))), False),
        (Function("GenericUDFOPGreaterThan", (DS, Constant("string", ""))), True),
        (Function("GenericUDFOPNotEqual", (ColumnReference("v", "varchar(10)"), TEXT)), False),
    ],
)
def test_what_is_a_filter_treats_the_default_partition_as_filters_do(expression: Expression, is_selected: bool) -> None:
    """The metastore of 2.3.10 answers so: text keys have its name as value, unless Hive has to evaluate."""
    number = next(
        n for n, values in enumerate(VALUES) if values[0] == "__HIVE_DEFAULT_PARTITION__" and values[1] == "-3"
    )
    found, is_exact = selected(expression)
    assert is_exact
    assert (number in found) is is_selected
