"""Secrets come back with the right key for the right purpose, and not otherwise."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.runtime.sealing import Seal, SealingError


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / "deep" / "secrets.key"


@pytest.fixture(scope="module")
def seal(tmp_path_factory):
    return Seal(tmp_path_factory.mktemp("seal") / "key")


@given(text=st.text(st.characters()), purpose=st.text(st.characters()))
def test_what_is_sealed_can_be_opened_for_its_purpose(seal, text, purpose):
    sealed = seal.seal(text, purpose)
    assert sealed.isascii()
    assert seal.open(sealed, purpose) == text
    with pytest.raises(SealingError, match="was changed"):
        seal.open(sealed, purpose + "x")


def test_nothing_is_sealed_twice_alike(seal):
    assert seal.seal("secret", "p") != seal.seal("secret", "p")


def test_what_was_never_sealed_comes_back_without_a_key(key_file):
    assert Seal(key_file).open("AQIDBA==", "p") == "AQIDBA=="
    assert not key_file.exists()


def test_the_key_is_made_once_and_for_its_owner_only(key_file):
    sealed = Seal(key_file).seal("secret", "p")
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(key_file.parent) == ["secrets.key"]
    assert Seal(key_file).open(sealed, "p") == "secret"


def test_every_key_opens_and_the_first_one_seals(key_file):
    old = Seal(key_file).seal("secret", "p")
    key_file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n" + key_file.read_text())
    changed = Seal(key_file)
    assert changed.open(old, "p") == "secret"
    assert not changed.is_current(old)
    assert changed.is_current(changed.seal("secret", "p"))


def test_another_key_or_none_is_named(key_file, tmp_path):
    sealed = Seal(key_file).seal("secret", "p")
    other = tmp_path / "other.key"
    Seal(other).seal("x", "p")
    with pytest.raises(SealingError, match=r"other\.key has another key"):
        Seal(other).open(sealed, "p")
    key_file.unlink()
    with pytest.raises(SealingError, match=r"secrets\.key not found"):
        Seal(key_file).open(sealed, "p")
    assert not key_file.exists()


@pytest.mark.parametrize("content", ["", "\n", "c2hvcnQ=\n", "not base64!\n", "\ud800"])
def test_a_file_without_keys_is_named(key_file, content):
    key_file.parent.mkdir()
    key_file.write_text(content, errors="surrogatepass")
    with pytest.raises(SealingError, match=r"secrets\.key"):
        Seal(key_file).seal("secret", "p")


def test_a_damaged_secret_is_not_opened(seal):
    sealed = seal.seal("secret", "p")
    for damaged in (sealed[:-4], sealed[:-5] + "AAAA=", sealed + "!"):
        with pytest.raises(SealingError):
            seal.open(damaged, "p")
