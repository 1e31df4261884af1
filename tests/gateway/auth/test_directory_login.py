"""Users of a directory beside those of the password file."""

import asyncio

import pytest

from hms_gateway.gateway.admission.identity import RequestHead
from hms_gateway.gateway.admission.refusals import Refused
from hms_gateway.gateway.assembly import build_authenticator
from hms_gateway.gateway.auth.directory import DirectoryUser
from hms_gateway.gateway.auth.directory_login import DirectoryAuthenticator
from hms_gateway.runtime.settings import load_settings
from tests.gateway.auth.test_authentication import basic


def test_another_spelling_is_not_a_user_of_the_file(tmp_path):
    """A directory finds `ADMIN` as `admin`, whom the password file has."""
    authenticator = DirectoryAuthenticator(
        build_authenticator(load_settings(data_dir=tmp_path)),
        lambda user, password: DirectoryUser(user.lower(), frozenset()),
        is_local={"admin"}.__contains__,
        challenges=(),
        remembered_seconds=300.0,
        kept_seconds=300.0,
        seconds_max=20.0,
    )

    def login(user):
        return asyncio.run(authenticator.authenticate(RequestHead({b"authorization": basic(user, "x")}, [], b"", "")))

    try:
        assert login("Ann").user == "ann"
        with pytest.raises(Refused, match="wrong"):
            login("ADMIN")
    finally:
        authenticator.close()
