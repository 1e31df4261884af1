"""When delegation tokens end, and how many there may be."""

import base64
import threading

import pytest

from hms_gateway.catalog.tokens import DelegationTokens, SealedTokens, TokenRows, TokenTimes
from hms_gateway.rpc.structs import MetaException
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import TokenRefused, TokensAway, read_token_text
from hms_gateway.runtime.sealing import Seal
from tests.support.catalog import Catalog
from tests.support.manual_clock import ManualClock

DAY = 86_400


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def tokens(catalog: Catalog, clock: ManualClock, tmp_path) -> DelegationTokens:
    service = SealedTokens(catalog.store, Seal(tmp_path / "secrets.key"))
    limits = Limits(delegation_tokens_per_user_max=2, delegation_tokens_per_proxy_max=3)
    return DelegationTokens(catalog.store, service, clock, TokenTimes(7 * DAY, DAY), limits)


def is_good(tokens: DelegationTokens, token: str) -> bool:
    name, password = read_token_text(token)
    try:
        return tokens.password(name) == password
    except TokenRefused:
        return False


def test_a_token_ends_when_it_is_not_renewed_and_after_a_week(tokens, clock):
    token = tokens.issue("ann", "yarn")
    began = clock.milliseconds()
    for _ in range(6):
        clock.advance(DAY - 1)
        assert is_good(tokens, token)
        assert tokens.renew(token, "yarn") == clock.milliseconds() + DAY * 1000
    clock.advance(DAY - 1)
    assert tokens.renew(token, "yarn") == began + 7 * DAY * 1000
    clock.advance(7)
    assert not is_good(tokens, token)
    with pytest.raises(MetaException, match="cannot be renewed: it has ended"):
        tokens.renew(token, "yarn")


def test_one_that_was_not_renewed_is_removed_later(tokens, clock):
    tokens.issue("ann", "yarn")
    clock.advance(DAY - 1)
    kept = tokens.issue("ann", "yarn")
    assert tokens.expire() == 0
    clock.advance(1)
    assert tokens.expire() == 1
    assert is_good(tokens, kept)


def test_a_user_has_so_many(tokens, clock):
    first = tokens.issue("ann", "yarn")
    tokens.issue("ann", "yarn")
    with pytest.raises(MetaException, match=r"limit delegation_tokens_per_user_max: 2"):
        tokens.issue("ann", "yarn")
    tokens.issue("bo", "yarn")
    tokens.cancel(first, "ann", is_administrator=False)
    tokens.issue("ann", "yarn")


def test_one_that_is_sealed_with_a_lost_key_keeps_no_other(tokens, clock, catalog, tmp_path):
    """It goes when it has ended at the latest."""
    tokens.issue("ann", "yarn")
    (tmp_path / "lost.key").write_bytes(base64.b64encode(bytes(32)))
    lost = DelegationTokens(
        catalog.store,
        SealedTokens(catalog.store, Seal(tmp_path / "lost.key")),
        clock,
        TokenTimes(7 * DAY, DAY),
        Limits(),
    )
    lost.issue("bo", "yarn")
    clock.advance(DAY)
    assert tokens.expire() == 1


def test_one_with_a_lost_key_goes_after_its_last_end(tokens, clock, catalog, tmp_path):
    service = SealedTokens(catalog.store, Seal(tmp_path / "lost.key"))
    DelegationTokens(catalog.store, service, clock, TokenTimes(7 * DAY, DAY), Limits()).issue("bo", "yarn")
    clock.advance(7 * DAY - 1)
    assert tokens.expire() == 0
    clock.advance(1)
    assert tokens.expire() == 1


def test_a_proxy_gets_so_many_for_others(tokens):
    """The names that it gives are not known here: each has a share of its own."""
    for owner in ("ann", "bo", "eve"):
        tokens.issue(owner, "yarn", "hive")
    with pytest.raises(MetaException, match=r"hive has got 3 .*limit delegation_tokens_per_proxy_max: 3"):
        tokens.issue("dan", "yarn", "hive")
    tokens.issue("dan", "yarn", "other")
    tokens.issue("dan", "yarn")


def test_tokens_are_counted_without_the_lock_on_the_catalog(tokens, monkeypatch):
    """A user with ten thousand, who asks for another one again and again, holds up no other change."""
    tokens.issue("ann", "yarn")
    readers = []
    every = TokenRows.tokens

    def noted(self):
        readers.append(threading.current_thread())
        return every(self)

    monkeypatch.setattr(TokenRows, "tokens", noted)
    tokens.issue("ann", "yarn")
    with pytest.raises(MetaException, match="delegation_tokens_per_user_max"):
        tokens.issue("ann", "yarn")
    assert set(readers) == {threading.current_thread()}


@pytest.mark.parametrize("renewer", ["r" * 257, "a\nb", "\ud800"])
def test_names_that_cannot_be_written(tokens, renewer):
    with pytest.raises(MetaException, match="at most 256 characters, and no control characters"):
        tokens.issue("ann", renewer)


def test_without_the_key_tokens_cannot_be_looked_up(tokens, catalog, clock, tmp_path):
    name, _ = read_token_text(tokens.issue("ann", "yarn"))
    other = SealedTokens(catalog.store, Seal(tmp_path / "another.key"))
    with pytest.raises(TokensAway, match="secrets_key_file"):
        DelegationTokens(catalog.store, other, clock, TokenTimes(DAY, DAY), Limits()).password(name)


def test_a_token_ends_with_the_user_it_was_made_for_and_with_who_asked_for_it(catalog, clock, tmp_path):
    entries = {"ann": "first", "hue": "service"}
    service = SealedTokens(catalog.store, Seal(tmp_path / "secrets.key"))
    tokens = DelegationTokens(
        *(catalog.store, service, clock, TokenTimes(7 * DAY, DAY), Limits()), lambda user: entries.get(user, "")
    )
    own, got, foreign = tokens.issue("ann", "yarn"), tokens.issue("bo", "yarn", "hue"), tokens.issue("bo", "yarn")
    tokens.renew(own, "yarn")

    def good() -> list[bool]:
        return [is_good(tokens, token) for token in (own, got, foreign)]

    assert good() == [True, True, True]
    del entries["ann"]
    assert good() == [False, True, True]
    with pytest.raises(MetaException, match="its user is another one since"):
        tokens.renew(own, "yarn")
    entries["ann"] = "second"
    assert good() == [False, True, True]
    del entries["hue"]
    entries["bo"] = "a user of the password file now"
    assert good() == [False, False, False]
