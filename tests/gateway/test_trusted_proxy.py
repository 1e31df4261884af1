"""Identity told by proxies: believed from configured peers, ignored from everybody else (clients §9)."""

import asyncio
import base64

import pytest

from app.gateway.identity import Identity, Refused, RequestHead
from app.gateway.trusted_proxy import ImpersonationRule, Networks, TrustedProxyAuthenticator

PROXY, STRANGER = "10.1.2.3", "192.0.2.9"


class Passwords:
    """Knows the header `Basic knox` and `Basic ann`."""

    def remembered(self, head):
        return None

    async def authenticate(self, head):
        header = head.headers.get(b"authorization", b"")
        if header in (b"Basic knox", b"Basic ann"):
            return Identity(header[6:].decode(), head.peer)
        raise Refused(401, "who?")

    def close(self):
        pass


def authenticator(**options):
    options = {
        "proxies": ["10.0.0.0/8", "::1"],
        "user_headers": ["X-Knox-Actor-ID", "x-actor-username", "SM_USER"],
        "proxy_users": {"knox": ImpersonationRule(frozenset({"ann", "bob"}), Networks(["10.0.0.0/8", STRANGER]))},
        **options,
    }
    return TrustedProxyAuthenticator(Passwords(), **options)


def ask(*headers, peer=PROXY, query=b"", by=None):
    fields = [(name.lower().encode(), value.encode()) for name, value in headers]
    head = RequestHead(dict(fields), fields, query, peer)
    try:
        return asyncio.run((by or authenticator()).authenticate(head))
    except Refused as refused:
        return refused.status


@pytest.mark.parametrize("header", ["X-Knox-Actor-ID", "x-actor-username", "SM_USER"])
def test_a_trusted_peer_names_the_user_in_a_header(header):
    assert ask((header, "ann")).user == "ann"
    assert ask((header, "ann"), peer=STRANGER) == 401


@pytest.mark.parametrize("query", [b"user.name=ann", b"doAs=ann", b"doas=ann&x=1"])
def test_a_trusted_peer_names_the_user_in_the_query(query):
    assert ask(query=query).user == "ann"
    assert ask(query=query, peer=STRANGER) == 401


def test_hive_dispatch_sends_the_user_with_an_asterisk_for_a_password():
    header = "Basic " + base64.b64encode(b"ann:*").decode()
    assert ask(("Authorization", header)).user == "ann"
    assert ask(("Authorization", header), peer=STRANGER) == 401


def test_who_logs_in_through_a_trusted_peer_acts_for_others_only_by_a_rule():
    assert ask(("Authorization", "Basic knox"), query=b"doAs=bob").user == "bob"
    assert ask(("Authorization", "Basic ann"), query=b"doAs=bob") == 403
    assert ask(("Authorization", "Basic wrong"), query=b"doAs=bob") == 401
    assert ask(("Authorization", "Basic ann"), query=b"user.name=bob").user == "ann"


def test_groups_come_along():
    identity = ask(("X-Knox-Actor-ID", "ann"), ("X-Knox-Actor-Groups-1", "a,b"), ("X-Knox-Actor-Groups-2", "c"))
    assert identity.groups == ("a", "b", "c")


def test_the_client_address_is_the_last_that_is_no_proxy_of_ours():
    forwarded = ("X-Forwarded-For", "203.0.113.1, 198.51.100.7, 10.9.9.9")
    assert ask(("X-Knox-Actor-ID", "ann"), forwarded).address == "198.51.100.7"
    assert ask(("X-Knox-Actor-ID", "ann")).address == PROXY
    assert ask(("Authorization", "Basic ann"), forwarded, peer=STRANGER).address == STRANGER


def test_two_different_users_are_refused():
    assert ask(("X-Knox-Actor-ID", "ann"), ("X-Knox-Actor-ID", "root")) == 401
    assert ask(query=b"doAs=ann&doAs=root") == 401


def test_a_trusted_peer_without_a_user_needs_a_password():
    assert ask() == 401
    assert ask(("Authorization", "Basic ann")).user == "ann"


def test_only_listed_users_may_be_named():
    by = authenticator(proxied_users=["ann"])
    assert ask(("X-Knox-Actor-ID", "ann"), by=by).user == "ann"
    assert ask(("X-Knox-Actor-ID", "root"), by=by) == 403


@pytest.mark.parametrize("peer", [PROXY, STRANGER])
def test_an_authenticated_proxy_user_may_act_for_whom_its_rule_names(peer):
    knox = ("Authorization", "Basic knox")
    assert ask(knox, peer=STRANGER, query=b"doAs=bob").user == "bob"
    assert ask(knox, peer=STRANGER, query=b"doAs=root") == 403
    assert ask(knox, peer="198.51.100.1", query=b"doAs=bob") == 403
    assert ask(knox, peer=STRANGER).user == "knox"


def test_a_named_user_acts_for_another_only_by_its_rule():
    assert ask(query=b"user.name=knox&doAs=bob").user == "bob"
    assert ask(query=b"user.name=knox&doAs=root") == 403
    assert ask(query=b"user.name=ann&doAs=bob") == 403


def test_somebody_without_a_rule_is_not_answered_under_another_name_than_it_asked_for():
    ann = ("Authorization", "Basic ann")
    assert ask(ann, peer=STRANGER, query=b"doAs=root") == 403
    assert ask(ann, peer=STRANGER, query=b"doAs=ann").user == "ann"
    assert ask(ann, peer=STRANGER, query=b"user.name=root").user == "ann"


def test_ipv4_addresses_written_as_ipv6_are_recognised():
    assert Networks(["10.0.0.0/8"]).contain("::ffff:10.1.1.1")
    assert not Networks(["10.0.0.0/8"]).contain("::1")
    assert not Networks(["10.0.0.0/8"]).contain("no address")


def test_an_absurd_query_is_refused():
    assert ask(query=b"&".join(b"a%d=1" % number for number in range(1000))) == 400
