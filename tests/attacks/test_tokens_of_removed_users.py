"""Delegation tokens of a user of the password file who is removed, by whatever program, or replaced by another one."""

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.gateway.auth.passwords import UserFile
from hms_gateway.gateway.auth.users import add_user, list_users, remove_user
from tests.gateway.auth.test_authentication import Clock
from tests.support.patience import until
from tests.support.server import API_PATH, GatewayServer

CALL = b'[1,"getName",1,1,{}]'
ANN = ("ann", "ann's password")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("removed")
    add_user(folder / "users", *ANN)
    with GatewayServer(folder, settings={"delegation_tokens": True}) as it:
        yield it


def status(gateway: GatewayServer, token: str) -> int:
    with gateway.connection() as connection:
        connection.request("POST", API_PATH, CALL, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status


def test_a_token_ends_with_its_user_and_is_not_inherited(gateway):
    users = gateway.data_dir / "users"
    with MetastoreClient(gateway.url, ANN, verify=False) as client:
        token = client.call("get_delegation_token", "ann", "yarn")
    assert status(gateway, token) == 200
    # As an editor or htpasswd does it, which know nothing of tokens.
    remove_user(users, "ann")
    until(lambda: status(gateway, token) == 401)
    add_user(users, "ann", "of another ann")
    with MetastoreClient(gateway.url, ("ann", "of another ann"), verify=False) as client:
        assert client.call("get_all_databases") == ["default"]
    assert status(gateway, token) == 401


def test_who_was_just_removed_gets_none_that_counts_as_of_another_login(tmp_path):
    """A call may still be running whose login was right a moment ago."""
    path, clock = tmp_path / "users", Clock()
    add_user(path, *ANN)
    users = UserFile(path, clock)
    before = users.entry_of("ann")
    assert before == users.entry_of("ann") != ""
    remove_user(path, "ann")
    assert list_users(path) == []
    assert len({before, users.entry_of("ann"), users.entry_of("ann"), ""}) == 4
    clock.now += 61
    assert users.entry_of("ann") == "" == users.entry_of("nobody")
