"""Guessing tokens: as slow as guessing passwords, and without effect on tokens and passwords that are right."""

import asyncio
import time

import pytest

from hms_gateway.client.metastore_client import MetastoreClient, NotAuthorized, TokenAuth
from hms_gateway.gateway.auth.tokens import create_token, revoke_tokens
from tests.attacks.edge import basic, edge
from tests.gateway.auth.test_authentication import basic as basic_header
from tests.gateway.auth.test_token_authenticator import TokenBench
from tests.support.patience import until
from tests.support.server import GatewayServer

NAT, ELSEWHERE = "192.0.2.1", "198.51.100.7"


@pytest.fixture
def bench(tmp_path):
    it = TokenBench(tmp_path)
    yield it
    it.authenticator.close()


def test_guesses_wait_longer_each_time_whatever_they_guess(bench):
    for number in range(8):
        assert bench.ask(b"Bearer hmsgw_%d" % number, NAT) == 401
    delays = list(bench.clock.slept)
    assert delays == sorted(delays)
    assert delays[-1] >= 8 * delays[0] > 0


def test_an_expired_token_is_a_guess_too(bench):
    header, _ = bench.make(seconds=1)
    bench.clock.now += 1
    for _ in range(8):
        assert bench.ask(header, NAT) == 401
    assert bench.clock.slept


def test_guesses_that_come_together_are_refused_when_they_would_wait_too_long(bench):
    for number in range(8):
        bench.ask(b"Bearer hmsgw_%d" % number, NAT)
    bench.waits_together = True
    answers = asyncio.run(bench.ask_many([b"Bearer hmsgw_x"] * 20, NAT))
    assert set(answers) == {401, 429}


def test_guesses_delay_neither_right_tokens_nor_passwords_nor_other_addresses(bench):
    header, _ = bench.make("etl")
    for number in range(8):
        bench.ask(b"Bearer hmsgw_%d" % number, NAT)
    bench.clock.slept.clear()
    assert bench.ask(header, NAT) == "etl"
    assert bench.ask(basic_header("ann", "right"), NAT) == "ann"
    assert bench.ask(b"Bearer hmsgw_x", ELSEWHERE) == 401
    assert bench.clock.slept == []


def bearer(folder, user: str) -> str:
    """The header line of a new token."""
    return f"Authorization: Bearer {create_token(folder / 'tokens', user, now=int(time.time()), seconds=60)[0]}"


def test_a_token_acts_for_others_only_as_its_user_may(tmp_path):
    with edge(tmp_path, proxy_users={"admin": {"users": ["ann"]}}) as server:
        admin, bob = bearer(tmp_path, "admin"), bearer(tmp_path, "bob")
        assert server.ask(bob) == "bob"
        assert server.ask(admin, query="?doAs=ann") == "ann"
        assert server.ask(bob, query="?doAs=ann") == 403
        assert server.ask(bob, basic("bob")) == 400
        assert server.ask(basic("bob")) == "bob"


def test_a_server_answers_not_even_from_its_cache_after_a_token_was_revoked(tmp_path):
    with GatewayServer(tmp_path / "var") as running:
        file = running.data_dir / "tokens"
        secret, token = create_token(file, "etl", now=int(time.time()), seconds=600)
        with MetastoreClient(running.url, TokenAuth(secret), verify=False) as client:
            for _ in range(3):
                assert client.call("get_all_databases") == ["default"]
            revoke_tokens(file, ids=[token.id])
            with pytest.raises(NotAuthorized, match="The token is wrong or was revoked"):
                until(lambda: client.call("get_all_databases") is None)
        log = running.log_text()
        assert "etl" in log
        assert secret not in log
        assert (running.data_dir / "token-uses" / token.id).exists()
