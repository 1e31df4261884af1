"""Columns of views: certain types only, and every name in full."""

import pytest

from hms_gateway.cli.hiveql.queries import check_query, read_view_query
from hms_gateway.cli.hiveql.shell_state import QualifiedName
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError

TABLES = {
    QualifiedName("default", "t"): {"a": "int", "b": "bigint", "s": "string", "p": "struct<x:int>"},
    QualifiedName("d", "u"): {"a": "int", "n": "decimal(10,2)"},
}


def columns(query):
    found = read_view_query(query, "default", TABLES.__getitem__)
    return [f"{column.name} {column.type}" for column in found.columns]


QUERIES = {
    "select a, b from t": ["a int", "b bigint"],
    "select * from d.u": ["a int", "n decimal(10,2)"],
    "select p.x, upper(s) up, a = 1 is_one from t": ["x int", "up string", "is_one boolean"],
    "select a, count(*) n from t group by a": ["a int", "n bigint"],
    "select cast(a + b as bigint) c from t join d.u using (a)": ["c bigint"],
    "select a from t join d.u using (a)": ["a int"],
    "with q as (select s from t) select s from q": ["s string"],
    "select a from t union all select a from d.u": ["a int"],
}


@pytest.mark.parametrize(("query", "expected"), QUERIES.items())
def test_columns_and_types(query, expected):
    assert columns(query) == expected


def test_the_expanded_text_names_tables_and_columns_in_full():
    found = read_view_query("select a from t where s = 'x'", "default", TABLES.__getitem__)
    assert found.expanded == "SELECT `t`.`a` AS `a` FROM `default`.`t` AS `t` WHERE `t`.`s` = 'x'"


def test_a_type_that_is_not_certain_has_to_be_said():
    with pytest.raises(CommandError, match=r"^the type of .* is not known; write CAST\(.* AS type\) AS name$"):
        columns("select a + n as c from t join d.u using (a)")


def test_a_column_that_is_not_there_is_pointed_at():
    with pytest.raises(CommandError, match="Column 'nothing' could not be resolved") as caught:
        columns("select nothing from t")
    assert caught.value.position == 7


def test_one_query_is_wanted():
    with pytest.raises(CommandError, match="expected one query"):
        check_query("select 1; select 2")
    with pytest.raises(CommandError, match="expected a query without INSERT"):
        columns("insert into t select 1")
