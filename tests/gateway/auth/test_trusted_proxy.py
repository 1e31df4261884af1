"""The user as named by proxies: taken from the one source that the operator names, and from nowhere else."""

import asyncio
import base64

import pytest
from msgspec.structs import replace

from hms_gateway.gateway.admission.identity import Identity, Refused, RequestHead
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.auth.external_logins import ImpersonationRule, TrustedProxyAuthenticator
from hms_gateway.runtime.addresses import Networks
from hms_gateway.runtime.settings import TrustedProxy

PROXY, STRANGER = "10.1.2.3", "192.0.2.9"
SECRET = "correct-horse-battery"
NETWORK = ["10.0.0.0/8"]
HEADER = TrustedProxy(NETWORK, user_header="X-Knox-Actor-ID")
ASTERISK = TrustedProxy(NETWORK, asterisk_password=True)
USER_NAME, DO_AS = (TrustedProxy(NETWORK, user_parameter=name) for name in ("user.name", "doAs"))
SOURCES = [HEADER, ASTERISK, USER_NAME, DO_AS]


def basic(user, password):
    return ("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


class Passwords:
    """Knows users whose password is `right`."""

    def remembered(self, head):
        return None

    async def authenticate(self, head):
        given = head.headers.get(b"authorization", b"").decode()
        for user in ("knox", "ann", "bob", "root"):
            if given == basic(user, "right")[1]:
                return Identity(user, head.address)
        raise Refused(401, "who?", reason="wrong_password")

    def close(self):
        pass


class Tokens(Passwords):
    """Knows ann by her token."""

    async def authenticate(self, head):
        return Identity("ann", head.address, by_token=True)


def ask(*headers, peer=PROXY, query=b"", source=HEADER, secret=None, forwarding=(), proxied_users=("*",)):
    """The user and address, or status and reason of the refusal."""
    rules = {"knox": ImpersonationRule(frozenset({"ann", "bob"}), Networks(["10.0.0.0/8", STRANGER]))}
    authenticator = TrustedProxyAuthenticator(Passwords(), replace(source, users=[*proxied_users]), proxy_users=rules)
    proxies = Proxies(["10.0.0.0/8", "::1"], forwarding, secret=secret)
    fields = [(name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers]
    head = proxies.head(dict(fields), fields, query, peer)
    try:
        identity = authenticator.remembered(head) or asyncio.run(authenticator.authenticate(head))
    except Refused as refused:
        return refused.status, refused.reason
    return identity.user


def naming(source, user):
    """Headers and query with which a proxy names the user."""
    if source.user_header:
        return [(source.user_header, user)], b""
    if source.asterisk_password:
        return [basic(user, "*")], b""
    return [], f"{source.user_parameter}={user}".encode()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("peer", [PROXY, "::1", "::ffff:10.1.1.1"])
def test_a_trusted_peer_names_the_user_in_the_one_source(source, peer):
    headers, query = naming(source, "ann")
    assert ask(*headers, query=query, source=source, peer=peer) == "ann"


@pytest.mark.parametrize("source", SOURCES)
def test_no_other_peer_names_a_user(source):
    headers, query = naming(source, "ann")
    assert ask(*headers, query=query, source=source, peer=STRANGER) == (401, "wrong_password")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "other", [*SOURCES, TrustedProxy(NETWORK, user_header="SM_USER"), TrustedProxy(NETWORK, user_header="x-actor")]
)
def test_other_sources_name_nobody(source, other):
    if source != other:
        headers, query = naming(other, "root")
        assert ask(*headers, query=query, source=source) == (401, "wrong_password")


@pytest.mark.parametrize("source", SOURCES)
def test_a_trusted_peer_that_names_nobody_needs_a_password(source):
    assert ask(source=source) == (401, "wrong_password")
    assert ask(basic("ann", "right"), source=source) == "ann"
    assert ask(basic("ann", "wrong"), source=source) == (401, "wrong_password")


def test_authorization_beside_the_header_is_right_and_the_same_users_or_the_call_is_refused():
    named = ("X-Knox-Actor-ID", "ann")
    assert ask(named, basic("ann", "right")) == "ann"
    assert ask(named, basic("bob", "right")) == (401, "ambiguous_user")
    assert ask(named, basic("ann", "wrong")) == (401, "wrong_password")
    assert ask(named, basic("ann", "*")) == (401, "wrong_password")
    assert ask(named, ("Authorization", "")) == (401, "wrong_password")


@pytest.mark.parametrize("values", [["ann", "root"], ["ann", "ann"], ["ann,root"], ["ann, ann"]])
def test_a_repeated_header_is_refused(values):
    assert ask(*[("X-Knox-Actor-ID", value) for value in values]) == (401, "ambiguous_user")


@pytest.mark.parametrize("value", ["", " ", "a\x01b", "x" * 257])
def test_an_unreadable_name_is_refused(value):
    assert ask(("X-Knox-Actor-ID", value)) == (401, "unreadable_user")


def test_names_that_are_not_utf_8_are_refused():
    assert ask(("X-Knox-Actor-ID", "ann\udcff")) == (401, "unreadable_user")
    assert ask(query=b"user.name=ann%ff", source=USER_NAME) == (401, "unreadable_user")
    assert ask(("X-Knox-Actor-ID", "änne")) == "änne"


@pytest.mark.parametrize("source", SOURCES)
def test_a_parameter_that_names_somebody_else_is_refused(source):
    headers, query = naming(source, "ann")
    for other in (b"user.name=root", b"User.Name=root", b"user.name=ann&user.name=root"):
        both = query + b"&" + other
        assert ask(*headers, query=both, source=source) == (401, "ambiguous_user")
    if source != USER_NAME:
        assert ask(*headers, query=query + b"&user.name=ann", source=source) == "ann"


def test_the_parameters_of_who_logs_in_do_not_name_it():
    ann = basic("ann", "right")
    assert ask(ann, query=b"user.name=root", source=USER_NAME) == (401, "ambiguous_user")
    assert ask(ann, query=b"doAs=root", source=DO_AS) == (403, "not_impersonated")
    assert ask(basic("knox", "right"), query=b"doAs=bob", source=DO_AS) == "bob"
    assert ask(ann, query=b"user.name=root", peer=STRANGER) == "ann"


@pytest.mark.slow
@pytest.mark.parametrize("source", [HEADER, ASTERISK, USER_NAME])
def test_a_named_user_acts_for_another_only_by_its_rule(source):
    headers, query = naming(source, "knox")
    assert ask(*headers, query=query + b"&doAs=bob", source=source) == "bob"
    assert ask(*headers, query=query + b"&doAs=root", source=source) == (403, "not_impersonated")
    headers, query = naming(source, "ann")
    assert ask(*headers, query=query + b"&doAs=bob", source=source) == (403, "not_impersonated")


def test_two_values_of_do_as_are_refused():
    assert ask(query=b"doAs=ann&doAs=root", source=DO_AS) == (401, "ambiguous_user")
    assert ask(query=b"doAs=ann&doas=root", source=DO_AS) == (401, "ambiguous_user")


@pytest.mark.parametrize("source", SOURCES)
def test_only_listed_users_may_be_named(source):
    for user, expected in (("ann", "ann"), ("root", (403, "not_proxied"))):
        headers, query = naming(source, user)
        assert ask(*headers, query=query, source=source, proxied_users=["ann"]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_the_secret_proves_the_proxy_beside_its_address(source):
    headers, query = naming(source, "ann")
    right, wrong = ("X-Proxy-Secret", SECRET), ("X-Proxy-Secret", SECRET[:-1])
    assert ask(*headers, right, query=query, source=source, secret=SECRET) == "ann"
    for given in ([], [wrong], [right, right], [right, wrong]):
        assert ask(*headers, *given, query=query, source=source, secret=SECRET) == (401, "unproven_proxy")
    assert ask(*headers, right, query=query, source=source, secret=SECRET, peer=STRANGER) == (401, "wrong_password")


def test_a_peer_without_the_secret_may_log_in():
    assert ask(basic("ann", "right"), secret=SECRET) == "ann"
    assert ask(secret=SECRET) == (401, "wrong_password")


def test_a_forwarding_proxy_names_nobody():
    for source in SOURCES:
        headers, query = naming(source, "ann")
        assert ask(*headers, query=query, source=source, peer=STRANGER, forwarding=[STRANGER]) == (
            401,
            "wrong_password",
        )


@pytest.mark.parametrize("peer", [PROXY, STRANGER])
def test_an_authenticated_proxy_user_may_act_for_whom_its_rule_names(peer):
    knox = basic("knox", "right")
    assert ask(knox, peer=peer, query=b"doAs=bob") == "bob"
    assert ask(knox, peer=peer, query=b"doAs=root") == (403, "not_impersonated")
    assert ask(knox, peer="198.51.100.1", query=b"doAs=bob") == (403, "not_impersonated")
    assert ask(knox, peer=peer) == "knox"
    assert ask(basic("knox", "wrong"), peer=peer, query=b"doAs=bob") == (401, "wrong_password")


def test_a_proxy_that_passes_a_token_on_makes_no_other_login_of_it():
    authenticator = TrustedProxyAuthenticator(Tokens(), HEADER)
    for sent, by_token in (([], False), ([("authorization", "Bearer token")], True)):
        fields = [(name.encode(), value.encode()) for name, value in [("x-knox-actor-id", "ann"), *sent]]
        head = Proxies(["10.0.0.0/8"]).head(dict(fields), fields, b"", PROXY)
        assert asyncio.run(authenticator.authenticate(head)).by_token is by_token


def test_a_user_without_a_rule_is_not_answered_under_another_name_than_it_asked_for():
    ann = basic("ann", "right")
    assert ask(ann, peer=STRANGER, query=b"doAs=root") == (403, "not_impersonated")
    assert ask(ann, peer=STRANGER, query=b"doAs=ann") == "ann"


def test_an_absurd_query_is_refused():
    assert ask(query=b"&".join(b"a%d=1" % number for number in range(1000))) == (400, "query")


def test_who_is_remembered_is_not_asked_of_a_trusted_peer_or_with_a_query():
    class Remembering(Passwords):
        def remembered(self, head):
            return Identity("ann", head.address)

    authenticator = TrustedProxyAuthenticator(Remembering(), HEADER)
    proxies = Proxies([PROXY], ["10.0.0.9"])
    assert authenticator.remembered(proxies.head({}, [], b"", STRANGER)).user == "ann"
    assert authenticator.remembered(proxies.head({}, [], b"", "10.0.0.9")).user == "ann"
    assert authenticator.remembered(proxies.head({}, [], b"", PROXY)) is None
    assert authenticator.remembered(RequestHead({}, [], b"doAs=bob", STRANGER)) is None
