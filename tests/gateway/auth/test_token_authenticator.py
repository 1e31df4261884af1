"""Tokens at the door: right until they expire or are revoked, refused with every challenge, slow to guess."""

import asyncio

import pytest

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.credentials import REMEMBERED_MAX, wrong_token_challenges
from hms_gateway.gateway.auth.tokens import TokenFile, TokenLogin, TokenUses, create_token, revoke_tokens
from hms_gateway.runtime.file_versions import WatchedFile
from tests.gateway.auth.test_authentication import Bench, basic

NOW = 1_700_000_000


class TokenBench(Bench):
    """Passwords and tokens; `clock` is that of both, and of the time of day."""

    def __init__(self, folder) -> None:
        super().__init__(folder / "users", {"ann": "right"})
        self.waits_together = False
        self.clock.now = float(NOW)
        self.tokens = folder / "tokens"
        self.uses = TokenUses(folder / "uses")
        self.authenticator.close()
        self.personal = self.token_login()
        self.authenticator = self.stack(self.file, self.personal)

    def token_login(self) -> TokenLogin:
        return TokenLogin(
            TokenFile(WatchedFile(self.tokens, self.clock)),
            self.uses,
            challenges=wrong_token_challenges("test"),
            now=self.clock,
            monotonic=self.clock,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        """With `waits_together`, all that wait do so at the same time."""
        await (asyncio.sleep(0) if self.waits_together else self.clock.sleep(seconds))

    def make(self, user="etl", seconds=3_600):
        """The header and what is kept."""
        secret, token = create_token(self.tokens, user, now=int(self.clock.now), seconds=seconds)
        return b"Bearer " + secret.encode(), token

    def refusal(self, header: bytes | None, peer="10.0.0.1") -> Refused:
        fields = [] if header is None else [(b"authorization", header)]
        head = RequestHead(dict(fields), fields, b"", peer)
        assert self.authenticator.remembered(head) is None
        with pytest.raises(Refused) as refused:
            asyncio.run(self.authenticator.authenticate(head))
        return refused.value


@pytest.fixture
def bench(tmp_path):
    it = TokenBench(tmp_path)
    yield it
    it.authenticator.close()


def challenges(refused: Refused) -> list[bytes]:
    return [value for name, value in refused.headers if name == b"www-authenticate"]


def test_a_new_token_is_right_at_once_and_needs_no_password_check(bench):
    bench.ask(basic("ann", "right"))
    bench.verify.checked.clear()
    header, _ = bench.make("etl")
    assert bench.ask(header) == "etl"
    assert bench.ask(header.replace(b"Bearer", b"bearer ")) == "etl"
    assert bench.verify.checked == []


def test_passwords_are_right_as_before(bench):
    bench.make()
    assert bench.ask(basic("ann", "right")) == "ann"
    assert bench.ask(basic("ann", "wrong")) == 401


def test_a_known_token_is_right_without_waiting_for_anything(bench):
    header, _ = bench.make("etl")
    assert bench.ask(header) == "etl"
    fields = [(b"authorization", header)]
    assert bench.authenticator.remembered(RequestHead(dict(fields), fields, b"", "10.0.0.1")).user == "etl"


@pytest.mark.parametrize("begin", [b"Bearer ", b"bearer ", b"Bearer   ", b" BEARER  "])
def test_a_token_has_one_place_however_its_header_is_written(bench, begin):
    """Else one token, which costs its sender nothing, would push all others out."""
    header, _ = bench.make("etl")
    head = RequestHead({b"authorization": begin + header.removeprefix(b"Bearer ")}, [], b"", "10.0.0.1")
    assert asyncio.run(bench.authenticator.authenticate(head)).user == "etl"
    assert bench.authenticator.remembered(head).user == "etl"
    assert bench.personal.cache.find(header) is not None


def test_many_tokens_push_no_password_out(bench):
    bench.ask(basic("ann", "right"))
    for number in range(REMEMBERED_MAX):
        bench.personal.cache.remember(b"Bearer %d" % number, None)
    assert bench.ask(basic("ann", "right")) == "ann"
    assert len(bench.verify.checked) == 1


@pytest.mark.parametrize("header", [b"Bearer hmsgw_wrong", b"Bearer", b"Bearer ", b"Bearer \xff\x00", b"Bearer a b"])
def test_a_wrong_token_gets_both_challenges(bench, header):
    bench.make()
    refused = bench.refusal(header)
    assert (refused.status, refused.reason) == (401, "wrong_token")
    assert challenges(refused) == [
        b'Basic realm="test", charset="UTF-8"',
        b'Bearer realm="test", error="invalid_token"',
    ]


def test_an_expired_token_is_named(bench):
    header, token = bench.make(seconds=60)
    bench.clock.now += 59
    assert bench.ask(header) == "etl"
    bench.clock.now += 1
    refused = bench.refusal(header)
    assert (refused.status, refused.reason) == (401, "expired_token")
    assert refused.text == f"The token {token.id} has expired; hms-gateway token create makes another"
    assert len(challenges(refused)) == 2


def test_a_revoked_token_is_wrong_within_a_second(bench):
    header, token = bench.make()
    other, _ = bench.make("ann")
    assert bench.ask(header) == "etl"
    revoke_tokens(bench.tokens, ids=[token.id])
    bench.clock.now += 1
    assert bench.ask(header) == 401
    assert bench.ask(other) == "ann"


def test_a_file_that_is_gone_has_no_tokens_and_a_broken_one_changes_nothing(bench):
    header, _ = bench.make()
    assert bench.ask(header) == "etl"
    bench.tokens.write_text("broken\n")
    bench.clock.now += 1
    assert bench.ask(header) == "etl"
    bench.tokens.unlink()
    bench.clock.now += 1
    assert bench.ask(header) == 401


def test_the_last_use_is_noted_once_a_minute(bench, tmp_path):
    header, token = bench.make()
    for _ in range(3):
        bench.ask(header)
    assert bench.uses.last(token) is not None
    bench.uses.forget(token)
    bench.clock.now += 59
    bench.ask(header)
    assert bench.uses.last(token) is None
    bench.clock.now += 1
    bench.ask(header)
    assert bench.uses.last(token) is not None


def test_a_use_that_cannot_be_noted_refuses_nothing(bench, tmp_path):
    (tmp_path / "uses").write_text("a file in the place of the folder")
    header, _ = bench.make()
    assert bench.ask(header) == "etl"
