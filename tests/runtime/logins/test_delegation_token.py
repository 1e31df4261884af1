"""Delegation tokens in Hadoop's format, and the digests that show them."""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.runtime.logins.delegation_token import (
    PART_CHARACTERS_MAX,
    DigestError,
    Proof,
    TokenName,
    UnreadableToken,
    read_response,
    read_token_text,
    token_text,
)

NAME = TokenName("alice", "yarn", "", 1_700_000_000_000, 1_700_604_800_000, 7)
# As Hadoop writes this name: a version, three texts, two long numbers, two short ones.
WRITTEN = bytes.fromhex("00 05") + b"alice" + b"\x04yarn" + bytes.fromhex("00 8a018bcfe56800 8a018bf3f1ec00 07 00")


def test_a_name_is_written_as_by_hadoop():
    assert NAME.encode() == WRITTEN
    assert TokenName.decode(WRITTEN) == NAME


@pytest.mark.parametrize("number", [-(2**63), -113, -112, -1, 0, 127, 128, 255, 256, 2**31, 2**63 - 1])
def test_numbers_of_any_size(number):
    name = TokenName("a", "", "", number, -number, 0)
    assert TokenName.decode(name.encode()) == name


def test_a_text_has_name_and_password():
    text = token_text(WRITTEN, b"\xff" * 200)
    assert read_token_text(text) == read_token_text(text.encode()) == (WRITTEN, b"\xff" * 200)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("!", "not base64"),
        ("\ud800", "not base64"),
        ("", "not complete"),
        ("A" * 9_000, "longer than 8192 bytes"),
        (token_text(WRITTEN, b"p")[:-8], "not complete|not of the kind"),
        (base64.b64encode(b"\x00\x00\x05OTHER\x00").decode(), "not of the kind"),
        (base64.b64encode(base64.urlsafe_b64decode(token_text(WRITTEN, b"p") + "==") + b"x").decode(), "more behind"),
        (base64.b64encode(b"\xff").decode(), "not complete"),
    ],
)
def test_what_is_not_a_token(text, problem):
    with pytest.raises(UnreadableToken, match=problem):
        read_token_text(text)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (b"", "not complete"),
        (b"\x01" + WRITTEN[1:], "another version"),
        (b"\x00\x01\xff" + WRITTEN, "not UTF-8"),
        (b"\x00\x8e\x01\x01" + b"a" * 257 + WRITTEN, "longer than 256 characters"),
        (WRITTEN + b"x", "more behind its end"),
    ],
)
def test_what_is_not_a_name(written, problem):
    with pytest.raises(UnreadableToken, match=problem):
        TokenName.decode(written)


@given(st.binary(max_size=60))
def test_bytes_of_others_are_a_name_or_refused(written):
    try:
        name = TokenName.decode(written)
    except UnreadableToken:
        return
    assert TokenName.decode(name.encode()) == name


@given(st.binary(max_size=60))
def test_a_response_of_others_is_refused(response):
    with pytest.raises(DigestError):
        read_response(response, "nonce")


def test_a_response_is_read_as_the_standard_writes_it():
    sent = (
        'charset=utf-8,username="QUJD", realm="default",nonce="n\\"1",nc=00000001,cnonce="c,\\\\d",'
        'digest-uri="null/default",maxbuf=65536,response=0123,qop=auth'
    )
    assert read_response(sent.encode(), 'n"1') == Proof("QUJD", 'n"1', "c,\\d", "0123")


def test_a_proof_passes_a_header():
    proof = Proof("QUJD", 'n"1', "ü", "0123")
    assert Proof.from_header(proof.header) == proof


@pytest.mark.parametrize("field", ["nonce", "client_nonce", "response"])
def test_a_proof_has_no_long_parts(field):
    """Clients choose them, and logins are remembered."""
    proof = msgspec.structs.replace(Proof("QUJD", "n", "c", "0123"), **{field: "x" * (PART_CHARACTERS_MAX + 1)})
    with pytest.raises(DigestError, match="cannot be read"):
        Proof.from_header(proof.header)
