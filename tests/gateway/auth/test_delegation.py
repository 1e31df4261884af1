"""Logins by delegation tokens: what is remembered of them, and for how long."""

import asyncio
import contextlib
import threading

import pytest

from hms_gateway.gateway.admission.refusals import Refused
from hms_gateway.gateway.auth.delegation import REMEMBERED_SECONDS, DelegationLogins
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import TokenName, token_text
from hms_gateway.runtime.logins.login_checks import LoginChecks
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
                await logins.by_text(text_of(number), None)
            assert len(looked_up) == len(logins._known) == 2
            now += REMEMBERED_SECONDS
            await logins.by_text(text_of(3), None)
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
            calls = [asyncio.ensure_future(logins.by_text(text_of(1), "10.0.0.1")) for _ in range(10)]
            await asyncio.sleep(0)
            calls.pop().cancel()
            begin.set()
            assert {login.user for login in await asyncio.gather(*calls)} == {"ann"}
            with pytest.raises(Refused, match="its password is wrong"):
                await logins.by_text(text_of(1, b"another"), "10.0.0.1")
            assert not logins._checking

        asyncio.run(log_in_together())
