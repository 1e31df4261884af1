"""Forwarded addresses count from configured proxies only, and only the hop that a proxy of ours wrote."""

import json

import httpx
import pytest

from hms_gateway.gateway.auth.passwords import PasswordLogin
from tests.attacks.edge import basic as with_password
from tests.attacks.edge import edge
from tests.gateway.serving import CALL
from tests.interop.private_proxies import proxy
from tests.support.server import API_PATH, GatewayServer, basic, trusting

FORGED = ("X-Forwarded-For: 203.0.113.66", "Forwarded: for=203.0.113.66", "X-Real-IP: 203.0.113.66")


def addresses(folder, *requests, **settings):
    """What the access log shows for each of these lists of header lines."""
    with edge(folder, **settings) as it:
        for lines in requests:
            it.ask(with_password("bob"), *lines)
    return [line["address"] for line in it.server.log_lines()]


def test_a_direct_client_cannot_forge_its_address(tmp_path):
    assert addresses(tmp_path, FORGED) == ["127.0.0.1"]


def test_behind_a_proxy_the_hop_that_it_wrote_counts(tmp_path):
    forged_before = ("X-Forwarded-For: 203.0.113.66, 198.51.100.7", *FORGED[1:])
    own_line_before = (*FORGED, "X-Forwarded-For: 198.51.100.7")
    seen = addresses(tmp_path, forged_before, own_line_before, forwarding_proxies=["127.0.0.1"])
    assert seen == ["198.51.100.7", "198.51.100.7"]


@pytest.mark.parametrize("value", ["unknown", "_hidden", "garbage", '"; drop', "", "[::1", "198.51.100.7:port"])
def test_garbage_is_the_proxys_address(tmp_path, value):
    assert addresses(tmp_path, [f"X-Forwarded-For: {value}"], forwarding_proxies=["127.0.0.1"]) == ["127.0.0.1"]


def test_guessing_from_one_address_delays_no_other(tmp_path):
    """Attempts are counted by the client's address, so neither a forged hop nor another client changes the count."""
    with edge(tmp_path, forwarding_proxies=["127.0.0.1"]) as it:
        for number in range(4):
            assert (
                it.ask(with_password("bob", f"wrong {number}"), f"X-Forwarded-For: 203.0.113.{number}, 198.51.100.7")
                == 401
            )
        logins = it.server.endpoint.authenticator._following._logins
        attempts = next(login for login in logins if isinstance(login, PasswordLogin))._attempts
        assert attempts.reserve(("bob", "127.0.0.1")) == 0
        assert attempts.reserve(("bob", "203.0.113.3")) == 0
        assert attempts.reserve(("bob", "198.51.100.7")) > 0
        assert it.ask(with_password("bob"), "X-Forwarded-For: 198.51.100.8") == "bob"


@pytest.mark.parametrize(
    "name", ["nginx", *(pytest.param(name, marks=pytest.mark.whole) for name in ("haproxy", "envoy"))]
)
def test_behind_the_proxies_of_deploy_a_client_cannot_forge_its_address(tmp_path, name):
    forged = {"X-Forwarded-For": "203.0.113.66", "Forwarded": "for=203.0.113.66"}
    # A loopback address of its own, so that the client is not the proxy.
    transport = httpx.HTTPTransport(verify=trusting(), local_address="127.0.0.2")
    with (
        GatewayServer(tmp_path, settings={"forwarding_proxies": ["127.0.0.1"]}) as server,
        proxy(name, [server.port], server.data_dir, tmp_path) as port,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", transport=transport) as client,
    ):
        answer = client.post(API_PATH, content=CALL, headers={**forged, **basic(server.user, server.password)})
    calls = [line for line in server.log_text().splitlines() if answer.headers["x-request-id"] in line]
    assert [json.loads(line)["address"] for line in calls] == ["127.0.0.2"]
