"""Credentials remembered by header."""

from hms_gateway.gateway.auth.credentials import CredentialCache


def test_headers_are_bounded_and_the_least_used_goes_first():
    known = CredentialCache(entries_max=2)
    known.remember(b"a", "ann")
    known.remember(b"b", "bob")
    assert known.find(b"a") == "ann"
    known.remember(b"c", "cid")
    assert [known.find(header) for header in (b"a", b"b", b"c")] == ["ann", None, "cid"]
