"""Every field for a pattern, a filter or an expression has a bound; longer texts are refused before the handler."""

from collections.abc import Iterator
from typing import Any

import pytest

from hms_gateway.handlers.steps import LIMIT_OF_FIELD, BoundedTexts
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.idl import BaseType
from hms_gateway.rpc.structs import (
    IDL,
    METHODS,
    DropPartitionsExpr,
    DropPartitionsRequest,
    MetaException,
    RequestPartsSpec,
)
from hms_gateway.runtime.limits import Limits
from tests.support.steps import through

TEXTS = BoundedTexts(Limits(pattern_bytes_max=4, pattern_alternatives_max=2, filter_bytes_max=8))
# Kept as they are and shown again, and never read.
KEPT = {"check_expression", "triggerExpression", "actionExpression"}


def texts_in(fields: Any, depth: int = 5) -> Iterator[str]:
    for field in fields:
        type = field.type
        while hasattr(type, "element"):
            type = type.element
        if type in (BaseType.STRING, BaseType.BINARY):
            yield field.name
        elif depth and getattr(type, "name", "") in IDL.structs:
            yield from texts_in(IDL.structs[type.name].fields, depth - 1)


def test_every_pattern_filter_and_expression_has_a_limit() -> None:
    methods = [method for dialect in Dialect for method in methods_of(dialect).values()]
    names = {name for method in methods for name in texts_in(method.definition.arguments)}
    meant = {name for name in names if any(word in name.lower() for word in ("pattern", "filter", "expr", "condition"))}
    assert meant - KEPT == set(LIMIT_OF_FIELD)


@pytest.mark.parametrize("pattern", [None, "", "abcd", "a|b", "a*|b"])
def test_what_is_within_the_limits_passes(pattern: str | None) -> None:
    through(TEXTS, METHODS["get_tables"], Call("ann"), METHODS["get_tables"].arguments("default", pattern))


@pytest.mark.parametrize(("pattern", "limit"), [("abcde", "pattern_bytes_max"), ("ééé", "pattern_bytes_max")])
def test_what_is_longer_is_refused(pattern: str, limit: str) -> None:
    with pytest.raises(MetaException, match=f"^MetaException.message:pattern is longer .* .limit {limit}."):
        through(TEXTS, METHODS["get_tables"], Call("ann"), METHODS["get_tables"].arguments("default", pattern))


def test_lists_in_requests_are_looked_into() -> None:
    method = METHODS["drop_partitions_req"]
    parts = RequestPartsSpec(exprs=[DropPartitionsExpr(b"short"), DropPartitionsExpr(b"too long ")])
    with pytest.raises(MetaException, match="expr is longer than 8 bytes"):
        through(TEXTS, method, Call("ann"), method.arguments(DropPartitionsRequest("default", "t", parts)))
    through(TEXTS, method, Call("ann"), method.arguments(DropPartitionsRequest("default", "t", None)))
    through(TEXTS, method, Call("ann"), method.arguments(None))


def test_alternatives_with_wildcards_are_counted() -> None:
    texts = BoundedTexts(Limits(pattern_alternatives_max=2))
    method = METHODS["get_tables"]
    through(texts, method, Call("ann"), method.arguments("default", "a|b|c|d*|e*"))
    with pytest.raises(MetaException, match="pattern has 3 alternatives with wildcards; send at most 2"):
        through(texts, method, Call("ann"), method.arguments("default", "a*|b.|*"))
