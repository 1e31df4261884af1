"""Users with passwords at each door: who is removed is gone in every worker; groups owe at the Thrift port."""

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TSaslClientTransport

from hms_gateway.gateway.auth.users import add_user, remove_user
from hms_gateway.rpc.structs import MetaException, UnlockRequest
from tests.bridge.bridge_process import BridgeProcess, connected
from tests.composition.test_thrift_port import CALL, served
from tests.support.patience import until
from tests.support.server import API_PATH, basic

PASSWORD = "a password of each"
DOORS_OF_WORKERS = 3


def until_refused(call: Callable[[], bool]) -> None:
    """A file that changed is seen within a second; how long a busy machine takes is not the question."""
    until(lambda: not call(), "still let in")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logins")
    (folder / "groups").write_text("slow: cid\n")
    rates = {f'user_rates."@slow".{name}': 0.001 for name in ("bytes_per_second", "burst_seconds")}
    settings = {"thrift_sasl": "require", "workers": 2, "groups_file": str(folder / "groups"), **rates}
    for it in served(folder, **settings):
        for name in ("ann", "bob", "cid"):
            add_user(folder / "users", name, PASSWORD)
        yield it


def login(user: str):
    return partial(
        TSaslClientTransport, host="127.0.0.1", service="hive", mechanism="PLAIN", username=user, password=PASSWORD
    )


def test_a_group_owes_what_its_members_read_at_the_thrift_port(place):
    with connected(place, login("cid")) as client:
        client.get_all_databases()
        with pytest.raises(MetaException, match="group slow is used up"):
            client.get_all_databases()
        # What gives back locks is never refused.
        client.unlock(UnlockRequest(lockid=1))


def test_a_removed_user_is_gone_everywhere_and_others_stay(place):
    users = place.gateway.data_dir / "users"
    with contextlib.ExitStack() as stack:
        bridge = stack.enter_context(BridgeProcess(place.gateway))
        # Some reach each worker. More would wait for their turn as wrong passwords do.
        by_http = [stack.enter_context(place.gateway.connection()) for _ in range(DOORS_OF_WORKERS)]
        by_thrift = [stack.enter_context(connected(place, login("ann"))) for _ in range(DOORS_OF_WORKERS)]
        through_bridge = stack.enter_context(connected(bridge))
        of_bob = stack.enter_context(connected(place, login("bob")))

        def http_lets_in(connection) -> bool:
            connection.request("POST", API_PATH, CALL, basic("ann", PASSWORD))
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 401)
            return answer.status == 200

        def thrift_lets_in(client) -> bool:
            try:
                client.get_all_databases()
            except (MetaException, TApplicationException) as error:
                return "password" not in str(error)
            return True

        doors = [partial(http_lets_in, one) for one in by_http]
        doors += [partial(thrift_lets_in, one) for one in (*by_thrift, through_bridge)]
        assert all(door() for door in doors)
        remove_user(users, "ann")
        remove_user(users, place.gateway.user)
        for door in doors:
            until_refused(door)
        assert thrift_lets_in(of_bob)
        # A broken file is logged, and the users before stay.
        users.write_text("not a line of a password file\n")
        assert thrift_lets_in(of_bob)
