"""Names of the password file, which an issuer, a certificate, a ticket or a proxy said too: `admin` of anybody's."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from hms_gateway.gateway.admission.identity import Identity, ProxyTrust, Refused, RequestHead
from hms_gateway.gateway.auth.credentials import LoginStack
from hms_gateway.gateway.auth.external_logins import TicketLogin, TrustedProxyAuthenticator
from hms_gateway.gateway.auth.passwords import UserFile
from hms_gateway.gateway.auth.users import add_user, remove_user
from hms_gateway.gateway.logins import build_authenticator
from hms_gateway.runtime.kerberos import Accepted
from hms_gateway.runtime.settings import TrustedProxy
from hms_gateway.runtime.settings_reading import load_settings
from tests.attacks.edge import basic, edge
from tests.attacks.test_client_certificates import door
from tests.gateway.auth.test_authentication import Clock
from tests.support.client_authority import ClientAuthority
from tests.support.token_issuer import AUDIENCE, new_key, token_issuer

PROXY = {"trusted_proxy": {"addresses": ["127.0.0.1"], "user_header": "x-actor"}}


@contextlib.contextmanager
def an_issuer(folder: Any, **settings: object) -> Iterator[Any]:
    """Asks as a user whom a token names."""
    with token_issuer(new_key("one")) as issuer:
        issuers = {"corp": {"issuer": issuer.url, "audience": [AUDIENCE]}}
        with edge(folder, token_issuers=issuers, **settings) as it:
            yield lambda user: it.ask(f"Authorization: Bearer {issuer.token(user)}")


@contextlib.contextmanager
def a_proxy(folder: Any, **settings: object) -> Iterator[Any]:
    with edge(folder, **PROXY, **settings) as it:
        yield lambda user: it.ask(f"x-actor: {user}")


@contextlib.contextmanager
def a_ticket(folder: Any, **settings: object) -> Iterator[Any]:
    """A ticket of a realm that is let in; what reads it is not of interest here."""
    loaded = load_settings(data_dir=folder, **settings)
    add_user(loaded.users_path, "admin", "admin's password")
    names: list[str] = []
    login = TicketLogin(lambda token: Accepted(f"{names[-1]}@LAKE.TEST", "HTTP/gateway@LAKE.TEST", b""))
    tickets = LoginStack([login], challenges=())
    users = UserFile(loaded.users_path, Clock(), loaded.users_by_other_logins)
    authenticator = TrustedProxyAuthenticator(tickets, is_reserved=users.is_reserved)

    def ask(user: str) -> str | int:
        names.append(user)
        field = (b"authorization", b"Negotiate dGlja2V0")
        try:
            identity: Identity = asyncio.run(authenticator.authenticate(RequestHead(dict([field]), [field], b"", "")))
        except Refused as refused:
            return refused.status
        return identity.user

    yield ask
    authenticator.close()


@pytest.mark.parametrize("login", [an_issuer, a_proxy, a_ticket])
def test_a_name_of_the_file_is_not_taken_from_another_login(tmp_path, login):
    with login(tmp_path) as ask:
        assert [ask("eve"), ask("admin"), ask("eve")] == ["eve", 403, "eve"]


@pytest.mark.slow
@pytest.mark.parametrize("login", [an_issuer, a_proxy, a_ticket])
@pytest.mark.parametrize("shared", [["admin"], ["*"]])
def test_the_setting_lifts_it_by_name(tmp_path, login, shared):
    with login(tmp_path, users_by_other_logins=shared) as ask:
        assert ask("admin") == "admin"


@pytest.mark.slow
def test_a_certificate_does_not_either_also_on_a_connection_that_is_open(tmp_path):
    authority = ClientAuthority(tmp_path)
    (tmp_path / "users.pem").write_bytes(authority.pem)
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem"}) as it:
        ann, _ = authority.issue("ann")
        assert it.ask(authority.issue("bob")[0]) == 403
        with it.client(ann) as call:
            assert call() == "ann"
            add_user(tmp_path / "users", "ann", "ann's password")
            answers = set()
            while 403 not in answers:
                answers.add(call())
            assert answers <= {"ann", 403}
            remove_user(tmp_path / "users", "ann")
            while call() == 403:
                pass
            assert call() == "ann"


@pytest.mark.slow
def test_a_password_beside_the_proxys_name_proves_it(tmp_path):
    with edge(tmp_path, **PROXY) as it:
        assert it.ask("x-actor: admin") == 403
        assert it.ask("x-actor: admin", basic("admin")) == "admin"


@pytest.mark.slow
def test_who_acts_for_others_is_checked_too(tmp_path):
    """`proxy_users` names admin, and so whom it acts for would be at the proxy's choice."""
    with edge(tmp_path, **PROXY, proxy_users={"admin": {"users": ["ann"]}}) as it:
        assert it.ask("x-actor: admin", query="?doAs=ann") == 403
        assert it.ask(basic("admin"), query="?doAs=ann") == "ann"


def test_a_digest_of_a_token_proves_the_name_that_a_bridge_says(tmp_path):
    loaded = load_settings(data_dir=tmp_path, **PROXY)
    add_user(loaded.users_path, "ann", "ann's password")

    async def proven(head: RequestHead, identity: Identity) -> Identity:
        return identity

    users = UserFile(loaded.users_path, Clock())
    authenticator = TrustedProxyAuthenticator(
        build_authenticator(loaded),
        TrustedProxy(["127.0.0.1"], user_header="x-actor"),
        proven=proven,
        is_reserved=users.is_reserved,
    )

    def ask(*fields: tuple[bytes, bytes], query: bytes = b"") -> str | int:
        head = RequestHead(dict(fields), fields, query, "127.0.0.1", "", ProxyTrust.TRUSTED)
        try:
            return asyncio.run(authenticator.authenticate(head)).user
        except Refused as refused:
            return refused.status

    named, proof = (b"x-actor", b"ann"), (b"x-hms-token-proof", b"AAAA")
    assert ask(named) == 403
    assert ask(named, proof) == "ann"
    authenticator.close()
