"""H5: a page of another origin cannot have a call run, whatever it sends and whatever its browser adds."""

import pytest

from hms_gateway.composition.demo import ORIGINS
from tests.attacks.edge import basic, edge
from tests.gateway.serving import CALL, PATH, post
from tests.support.server import GatewayServer

GOOD, EVIL = "https://good.example", "https://evil.example"
PATHS = [PATH, f"{PATH}/", "/metastore", f"{PATH}?doAs=bob", f"http://localhost{PATH}"]
FORM = b"%5B1%2C%22get_all_databases%22%2C1%2C1%2C%7B%7D%5D"
FORM_TYPE = "Content-Type: application/x-www-form-urlencoded"
# What browsers send with a simple request, which they do not ask for first, and with others.
EVIL_REQUESTS = [
    [f"Origin: {EVIL}"],
    [f"Origin: {EVIL}", "Content-Type: text/plain"],
    [f"Origin: {EVIL}", "Content-Type: text/plain", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
    [f"Origin: {EVIL}", "Sec-Fetch-Site: same-site"],
    [f"Origin: {EVIL}", "Sec-Fetch-Site: same-origin"],
    [f"Origin: {EVIL}", "Sec-Fetch-Site: none"],
    [f"Origin: {EVIL}", f"Origin: {GOOD}"],
    [f"Origin: {GOOD}", f"Origin: {EVIL}"],
    [f"Origin: {GOOD}", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-origin"],
    ["Origin: null"],
    ["Origin: null", "Sec-Fetch-Site: cross-site"],
    ["Origin:"],
    ["Origin: http://good.example"],
    ["Origin: https://good.example:8443"],
    ["Origin: https://good.example.evil.example"],
    ["Origin: https://evilgood.example"],
    ["Origin: localhost"],
    ["Origin: https://localhost"],
    ["Origin: http://localhost", "Sec-Fetch-Site: cross-site"],
    ["Origin: http://localhost:8000"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", FORM_TYPE],
    ["Sec-Fetch-Site: same-site"],
    ["Sec-Fetch-Site:"],
]


@pytest.fixture(scope="module")
def it(tmp_path_factory):
    """bob's password was verified and the reply is in the cache, so that requests may be answered the short way."""
    with edge(tmp_path_factory.mktemp("origins"), cached=True, cors_origins=[GOOD]) as edge_:
        for _ in range(2):
            assert edge_.server.exchange(request()).startswith(b"HTTP/1.1 200 ")
        yield edge_


def request(*lines, path=PATH, body=CALL, user="bob", method="POST"):
    whole = post(body, "Connection: close", basic(user), *lines, path=path)
    return whole.replace(b"POST", method.encode(), 1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("lines", EVIL_REQUESTS)
def test_other_pages_are_403_and_nothing_is_run(it, lines, path):
    hits, calls = it.server.metrics.cache_hits, len(it.calls)
    answer = it.server.exchange(request(*lines, path=path))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"cors_origins" in answer
    assert b"access-control-" not in answer or GOOD.encode() in answer
    assert (it.server.metrics.cache_hits, len(it.calls)) == (hits, calls)


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "PUT"])
def test_preflights_of_other_pages_are_403(it, method):
    lines = (f"Origin: {EVIL}", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
    answer = it.server.exchange(request(*lines, method=method))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"access-control-allow" not in answer


@pytest.mark.parametrize(
    "lines",
    [
        [f"Origin: {GOOD}"],
        [f"Origin: {GOOD}", "Sec-Fetch-Site: cross-site"],
        ["Origin: http://localhost"],
        ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"],
        # A proxy that ends TLS: the browser vouches for the scheme.
        ["Origin: https://localhost", "Sec-Fetch-Site: same-origin"],
        ["Sec-Fetch-Site: same-origin"],
        ["Sec-Fetch-Site: none"],
        [],
    ],
)
def test_allowed_pages_the_gateways_own_and_programs_are_answered(it, lines):
    assert it.server.exchange(request(*lines)).startswith(b"HTTP/1.1 200 ")


def test_an_allowed_page_may_send_keys_and_leases(it):
    answer = it.server.exchange(request(f"Origin: {GOOD}", method="OPTIONS"))
    assert answer.startswith(b"HTTP/1.1 204 ")
    (allowed,) = [line for line in answer.split(b"\r\n") if line.startswith(b"access-control-allow-headers: ")]
    assert {b"idempotency-key", b"x-hms-lease-id", b"x-hms-lock-id", b"x-hms-txn-id"} <= set(
        allowed.partition(b": ")[2].split(b", ")
    )


def test_no_page_may_call_by_default(tmp_path):
    with edge(tmp_path) as closed:
        assert closed.ask(basic("bob"), f"Origin: {GOOD}") == 403
        assert closed.ask(basic("bob"), "Origin: http://localhost:8000") == 403
        assert closed.ask(basic("bob")) == "bob"


def test_the_demo_lets_pages_of_this_machine_call(tmp_path):
    with edge(tmp_path, cors_origins=ORIGINS) as demo:
        for origin in ("http://localhost:8000", "https://localhost", "http://127.0.0.1:1", "http://[::1]:8000"):
            assert demo.ask(basic("bob"), f"Origin: {origin}", "Sec-Fetch-Site: cross-site") == "bob"
        for origin in (
            "http://localhost.evil.example",
            "http://evil.example:8000",
            "http://localhost:8000.evil",
            "null",
        ):
            assert demo.ask(basic("bob"), f"Origin: {origin}") == 403


def test_a_form_is_not_decoded(it, tmp_path):
    for lines in ([FORM_TYPE], [FORM_TYPE, f"Origin: {GOOD}"]):
        assert it.server.exchange(request(*lines, body=FORM)).startswith(b"HTTP/1.1 400 ")
    trusting = {"addresses": ["127.0.0.1"], "user_header": "SM_USER", "secret": "s" * 16}
    with edge(tmp_path, trusted_proxy=trusting, users_by_other_logins=["*"]) as behind_knox:
        assert behind_knox.ask(basic("bob"), FORM_TYPE, body=FORM) == 400
        assert behind_knox.ask("SM_USER: bob", FORM_TYPE, f"X-Proxy-Secret: {'s' * 16}", body=FORM) == "bob"


@pytest.mark.parametrize(
    ("settings", "allowed", "refused"),
    [({}, "http://localhost:8000", GOOD), ({"cors_origins": [GOOD]}, GOOD, "http://localhost:8000")],
)
def test_serve_demo_sets_origins_where_none_are_set(tmp_path, settings, allowed, refused):
    with GatewayServer(tmp_path, demo=True, settings=settings) as demo:
        assert demo.post(CALL, headers={"Origin": allowed})[0] == 200
        assert demo.post(CALL, headers={"Origin": refused})[0] == 403
        assert demo.post(CALL)[0] == 200
