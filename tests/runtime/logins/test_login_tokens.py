"""Tokens that callers send: read from files and programs, again when they change, end or are refused."""

import base64
import json
import sys

import pytest

from hms_gateway.runtime.logins.login_tokens import (
    RENEWED_EVERY_SECONDS,
    LoginToken,
    TokenCommand,
    TokenError,
    expiry_of,
    read_token,
)


class Clock:
    now = 1_700_000_000

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def signed(exp: object, name: str = "a") -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": exp, "sub": name}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


class Program:
    """Prints what is in a file, and counts how often it ran."""

    def __init__(self, folder) -> None:
        self.file, self.runs = folder / "printed", folder / "runs"
        code = f"open({str(self.runs)!r}, 'a').write('x'); print(open({str(self.file)!r}).read())"
        self.command = TokenCommand((sys.executable, "-S", "-c", code))

    @property
    def count(self) -> int:
        return len(self.runs.read_text())


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def test_a_file_is_read_again_when_it_changes(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("one\nmore\n")
    token = LoginToken(file, now=clock, monotonic=clock)
    assert token.known() == "one"
    file.write_text("another")
    assert token.known() == "one"
    clock.now += 1
    assert token.known() is None
    assert token.read() == "another"
    assert token.known() == "another"


def test_a_file_that_cannot_be_read_leaves_the_token_before(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("one")
    token = LoginToken(file, now=clock, monotonic=clock)
    file.unlink()
    clock.now += 1
    assert token.known() is None
    assert token.read() == "one"
    with pytest.raises(TokenError, match="cannot be read"):
        token.renewed("one")


def test_a_program_runs_again_before_its_token_ends(program, clock):
    program.file.write_text(signed(clock.now + 100, "a"))
    token = LoginToken(program.command, now=clock, monotonic=clock)
    clock.now += 79
    assert token.known() == signed(1_700_000_100, "a")
    clock.now += 1
    assert token.known() is None
    program.file.write_text(signed(clock.now + 100, "b"))
    assert token.read() == token.known() == signed(1_700_000_180, "b")
    assert program.count == 2


def test_a_program_that_fails_leaves_the_token_until_it_ends(program, clock):
    program.file.write_text(signed(clock.now + 100))
    token = LoginToken(program.command, now=clock, monotonic=clock)
    program.file.unlink()
    clock.now += 85
    assert token.read() == token.text
    assert token.known() == token.text
    clock.now += 15
    with pytest.raises(TokenError, match="ended with exit status 1"):
        token.read()


def test_a_refused_token_is_asked_for_again_but_not_without_end(program, clock):
    program.file.write_text("one")
    token = LoginToken(program.command, now=clock, monotonic=clock)
    assert token.renewed("one") is None
    program.file.write_text("two")
    assert token.renewed("one") is None
    clock.now += RENEWED_EVERY_SECONDS
    assert token.renewed("one") == "two"
    # Of another call that was refused with the one before.
    assert token.renewed("one") == "two"
    assert program.count == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("false",), "token_command false ended with exit status 1"),
        (("no-such-program",), "token_command no-such-program cannot be run"),
        (("true",), "token_command true has no token in its first line"),
        (("printf", "a\x01b"), "has no token in its first line"),
        (("printf", "ä"), "has no token in its first line"),
    ],
)
def test_what_is_wrong_with_a_program_is_named(words, says):
    with pytest.raises(TokenError, match=says):
        read_token(TokenCommand(words))


@pytest.mark.parametrize("token", ["hmsgw_abc", "a.b.c", "a.e30.c", f"a.{'W1tb' * 3000}.c", signed("x"), "..", "é.é.é"])
def test_others_do_not_say_when_they_end(token):
    assert expiry_of(token) is None
    assert expiry_of(signed(7)) == 7
