"""Credentials remembered by header."""

from hms_gateway.gateway.auth import credentials
from hms_gateway.gateway.auth.credentials import CredentialCache


def test_headers_are_bounded_and_the_least_used_goes_first(monkeypatch):
    monkeypatch.setattr(credentials, "REMEMBERED_MAX", 2)
    known = CredentialCache()
    known.remember(b"a", "ann")
    known.remember(b"b", "bob")
    assert known.find(b"a") == "ann"
    known.remember(b"c", "cid")
    assert [known.find(header) for header in (b"a", b"b", b"c")] == ["ann", None, "cid"]


def test_a_connection_that_sends_the_same_header_again_has_nothing_hashed(monkeypatch):
    known, digests = CredentialCache(), {}
    known.remember(b"Basic a", "ann")
    assert known.find(b"Basic a", digests) == "ann"
    monkeypatch.delattr(credentials, "_digest")
    assert known.find(bytes(bytearray(b"Basic a")), digests) == "ann"


def test_another_header_on_the_connection_is_looked_up():
    known, other, digests = CredentialCache(), CredentialCache(), {}
    known.remember(b"Basic a", "ann")
    other.remember(b"Basic b", "bob")
    headers = (b"Basic a", b"Basic b", b"Basic a")
    assert [known.find(header, digests) for header in headers] == ["ann", None, "ann"]
    assert [other.find(header, digests) for header in headers] == [None, "bob", None]
    assert len(digests) == 1
