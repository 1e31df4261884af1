"""Standard streams that are closed, full, or not text; and words that no call could be made with."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click
import pytest
from click.testing import CliRunner

from hms_gateway.cli import main
from hms_gateway.cli.application import application
from hms_gateway.cli.terminal.output import fail, say

NOT_TEXT = b"\xff\xfe\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["user", "add", "zoe", "--password-stdin"], "the password on standard input is not UTF-8"),
        (["ls", "--password-stdin"], "the password on standard input is not UTF-8"),
        (["ls", "--timeout", "nan"], "nan is not a number from above 0 to 2,592,000"),
        (["ls", "--timeout", "1e300"], "1e300 is not a number from above 0 to 2,592,000"),
        (["ls", "--token-command", ""], "the command is empty"),
        (["ls", "--url", "https://[::1/"], "'https://[::1/' is not a URL"),
        (["ls", "-k", "-H", "a: b\nc: d"], "is not NAME: VALUE"),
        (["ls", "-k", "-H", "a b: c"], "is not NAME: VALUE"),
        (["locks", "explain", "--operation", "insert"], "--operation needs --on or --reads"),
    ],
)
def test_what_cannot_be_used_is_named(words: list[str], expected: str, tmp_path: Path) -> None:
    more = ["--data-dir", str(tmp_path)] if words[0] == "user" else []
    env = {} if "--password-stdin" in words else {"HMS_GATEWAY_PASSWORD": "secret"}
    result = CliRunner().invoke(application, [*words, *more], input=NOT_TEXT, env=env)
    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.split())


def test_a_password_of_the_environment_that_is_not_text_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HMS_GATEWAY_PASSWORD", "\udcff")
    result = CliRunner().invoke(application, ["ls", "-k"])
    assert (result.exit_code, result.stderr) == (2, "error: the password in HMS_GATEWAY_PASSWORD is not UTF-8\n")


@pytest.fixture
def full() -> Iterator[IO[str]]:
    file = open("/dev/full", "w")  # noqa: SIM115
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):
            file.close()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_in_one_line(
    full: IO[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", full)
    monkeypatch.setattr(sys, "argv", ["hms-gateway", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: the output cannot be written: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.parametrize(("advice", "fails", "status"), [("", True, 2), ("try again", True, 2), ("", False, 0)])
def test_a_status_is_the_same_when_nobody_reads_the_answers(
    advice: str, fails: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command
    def answer() -> None:
        print("a row")
        say("one row so far")
        if fails:
            fail("no more rows", advice)

    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr("hms_gateway.cli.application.application", answer)
    monkeypatch.setattr(sys, "argv", ["hms-gateway"])
    with open(writer, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == status
    lines = ["one row so far", *(["error: no more rows"] if fails else []), *([advice] if advice else [])]
    assert capsys.readouterr().err.splitlines() == lines


def test_closed_streams_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(sys, "argv", ["hms-gateway", "locks", "explain", "drop table t"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
