"""Which part of a filter finds the partitions on SQLite, whose planner has no figures about the data.

It uses our indexes for no OR over several keys. Such an OR is asked for alternative by alternative, each a query of its
own. That pays where every alternative is narrow, that is, selects few partitions as far as its form shows,
and nothing beside the OR is narrow. Of several keys with narrow conditions it takes any; there, figures are needed.
"""

from collections.abc import Sequence
from typing import Final

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
)
from hms_gateway.metastore.filters.grammar import Operator
from hms_gateway.storage.schema.catalog import KEY_COLUMN_COUNT

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
    """Whether one of the conditions names the values of its key."""
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
        case BoundComparison(position, _, operator, _):
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
