"""Patterns, lists of texts and partition filters as SQL conditions."""

from collections.abc import Callable, Container, Iterable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Text,
    and_,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    union_all,
)
from sqlalchemy.sql.elements import Grouping, UnaryExpression
from sqlalchemy.sql.operators import custom_op

from hms_gateway.metastore.filters.binding import (
    BoundAnd,
    BoundBetween,
    BoundComparison,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundMultiIn,
    BoundNode,
    BoundOr,
    null_key,
)
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
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.metastore.vocabulary.patterns import Pattern
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import FURTHER_KEYS, KEY_COLUMN_COUNT, KEY_COLUMNS, PARTITIONS, TABLES
from hms_gateway.storage.sql.repository import check_text, is_storable

# SQLite takes 500 queries in one statement.
ALTERNATIVES_MAX: Final = 400

_OF_ONE_KEY: Final = (BoundComparison, BoundLike, BoundBetween, BoundIn)
_LOWER: Final = frozenset({Operator.GREATER, Operator.GREATER_OR_EQUAL})
_UPPER: Final = frozenset({Operator.LESS, Operator.LESS_OR_EQUAL})


def leading_alternatives(root: BoundNode) -> BoundOr | BoundMultiIn | None:
    """The OR in a filter's conjunction that had best be asked for by alternatives, None when none need be."""
    conjuncts = _conjuncts(root)
    if _is_narrow_together([one for one in conjuncts if not isinstance(one, BoundOr | BoundMultiIn)]):
        return None
    return next((one for one in conjuncts if isinstance(one, BoundOr | BoundMultiIn) and _is_narrow(one)), None)


def narrow_keys(root: BoundNode) -> dict[int, list[BoundNode]]:
    """The keys whose index could find what a conjunction selects, each with the conditions its index helps with.

    An index continues with the next key, so that one equality behind another helps, too, and needs no index of its own.
    """
    conjuncts = [one for one in _conjuncts(root) if isinstance(one, _OF_ONE_KEY)]
    conditions: dict[int, list[BoundNode]] = {}
    for one in conjuncts:
        conditions.setdefault(one.position, []).append(one)
    found: dict[int, list[BoundNode]] = {}
    for position, of_one in sorted(conditions.items()):
        if is_equality(of_one) and is_equality(found.get(position - 1, [])):
            found[position - 1] += of_one
        elif _is_narrow_together(of_one):
            found[position] = list(of_one)
    return found


def is_equality(conditions: Sequence[BoundNode]) -> bool:
    """Tell whether one of the conditions names the values of its key."""
    return any(
        one.operator is Operator.EQUAL
        if isinstance(one, BoundComparison)
        else isinstance(one, BoundIn) and not one.negated
        for one in conditions
    )


def _conjuncts(root: BoundNode) -> Sequence[BoundNode]:
    return root.children if isinstance(root, BoundAnd) else (root,)


def _is_narrow_together(conjuncts: Sequence[BoundNode]) -> bool:
    """A key that is bounded from both sides counts, too."""
    compared = [one for one in conjuncts if isinstance(one, BoundComparison)]
    bounded_below = {one.position for one in compared if one.operator in _LOWER}
    bounded_above = {one.position for one in compared if one.operator in _UPPER}
    return any(map(_has_index, bounded_below & bounded_above)) or any(map(_is_narrow, conjuncts))


def _is_narrow(node: BoundNode) -> bool:
    match node:
        case BoundAnd(children):
            return _is_narrow_together(children)
        case BoundOr(children):
            return len(children) <= ALTERNATIVES_MAX and all(map(_is_narrow, children))
        case BoundComparison(position, operator, _):
            return operator is Operator.EQUAL and _has_index(position)
        case BoundLike(position, pattern):
            return _has_index(position) and all(one and isinstance(one[0], str) for one in pattern.alternatives)
        case BoundBetween(position) | BoundIn(position):
            return not node.negated and _has_index(position)
        case BoundIsNull():
            return False
        case BoundMultiIn(positions, rows, negated):
            return not negated and len(rows) <= ALTERNATIVES_MAX and any(map(_has_index, positions))


def _has_index(position: int) -> bool:
    return position < KEY_COLUMN_COUNT


Condition: TypeAlias = ColumnElement[bool]

# How keys of databases begin that are not of the default catalog.
_OTHER_CATALOGS: Final = "@"

CONDITIONS_MAX: Final = 5_000  # making and planning the statement takes a second
_LIKE_CHARACTERS_MAX: Final = 10_000  # SQLite refuses longer patterns than 50,000 bytes
_GROUP: Final = 100  # SQLite counts a chain of ORs as deep as it is long and stops at 1,000

OPERATORS: Final[dict[Operator, Callable[[Any, Any], Condition]]] = {
    Operator.EQUAL: eq,
    Operator.NOT_EQUAL: ne,
    Operator.LESS: lt,
    Operator.LESS_OR_EQUAL: le,
    Operator.GREATER: gt,
    Operator.GREATER_OR_EQUAL: ge,
}


def is_among(column: ColumnElement[Any], texts: Iterable[str], dialect: Dialect) -> Condition:
    """`column IN (texts)` for any number of texts, as one bound value. Texts no database can hold match nothing."""
    return dialect.is_in_list(column, None, dialect.bound_list(text for text in texts if is_storable(text)))


def has_id_among(column: ColumnElement[Any], ids: Iterable[int], dialect: Dialect) -> Condition:
    """`column IN (ids)` for any number of ids, as one bound value."""
    return dialect.is_in_list(column, None, dialect.bound_list(ids))


def have_names(table_id: int, names: Sequence[str], dialect: Dialect) -> Condition:
    """The condition for the PARTITIONS of a table with any number of names."""
    of_table = PARTITIONS.c.table_id == table_id
    wanted = [name for name in names if is_storable(name)]
    if len(names) == 1:
        return and_(of_table, PARTITIONS.c.part_name == wanted[0]) if wanted else false()
    return dialect.has_name(PARTITIONS.c.partition_id, PARTITIONS.c.part_name, wanted, of_table)


def matches_pattern(column: ColumnElement[Any], pattern: Pattern | None, dialect: Dialect) -> Condition | None:
    """A name pattern or LIKE over a column of binary collation; None when every text matches, as without a pattern.

    Patterns that fold case are for columns that hold lower-cased names.
    """
    if pattern is None or pattern.matches_everything:
        return None
    texts, others = pattern.literals, pattern.without_literals
    conditions = [is_among(column, texts, dialect)] if texts else []
    conditions += [dialect.like(column, text) for text in dialect.alternatives(others) if _is_usable(text)]
    return any_of(conditions)


def of_default_catalog(key: ColumnElement[Any]) -> Condition:
    """The condition for keys of databases in the default catalog."""
    return func.substr(key, 1, len(_OTHER_CATALOGS)) != _OTHER_CATALOGS


def in_catalog(
    key: ColumnElement[Any], prefix: str | None, pattern: Pattern | None, dialect: Dialect
) -> list[Condition]:
    """The conditions for keys of databases: those of all catalogs, or of the one whose keys begin with `prefix`."""
    conditions = []
    if prefix is not None and not is_storable(prefix):
        return [false()]
    # Not every column of keys is compared byte by byte, so they are not taken from a range.
    if prefix:
        conditions.append(func.substr(key, 1, len(prefix)) == prefix)
    elif prefix is not None:
        conditions.append(of_default_catalog(key))
    named = matches_pattern(key, None if pattern is None else pattern.after(prefix or ""), dialect)
    return conditions if named is None else [*conditions, named]


def selects(bound: BoundNode, table_id: int, dialect: Dialect, unindexed_keys: Container[int] = ()) -> list[Condition]:
    """The conditions for the PARTITIONS of a table that a filter selects.

    Indexes of `unindexed_keys` are not used. Raises StoreError when there are too many conditions, UnstorableText for
    an operand no database can take.
    """
    of_table = PARTITIONS.c.table_id == table_id
    translator = _Translator(dialect, unindexed_keys)
    leading = None if dialect.has_figures else leading_alternatives(bound)
    if leading is None:
        return [of_table, translator.node(bound)]
    each = [
        select(PARTITIONS.c.partition_id).where(of_table, condition).correlate(None)
        for condition in translator.alternatives(leading)
    ]
    rest = [one for one in (bound.children if isinstance(bound, BoundAnd) else ()) if one is not leading]
    found = PARTITIONS.c.partition_id.in_(union_all(*each))
    return [unindexed(PARTITIONS.c.table_id) == table_id, found, *map(translator.node, rest)]


def hold(
    conditions: Sequence[BoundNode], table_id: int, dialect: Dialect, unindexed_keys: Container[int] = ()
) -> list[Condition]:
    """The conditions for the PARTITIONS of a table for which some conditions of a filter hold. Raises as `selects`."""
    translator = _Translator(dialect, unindexed_keys)
    return [PARTITIONS.c.table_id == table_id, *map(translator.node, conditions)]


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column as a value, so that no index of it is used: its conditions leave most rows."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def key_column(position: int) -> ColumnElement[Any]:
    """Where the sort key of a partition value is found."""
    if position < KEY_COLUMN_COUNT:
        return KEY_COLUMNS[position]
    key = select(FURTHER_KEYS.c.sort_key).where(
        FURTHER_KEYS.c.partition_id == PARTITIONS.c.partition_id, FURTHER_KEYS.c.position == position
    )
    return key.correlate(PARTITIONS).scalar_subquery()


class _Translator:
    def __init__(self, dialect: Dialect, unindexed_keys: Container[int] = ()) -> None:
        self._dialect = dialect
        self._unindexed_keys = unindexed_keys
        self._conditions = 0

    def node(self, node: BoundNode) -> Condition:
        self._count(1)
        match node:
            case BoundAnd(children):
                return all_of([self.node(child) for child in children])
            case BoundOr():
                return any_of(self.alternatives(node))
            case BoundComparison(position, operator, operand):
                return OPERATORS[operator](self._key(position), _text(operand))
            case BoundLike(position, pattern):
                key = self._key(position)
                condition = matches_pattern(key, pattern, self._dialect)
                return key.is_not(None) if condition is None else condition
            case BoundBetween(position, low, high, negated):
                key = self._key(position)
                if negated:
                    return or_(key < _text(low), key > _text(high))
                return and_(key >= _text(low), key <= _text(high))
            case BoundIn(position, operands, negated):
                return self._in(position, operands, negated)
            case BoundIsNull(position, kind, negated):
                key, null = self._key(position), null_key(kind)
                if null is None:
                    return key.is_not(None) if negated else key.is_(None)
                return key != null if negated else key == null
            case BoundMultiIn(positions, rows, negated):
                conditions = self._multi_in(positions, rows, negated)
                return all_of(conditions) if negated else any_of(conditions)

    def alternatives(self, node: BoundOr | BoundMultiIn) -> list[Condition]:
        """What is joined by OR. Equalities of one key become one IN: engines spell a list of days that way."""
        if isinstance(node, BoundMultiIn):
            return self._multi_in(node.positions, node.rows, negated=False)
        operands: dict[int, dict[str, None]] = {}
        others: list[BoundNode] = []
        for child in node.children:
            if isinstance(child, BoundComparison) and child.operator is Operator.EQUAL:
                operands.setdefault(child.position, {})[child.operand] = None
            else:
                others.append(child)
        conditions = [self._in(position, list(texts), negated=False) for position, texts in operands.items()]
        return conditions + [self.node(child) for child in others]

    def _in(self, position: int, operands: Sequence[str], negated: bool) -> Condition:
        key = self._key(position)
        if len(operands) == 1:
            text = _text(operands[0])
            return key != text if negated else key == text
        among = is_among(key, operands, self._dialect)
        return and_(key.is_not(None), not_(Grouping(among))) if negated else among

    def _multi_in(self, positions: Sequence[int], rows: Sequence[Sequence[str]], negated: bool) -> list[Condition]:
        """A condition for each row, or one for all."""
        if len(positions) == 1:
            return [self._in(positions[0], [row[0] for row in rows], negated)]
        compare, join = (ne, any_of) if negated else (eq, all_of)
        keys = [self._key(position) for position in positions]
        return [join([compare(key, _text(text)) for key, text in zip(keys, row, strict=True)]) for row in rows]

    def _key(self, position: int) -> ColumnElement[Any]:
        key = key_column(position)
        return unindexed(key) if position in self._unindexed_keys else key

    def _count(self, conditions: int) -> None:
        self._conditions += conditions
        if self._conditions > CONDITIONS_MAX:
            raise StoreError(
                f"a filter of more than {CONDITIONS_MAX} conditions other than equality cannot be evaluated"
            )


def _text(operand: str) -> ColumnElement[str]:
    check_text("filter value", operand)
    return literal(operand, Text)


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Joined by OR, however many there are."""
    return _grouped(or_, conditions) if conditions else false()


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Joined by AND, however many there are; at least one."""
    return _grouped(and_, conditions)


def _grouped(combine: Callable[..., Condition], conditions: Sequence[Condition]) -> Condition:
    while len(conditions) > _GROUP:
        conditions = [
            _Group(combine(*conditions[start : start + _GROUP])) for start in range(0, len(conditions), _GROUP)
        ]
    return _Group(combine(*conditions))


class _Group(Grouping[bool]):
    """Parentheses that stay: SQLAlchemy would take an OR inside an OR apart, by its operator."""

    inherit_cache = True
    operator = None


def _is_usable(text: str) -> bool:
    return len(text) <= _LIKE_CHARACTERS_MAX and is_storable(text)


def may_match(filter: TableFilter, dialect: Dialect) -> Condition | None:
    """A condition on TABLES that holds for all tables the filter selects; None where there is none."""
    return _TableTranslator(dialect).node(filter.root)


class _TableTranslator:
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
