"""Grants and revocations by users who may grant nothing: on everything, in every encoding and both dialects."""

import itertools
from typing import Any

from hms_gateway.catalog.access.grant_rows import GrantRows
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import (
    GrantRevokePrivilegeRequest,
    GrantRevokeType,
    HiveObjectRef,
    HiveObjectType,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeGrantInfo,
    Role,
)
from hms_gateway.rpc.wire import MessageType
from tests.handlers.rights.privileges import bag
from tests.handlers.rights.test_authorizer import Everybody, everybody, table  # noqa: F401

REFUSED = "MetaException: Permission denied: user {} lacks OWNERSHIP on {}"
CALLS = {
    "grant_privileges": (bag("all", "", "mallory", PrincipalType.USER, option=True),),
    "grant_revoke_privileges": (
        GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag("select", "", "public", PrincipalType.ROLE)),
    ),
    "revoke_privileges": (bag("All", "", "admin", PrincipalType.ROLE),),
}


def shown(everybody: Everybody) -> Any:  # noqa: F811
    return everybody.ask("root", "list_privileges", None, None, HiveObjectRef())


def test_a_user_grants_nothing_on_everything(everybody: Everybody) -> None:  # noqa: F811
    before, metastore = shown(everybody), everybody.metastore
    for name, dialect, protocol in itertools.product(CALLS, Dialect, ("tjson", "binary", "compact")):
        codec, method = getattr(metastore.codecs, protocol), methods_of(dialect)[name]
        start, end = codec.envelope(name, MessageType.CALL, 1)
        message = codec.read_message(start + codec.encode(method.arguments(*CALLS[name])) + end)
        reply = metastore.processor.process(codec, message, Call("mallory", dialect=dialect))
        assert reply.outcome == "MetaException"
        assert shown(everybody) == before
    assert everybody.ask("mallory", "get_all_databases") == ["default"]


def test_what_is_granted_on_may_say_what_it_wants(everybody: Everybody) -> None:  # noqa: F811
    before = shown(everybody)
    given = bag("all", "hr.people", "mallory", PrincipalType.USER)
    named = [(None, None), ("", ""), ("hr", None), ("hr", "people"), (None, "people")]
    for kind, names in itertools.product((None, 0, *HiveObjectType, 99), named):
        given.privileges[0].hiveObject = HiveObjectRef(kind, *names, columnName="a")
        for name in ("grant_privileges", "revoke_privileges"):
            assert isinstance(everybody.ask("mallory", name, given), str)
    assert shown(everybody) == before


def test_who_may_grant_takes_away_what_it_has_granted_only(everybody: Everybody) -> None:  # noqa: F811
    everybody.grant("root", "select", "sales.orders", "mallory", option=True)
    everybody.grant("root", "select", "sales.orders", "victor")
    refused = REFUSED.format("mallory", "table sales.orders")
    assert everybody.revoke("mallory", "select", "sales.orders", "victor") == refused
    assert everybody.grant("mallory", "select", "sales.orders", "bob") is True
    # What both have granted is the owner's to take.
    assert everybody.grant("mallory", "select", "sales.orders", "victor") is True
    assert everybody.revoke("mallory", "select", "sales.orders", "victor") == refused
    assert everybody.revoke("mallory", "select", "sales.orders", "nobody") == refused
    assert everybody.revoke("mallory", "select", "sales.orders", "bob") is True
    assert everybody.ask("bob", "get_all_tables", "sales") == []
    assert everybody.ask("victor", "get_all_tables", "sales") == ["orders"]
    only_option = GrantRevokePrivilegeRequest(GrantRevokeType.REVOKE, bag("select", "sales.orders", "victor", 1), True)
    assert everybody.ask("mallory", "grant_revoke_privileges", only_option) == refused


def test_the_grantor_is_the_caller_whatever_it_says(everybody: Everybody) -> None:  # noqa: F811
    everybody.ask("root", "create_role", Role("reader", 0, "root"))
    everybody.ask("root", "grant_role", "reader", "mallory", PrincipalType.USER, "root", PrincipalType.USER, True)
    assert everybody.ask("mallory", "grant_role", "reader", "bob", 1, "root", PrincipalType.ROLE, False) is True
    (granted,) = everybody.ask("bob", "list_roles", "bob", PrincipalType.USER)[:1]
    assert (granted.roleName, granted.ownerName) == ("reader", "root")
    grants = everybody.metastore.store.read(lambda snapshot: GrantRows(snapshot).of_kind())
    made = table("default", "mine")
    made.sd.location = None  # type: ignore[union-attr]
    made.privileges = PrincipalPrivilegeSet(userPrivileges={"bob": [PrivilegeGrantInfo("select", 0, "root", 1, False)]})
    assert everybody.ask("mallory", "create_table", made) is None
    after = everybody.metastore.store.read(lambda snapshot: GrantRows(snapshot).of_kind())
    assert {one.grant.grantor for one in after[len(grants) :]} == {"mallory"}
