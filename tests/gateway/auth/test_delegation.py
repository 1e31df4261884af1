"""Logins by delegation tokens: what is remembered of them, and for how long."""

import asyncio
import base64
import contextlib
import threading

import pytest

from hms_gateway.gateway import logins as gateway_logins
from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.tokens import REMEMBERED_SECONDS, DelegationLogins
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import PROOF_HEADER, Proof, TokenName, token_text
from hms_gateway.runtime.logins.login_tokens import LoginChecks
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.auth.test_authentication import basic
from tests.support.patience import PATIENCE_SECONDS

PASSWORD = b"password"


def text_of(number: int, password: bytes = PASSWORD) -> bytes:
    return token_text(TokenName("ann", "yarn", "", 1, 2, number).encode(), password).encode()


def test_a_login_is_remembered_for_a_second_and_nothing_of_it_stays():
    now = 0.0
    with contextlib.closing(LoginChecks()) as checks:
        looked_up: list[bytes] = []

        def password_of(name: bytes) -> bytes:
            looked_up.append(name)
            return PASSWORD

        logins = DelegationLogins(password_of, checks, monotonic=lambda: now)

        async def log_in() -> None:
            nonlocal now
            for number in (1, 1, 2, 2):
                await logins.login(text_of(number), None)
            assert len(looked_up) == len(logins._known) == 2
            now += REMEMBERED_SECONDS
            await logins.login(text_of(3), None)
            assert list(logins._known) == [text_of(3)]

        asyncio.run(log_in())


def test_calls_that_show_the_same_token_at_once_take_one_check():
    begin = threading.Event()
    with contextlib.closing(LoginChecks(Limits(ticket_checks_max=3))) as checks:

        def password_of(name: bytes) -> bytes:
            assert begin.wait(PATIENCE_SECONDS)
            return PASSWORD

        logins = DelegationLogins(password_of, checks)

        async def log_in_together() -> None:
            calls = [asyncio.ensure_future(logins.login(text_of(1), "10.0.0.1")) for _ in range(10)]
            await asyncio.sleep(0)
            calls.pop().cancel()
            begin.set()
            assert {login.user for login in await asyncio.gather(*calls)} == {"ann"}
            with pytest.raises(Refused, match="its password is wrong"):
                await logins.login(text_of(1, b"another"), "10.0.0.1")
            assert not logins._checking._running

        asyncio.run(log_in_together())


@pytest.mark.slow
def test_a_ticket_is_asked_for_in_the_place_of_a_token_and_not_of_a_proof(tmp_path, monkeypatch):
    settings = load_settings(data_dir=tmp_path, kerberos={"keytab": tmp_path / "keytab"}, admin_password="right")
    gateway_logins.ensure_first_user(settings)
    # No ticket comes, so that none has to be read.
    monkeypatch.setattr(gateway_logins, "service_keys", lambda settings: None)
    parts = gateway_logins.login_parts(settings, token_password=lambda name: PASSWORD)
    authenticator = gateway_logins.build_authenticator(settings, parts)

    def challenges(authorization: bytes, proof: bytes = b"") -> list[bytes]:
        headers = {b"authorization": authorization, **({PROOF_HEADER: proof} if proof else {})}
        with pytest.raises(Refused, match="The delegation token is not accepted") as refused:
            asyncio.run(authenticator.authenticate(RequestHead(headers, [], b"", "10.0.0.1")))
        return [value.split()[0] for _, value in refused.value.headers]

    name = base64.b64encode(TokenName("admin", "yarn", "", 1, 2, 3).encode()).decode()
    with contextlib.closing(authenticator), contextlib.closing(parts.checks):
        for proof in (Proof(name, "nonce", "cnonce", "wrong").header, b"unreadable"):
            assert challenges(basic("admin", "right"), proof) == [b"Basic", b"Bearer"]
        assert challenges(b"Bearer " + text_of(1, b"another")) == [b"Negotiate", b"Basic", b"Bearer"]
