"""Queries in statements: whether they parse, and which columns a view over them has.

sqlglot reads them. It is loaded when a statement has a query in it, and not before.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hms_gateway.cli.hiveql.shell_state import QualifiedName
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
from hms_gateway.rpc.structs import FieldSchema

if TYPE_CHECKING:
    from sqlglot import exp

_DIALECT: Final = "hive"
_PLACE: Final = re.compile(r"Line: (\d+), Col: (\d+)")
# Names and types of a table's columns; raises what the metastore does when it is not there.
ColumnsOf = Callable[[QualifiedName], Mapping[str, str]]


class ViewQuery(NamedTuple):
    """`expanded` names every column and table in full, so that it means the same in any database."""

    columns: Sequence[FieldSchema]
    expanded: str


def check_query(text: str, begin: int = 0) -> None:
    """Raises CommandError, with its place in `text`, when what begins there is not a query or other statement."""
    _parsed(text, begin)


def read_view_query(query: str, database: str, columns_of: ColumnsOf) -> ViewQuery:
    """The columns that a query gives, with their types as far as they can be known. Raises CommandError."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.annotate_types import annotate_types
    from sqlglot.optimizer.qualify import qualify

    tree = _parsed(query, 0)
    if not isinstance(tree, exp.Query):
        raise CommandError("expected a query without INSERT")
    schema: dict[str, dict[str, Mapping[str, str]]] = {}
    for name in _tables(tree, database):
        schema.setdefault(name.db_name, {})[name.table_name] = columns_of(name)
    try:
        qualified = qualify(tree, schema=schema, dialect=_DIALECT, db=database)
        typed: Any = annotate_types(qualified, schema=schema, dialect=_DIALECT)
    except SqlglotError as error:
        raise _unresolved(query, str(error)) from error
    return ViewQuery([_column(each) for each in typed.selects], typed.sql(_DIALECT))


def _unresolved(query: str, said: str) -> CommandError:
    """The error at the place that sqlglot names, which is the end of a word."""
    text = said.split("\n")[0]
    found = _PLACE.search(text)
    if found is None:
        return CommandError(text)
    name = re.search(r"'(.*?)'", text)
    end = _position(query, int(found[1]), int(found[2]))
    return CommandError(text[: found.start()].rstrip(". "), max(0, end - (len(name[1]) if name else 1)))


def _parsed(text: str, begin: int) -> "exp.Expression":
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    # Blanks in front keep the places of what follows.
    padded = "".join("\n" if one == "\n" else " " for one in text[:begin]) + text[begin:]
    try:
        found: list[Any] = [each for each in sqlglot.parse(padded, read=_DIALECT) if each is not None]
    except ParseError as error:
        first = error.errors[0]
        highlight = first.get("highlight") or ""
        position = _position(padded, first.get("line") or 1, (first.get("col") or 1) - len(highlight))
        raise CommandError(_expected(first.get("description") or str(error), highlight), position) from error
    except TokenError as error:
        raise CommandError("expected the end of a string or name that is in quotes", len(text.rstrip())) from error
    if len(found) != 1:
        raise CommandError("expected one query", begin)
    tree: exp.Expression = found[0]
    return tree


def _expected(description: str, highlight: str) -> str:
    """In the words of the other statements."""
    if description.startswith("Expecting "):
        return f"expected {description.removeprefix('Expecting ')} after {highlight}"
    if description.startswith("Required keyword"):
        return f"expected something after {highlight}"
    return f"expected another part of a query, found {highlight}"


def _position(text: str, line: int, column: int) -> int:
    begins = [0, *(at + 1 for at, one in enumerate(text) if one == "\n")]
    return min(len(text), begins[min(line, len(begins)) - 1] + max(0, column))


def _tables(tree: "exp.Expression", database: str) -> list[QualifiedName]:
    """Tables that are not named by WITH."""
    from sqlglot import exp

    own = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    names = [
        QualifiedName((each.db or database).lower(), each.name.lower())
        for each in tree.find_all(exp.Table)
        if each.db or each.name.lower() not in own
    ]
    return list(dict.fromkeys(names))


def _column(selected: Any) -> FieldSchema:
    """Raises CommandError when the type is not certain: a wrong one would break the view in engines."""
    from sqlglot import exp

    inner = selected.unalias()
    if isinstance(inner, exp.Coalesce) and isinstance(inner.this, exp.Column):
        # The column of a join with USING.
        inner = inner.this
    kind = inner.type
    is_certain = isinstance(inner, exp.Column | exp.Dot | exp.Cast | exp.Count) or (
        kind is not None and kind.this in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR, exp.DataType.Type.BOOLEAN)
    )
    if not is_certain or kind is None or kind.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        shown = inner.sql(_DIALECT)
        raise CommandError(f"the type of {shown} is not known; write CAST({shown} AS type) AS name")
    name = selected.alias_or_name.lower()
    return FieldSchema(name=name, type=kind.sql(_DIALECT).lower().replace(", ", ",").replace(": ", ":"))
