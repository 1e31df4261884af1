"""The token file: hashes only, private, and right when several processes write it."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_gateway.gateway.auth.tokens import (
    TOKEN_PREFIX,
    TokenFileError,
    TokenUses,
    create_token,
    digest_of,
    read_tokens,
    revoke_tokens,
)

NOW = 1_700_000_000


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "tokens"


def make(file, user="etl", *, now=NOW, seconds=60, note=""):
    return create_token(file, user, now=now, seconds=seconds, note=note)


def test_the_file_is_private_and_holds_no_token(file):
    secret, token = make(file, note="nightly")
    assert secret.startswith(TOKEN_PREFIX)
    assert len(secret) >= len(TOKEN_PREFIX) + 43
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret.removeprefix(TOKEN_PREFIX) not in file.read_text()
    assert read_tokens(file) == [token]
    assert (token.user, token.created, token.expires, token.note) == ("etl", NOW, NOW + 60, "nightly")
    assert token.sha256 == digest_of(secret)
    assert token.sha256.startswith(token.id)


def test_expired_tokens_leave_the_file_with_the_next_one(file):
    make(file)
    _, token = make(file, now=NOW + 61)
    assert read_tokens(file) == [token]


def test_tokens_are_revoked_by_id_and_by_user(file):
    tokens = [make(file, user)[1] for user in ("etl", "ann", "ann", "bob")]
    assert revoke_tokens(file, ids=[tokens[0].id, "unknown"]) == tokens[:1]
    assert revoke_tokens(file, users=["ann"]) == tokens[1:3]
    assert read_tokens(file) == tokens[3:]


def test_without_a_file_there_is_nothing(file):
    assert read_tokens(file) == []
    assert revoke_tokens(file, users=["ann"]) == []
    assert not file.parent.exists()


def test_none_is_lost_when_many_are_made_at_once(file):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: make(file, f"user{number}")[1].id, range(40)))
    assert sorted(made) == sorted(token.id for token in read_tokens(file))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"user": "a:b"}, "no colon"),
        ({"user": ""}, "1 to 255 characters"),
        ({"seconds": 0}, "1 second to 3660 days"),
        ({"seconds": 4_000 * 86_400}, "1 second to 3660 days"),
        ({"note": "a\tb"}, "no control characters"),
        ({"note": "x" * 201}, "at most 200 characters"),
    ],
)
def test_what_cannot_be_a_token(file, given, text):
    with pytest.raises(TokenFileError, match=text):
        make(file, **given)
    assert not file.exists()


@pytest.mark.parametrize(
    "line", ["no json", "{}", json.dumps({"id": "a", "user": "b", "sha256": "c", "created": 1, "expires": 2, "x": 3})]
)
def test_a_line_that_is_not_a_token_is_named(file, line):
    make(file)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(TokenFileError, match="tokens line 2 is not a token"):
        read_tokens(file)


def test_the_last_use_is_kept_beside(tmp_path):
    _, token = make(tmp_path / "tokens")
    uses = TokenUses(tmp_path / "uses")
    assert uses.last(token) is None
    uses.note(token)
    os.utime(tmp_path / "uses" / token.id, (NOW, NOW))
    assert uses.last(token) == NOW
    uses.note(token)
    assert uses.last(token) > NOW
    assert stat.S_IMODE((tmp_path / "uses").stat().st_mode) == 0o700
    uses.forget(token)
    uses.forget(token)
    assert uses.last(token) is None
