"""What of a table filter the database can decide (semantics §2.6): which tables need not be looked at.

Parameters are one text there, and owners may be ordered otherwise than here, so the conditions let more tables through
than the filter selects, never fewer.
"""

import msgspec
from sqlalchemy import BigInteger, false, literal

from hms_gateway.metastore.filters.grammar import Operator
from hms_gateway.metastore.filters.table_filter import (
    TableAnd,
    TableComparison,
    TableField,
    TableFilter,
    TableLike,
    TableNode,
    TableOr,
)
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import TABLES
from hms_gateway.storage.sql.filter_sql import OPERATORS, Condition, all_of, any_of
from hms_gateway.storage.sql.texts import is_storable


def may_match(filter: TableFilter, dialect: Dialect) -> Condition | None:
    """A condition on TABLES that holds for all tables the filter selects; None where there is none."""
    return _Translator(dialect).node(filter.root)


class _Translator:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def node(self, node: TableNode) -> Condition | None:
        match node:
            case TableAnd(children):
                known = [condition for condition in map(self.node, children) if condition is not None]
                return all_of(known) if known else None
            case TableOr(children):
                conditions = [self.node(child) for child in children]
                known = [condition for condition in conditions if condition is not None]
                return any_of(known) if len(known) == len(conditions) else None
            case TableComparison(TableField.LAST_ACCESS, _, operator, operand):
                return OPERATORS[operator](TABLES.c.last_access_time, literal(operand, BigInteger))
            case TableComparison(TableField.OWNER, _, Operator.EQUAL, str() as owner):
                return TABLES.c.owner == owner if is_storable(owner) else false()
            case TableComparison(TableField.OWNER) | TableLike(TableField.OWNER):
                return TABLES.c.owner.is_not(None)
            case TableComparison() | TableLike():
                return self._has_parameter(node.parameter or "")

    def _has_parameter(self, name: str) -> Condition:
        """Its name occurs in the text of the parameters."""
        if not is_storable(name):
            return false()
        return self._dialect.position(TABLES.c.parameters, msgspec.json.encode(name).decode()) > 0
