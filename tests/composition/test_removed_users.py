"""A user who is removed while connected is gone at every door and in every worker; connections of others go on."""

import contextlib
import time
from collections.abc import Callable
from functools import partial

from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TSaslClientTransport

from hms_gateway.gateway.auth.users import add_user, remove_user
from hms_gateway.structs import MetaException
from tests.bridge.bridge_process import BridgeProcess, connected
from tests.composition.test_thrift_port import CALL, served
from tests.support.server import API_PATH, basic

DOORS_OF_WORKERS = 3


def until_refused(call: Callable[[], bool]) -> None:
    """A file that changed is seen within a second; how long a busy machine takes is not the question."""
    end = time.monotonic() + 60
    while call():
        assert time.monotonic() < end, "still let in"


def test_a_removed_user_is_gone_everywhere_and_others_stay(tmp_path):
    for place in served(tmp_path, thrift_sasl="require", workers=2):
        gateway = place.gateway
        add_user(tmp_path / "users", "ann", "ann's password")
        add_user(tmp_path / "users", "bob", "bob's password")
        login = partial(TSaslClientTransport, host="127.0.0.1", service="hive", mechanism="PLAIN")
        ann = partial(login, username="ann", password="ann's password")
        bob = partial(login, username="bob", password="bob's password")
        with contextlib.ExitStack() as stack:
            bridge = stack.enter_context(BridgeProcess(gateway))
            # Some reach each worker. More would wait for their turn as wrong passwords do.
            by_http = [stack.enter_context(gateway.connection()) for _ in range(DOORS_OF_WORKERS)]
            by_thrift = [stack.enter_context(connected(place, ann)) for _ in range(DOORS_OF_WORKERS)]
            through_bridge = stack.enter_context(connected(bridge))
            of_bob = stack.enter_context(connected(place, bob))

            def http_lets_in(connection) -> bool:
                connection.request("POST", API_PATH, CALL, basic("ann", "ann's password"))
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
            remove_user(tmp_path / "users", "ann")
            remove_user(tmp_path / "users", gateway.user)
            for door in doors:
                until_refused(door)
            assert thrift_lets_in(of_bob)
            # A broken file is logged, and the users before stay.
            (tmp_path / "users").write_text("not a line of a password file\n")
            assert thrift_lets_in(of_bob)
