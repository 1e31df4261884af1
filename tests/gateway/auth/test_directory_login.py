"""Users of a directory beside those of the password file."""

import asyncio

import pytest

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.credentials import LoginStack
from hms_gateway.gateway.auth.directory import DirectoryLogin, DirectoryUser
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Ldap
from tests.gateway.auth.test_authentication import Clock, basic


def directory_stack(check, *, kept_seconds=300.0, seconds_max=20.0, **options) -> LoginStack:
    settings = Ldap(
        ["ldaps://ldap.test"],
        bind_name="uid={user}",
        remembered_seconds=300.0,
        kept_seconds=kept_seconds,
        seconds_max=seconds_max,
    )
    return LoginStack([DirectoryLogin(check, settings, challenges=(), **options)], challenges=())


def test_another_spelling_is_not_a_user_of_the_file():
    """A directory finds `ADMIN` as `admin`, whom the password file has."""
    authenticator = directory_stack(
        lambda user, password: DirectoryUser(user.lower(), frozenset()),
        is_local={"admin"}.__contains__,
    )

    def login(user):
        return asyncio.run(authenticator.authenticate(RequestHead({b"authorization": basic(user, "x")}, [], b"", "")))

    try:
        assert login("Ann").user == "ann"
        with pytest.raises(Refused, match="wrong"):
            login("ADMIN")
    finally:
        authenticator.close()


def test_a_check_that_gets_no_thread_keeps_no_place():
    authenticator = directory_stack(
        lambda user, password: DirectoryUser(user, frozenset()),
        is_local=lambda user: False,
        limits=Limits(password_checks_max=1),
    )
    authenticator.close()
    head = RequestHead({b"authorization": basic("ann", "x")}, [], b"", "")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            asyncio.run(authenticator.authenticate(head))


def test_guesses_of_one_entry_count_together_however_its_name_is_written():
    clock = Clock()
    authenticator = directory_stack(
        lambda user, password: None,
        is_local=lambda user: False,
        monotonic=clock,
        sleep=clock.sleep,
    )
    spellings = ("ann", "ANN", " ann", "ann  ", "\uff41nn", "\u24d0nn", "\u24b6nn", "a\ufe0fnn\u1806", "\U0001d482nn")
    try:
        for spelling in spellings:
            head = RequestHead({b"authorization": basic(spelling, f"guess of {spelling}")}, [], b"", "10.0.0.1")
            with pytest.raises(Refused, match="wrong"):
                asyncio.run(authenticator.authenticate(head))
    finally:
        authenticator.close()
    assert clock.slept == [0.25, 0.5, 1.0, 2.0, 4.0]
