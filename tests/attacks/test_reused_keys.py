"""M4: a key sent again with another body was answered "ok" without doing it, and calls that failed lost theirs."""

import json
from collections.abc import Iterator

import pytest

from hms_gateway.gateway.auth.users import add_user
from hms_gateway.rpc.structs import CommitTxnRequest, Database, OpenTxnRequest
from hms_gateway.rpc.wire import Codec
from tests.bridge.thrift_bytes import CODECS, call
from tests.support.server import GatewayServer, basic

PASSWORD = "a password of bob"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    with GatewayServer(tmp_path_factory.mktemp("keys")) as gateway:
        add_user(gateway.data_dir / "users", "bob", PASSWORD)
        yield gateway


def send(
    gateway: GatewayServer,
    method: str,
    *values: object,
    key: str,
    codec: Codec = CODECS.tjson,
    seqid: int = 1,
    **headers: str,
) -> tuple[int, bytes]:
    body = call(method, *values, codec=codec, seqid=seqid)
    return gateway.post(body, headers={"Idempotency-Key": key, **headers})


def names(gateway: GatewayServer) -> list[str]:
    answer = json.loads(gateway.post(call("get_all_databases", codec=CODECS.tjson))[1])
    return sorted(answer[4]["0"]["lst"][2:])


@pytest.mark.parametrize("codec", [CODECS.tjson, CODECS.binary, CODECS.compact], ids=lambda codec: codec.name)
def test_a_key_is_refused_for_another_message_and_the_call_is_not_made(gateway, codec):
    first, second = f"first_{codec.name}", f"second_{codec.name}"
    key = f"key-{codec.name}"
    status, answer = send(gateway, "create_database", Database(first), key=key, codec=codec)
    assert status == 200
    for method, value in (("create_database", Database(second)), ("get_database", first)):
        status, body = send(gateway, method, value, key=key, codec=codec)
        assert status == 422
        assert b"key was used for another message before (create_database)" in body
    assert first in names(gateway)
    assert second not in names(gateway)
    assert send(gateway, "create_database", Database(first), key=key, codec=codec) == (200, answer)


def test_a_client_that_counts_its_calls_repeats_the_same_message(gateway):
    send(gateway, "create_database", Database("counted"), key="counted", seqid=1)
    status, body = send(gateway, "create_database", Database("counted"), key="counted", seqid=2)
    assert (status, json.loads(body)[3:]) == (200, [2, {}])


def test_the_same_key_of_another_user_is_another_key(gateway):
    send(gateway, "create_database", Database("of_admin"), key="shared")
    status, _ = send(gateway, "create_database", Database("of_bob"), key="shared", **basic("bob", PASSWORD))
    assert status == 200
    assert {"of_admin", "of_bob"} <= set(names(gateway))


def test_a_call_that_failed_answers_the_same_and_keeps_its_key(gateway):
    failed = send(gateway, "drop_database", "not_yet", True, True, key="failed")
    assert b"not_yet" in failed[1]
    gateway.post(call("create_database", Database("not_yet"), codec=CODECS.tjson))
    assert send(gateway, "drop_database", "not_yet", True, True, key="failed") == failed
    assert "not_yet" in names(gateway)
    assert send(gateway, "drop_database", "not_yet", True, False, key="failed")[0] == 422


def test_transactions_that_failed_keep_their_keys(gateway):
    """These calls hold no thread and are committed together."""
    failed = send(gateway, "commit_txn", CommitTxnRequest(4711), key="txn")
    assert b"4711" in failed[1]
    assert send(gateway, "commit_txn", CommitTxnRequest(4711), key="txn") == failed
    assert send(gateway, "commit_txn", CommitTxnRequest(4712), key="txn")[0] == 422

    opened = send(gateway, "open_txns", OpenTxnRequest(1, "ann", "here"), key="opened")
    assert send(gateway, "open_txns", OpenTxnRequest(1, "ann", "here"), key="opened") == opened
    assert send(gateway, "open_txns", OpenTxnRequest(2, "ann", "here"), key="opened")[0] == 422
