"""Who a client of the Thrift port is: under the name that the door gives, and refused as what it may try again."""

import asyncio
import base64
import contextlib
from collections.abc import Collection, Iterator
from types import SimpleNamespace

import pytest

from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import CallFailed, NotTried
from hms_gateway.bridge.thrift.sasl import Credentials
from hms_gateway.composition.thrift_port import _Identification
from hms_gateway.gateway.admission.identity import Identity, Refusals, RequestHead
from hms_gateway.gateway.auth.network_logins import NetworkUsers
from hms_gateway.gateway.auth.tokens import DelegationLogins
from hms_gateway.gateway.logins import LoginParts
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.logins.delegation_token import Proof, TokenName, TokensAway
from hms_gateway.runtime.logins.login_tokens import LoginChecks
from hms_gateway.runtime.settings import Settings


class Directory:
    """Knows each user by one name, in any case."""

    def remembered(self, head: RequestHead) -> Identity:
        return Identity("ann", head.address)


@pytest.fixture
def checks() -> Iterator[LoginChecks]:
    with contextlib.closing(LoginChecks()) as it:
        yield it


def identification(
    checks: LoginChecks, error: Exception | None = None, reserved: Collection[str] = ()
) -> _Identification:
    def password_of(name: bytes) -> bytes:
        raise error or AssertionError

    users = SimpleNamespace(is_reserved=reserved.__contains__)
    logins = LoginParts(checks, users, delegation=DelegationLogins(password_of, checks))  # type: ignore[arg-type]
    endpoint = SimpleNamespace(authenticator=Directory())
    edge = SimpleNamespace(endpoint=endpoint, logins=logins)
    return _Identification(edge, Refusals(Metrics(frozenset())), NetworkUsers(Settings()))  # type: ignore[arg-type]


def test_calls_are_paid_for_and_logged_under_the_name_that_the_directory_has(checks):
    session = Session(credentials=Credentials("ANN", "her password"))
    caller = asyncio.run(identification(checks)(session))
    assert (caller.user, session.shown_user) == ("ann", "ann")


def test_a_ticket_does_not_name_a_user_of_the_password_file(checks):
    def ask(*reserved: str) -> str:
        return asyncio.run(identification(checks, reserved=reserved)(Session(proven_user="ann"))).user

    assert ask("bo") == "ann"
    with pytest.raises(CallFailed, match="users_by_other_logins"):
        ask("ann")


def test_a_token_that_cannot_be_looked_up_now_ends_no_job(checks):
    """A client that is cut off tries again; an answered call has failed."""
    name = TokenName("ann", "yarn", "", 1, 2, 3).encode()
    proof = Proof(base64.b64encode(name).decode(), "n", "c", "0" * 32)
    session = Session(proven_user="ann", proof=proof)
    with pytest.raises(NotTried, match="cannot be looked up; try again"):
        asyncio.run(identification(checks, TokensAway("away"))(session))
