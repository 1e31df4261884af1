"""Credentials remembered by header, and the memory of a connection for its last one."""

import pytest

from hms_gateway.gateway.admission.identity import LastLogin
from hms_gateway.gateway.auth.credentials import CredentialCache


@pytest.fixture
def known():
    known = CredentialCache()
    known.remember(b"a", "ann")
    return known


def test_headers_are_bounded_and_the_least_used_goes_first():
    known = CredentialCache(entries_max=2)
    known.remember(b"a", "ann")
    known.remember(b"b", "bob")
    assert known.find(b"a") == "ann"
    known.remember(b"c", "cid")
    assert [known.find(header) for header in (b"a", b"b", b"c")] == ["ann", None, "cid"]


def test_a_connection_that_sends_the_same_header_again_has_nothing_hashed(known, monkeypatch):
    last = LastLogin()
    assert known.find(b"a", last) == "ann"
    monkeypatch.delattr(CredentialCache, "_digest")
    assert known.find(bytes(bytearray(b"a")), last) == "ann"


def test_another_header_on_the_connection_is_looked_up(known):
    known.remember(b"b", "bob")
    last = LastLogin()
    found = [known.find(header, last) for header in (b"a", b"b", b"a", b"", b"c", b"a")]
    assert found == ["ann", "bob", "ann", None, None, "ann"]


def test_what_another_connection_forgets_or_learns_holds_for_all(known):
    last = LastLogin()
    known.find(b"a", last)
    known.remember(b"a", "ann again")
    assert known.find(b"a", last) == "ann again"
    known.forget(b"a")
    assert known.find(b"a", last) is None


def test_a_connection_knows_one_memory_from_another(known):
    other = CredentialCache()
    other.remember(b"x", "xenia")
    last = LastLogin()
    assert known.find(b"a", last) == "ann"
    assert other.find(b"a", last) is None
    other.remember(b"a", "another ann")
    assert other.find(b"a", last) == "another ann"
    assert known.find(b"a", last) == "ann"
