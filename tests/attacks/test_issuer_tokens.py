"""Tokens of OAuth2 issuers at a real server: whose call it is, every challenge, nothing of them in logs."""

import pytest
from structlog.testing import capture_logs

from tests.attacks.edge import basic, edge
from tests.gateway.serving import CALL, post, read_response
from tests.support.token_issuer import AUDIENCE, new_key, signed, token_issuer

KEY, OTHER = new_key("first"), new_key("first")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with token_issuer(KEY) as issuer:
        settings = {"corp": {"issuer": issuer.url, "audience": [AUDIENCE], "groups_claim": "groups"}}
        rules = {"etl": {"users": ["ann"]}}
        with edge(tmp_path_factory.mktemp("issuer"), cached=False, token_issuers=settings, proxy_users=rules) as server:
            yield issuer, server


def bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


def test_a_call_is_of_the_user_and_the_groups_of_the_token(served):
    issuer, server = served
    assert server.ask(bearer(issuer.token("bea"))) == "bea"
    assert server.calls[-1][1].groups == {"engineers", "auditors"}
    assert server.ask(basic("bob")) == "bob"
    assert server.calls[-1][1].groups == frozenset()


def test_who_acts_for_another_user_lends_no_groups(served):
    issuer, server = served
    token = issuer.token("etl")
    assert server.ask(bearer(token), query="?doAs=ann") == "ann"
    assert server.calls[-1][1].groups == frozenset()
    assert server.ask(bearer(token), query="?doAs=bob") == 403
    assert server.ask(bearer(issuer.token("bea")), query="?doAs=ann") == 403


def test_two_logins_in_one_request_are_refused(served):
    issuer, server = served
    assert server.ask(bearer(issuer.token("bea")), basic("bob")) == 400


def test_a_wrong_token_is_answered_with_every_challenge_and_shown_nowhere(served):
    issuer, server = served
    token = signed(OTHER, issuer.claims(sub="secret-user"))
    right = issuer.token("bea")
    with capture_logs() as lines:
        assert server.ask(bearer(right)) == "bea"
        assert server.ask(bearer(token)) == 401
    shown = repr(lines) + server.server.log.getvalue()
    assert not any(part in shown for sent in (right, token) for part in sent.split("."))
    with server.server.connect() as connection:
        connection.sendall(post(CALL, bearer(token)))
        status, headers, body = read_response(connection)
    assert status == 401
    assert headers["www-authenticate"].startswith("Bearer ")
    assert token not in body.decode()
    assert "secret-user" not in body.decode()


def test_a_token_too_long_for_a_header_does_not_get_far(served):
    issuer, server = served
    token = signed(KEY, issuer.claims(more="x" * 1_000_000))
    with server.server.connect() as connection:
        try:
            connection.sendall(post(CALL, bearer(token)))
        except ConnectionError:
            return
        assert read_response(connection)[0] == 431
