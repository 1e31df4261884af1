"""Everything logged ends in the same lines."""

import io
import json
import logging

import pytest
import structlog

from hms_gateway.runtime.logging import configure_logging, format_for_stderr
from tests.support.kept_logging import kept_logging


def logged(write, **options) -> list[str]:
    stream = io.StringIO()
    configure_logging(stream=stream, **options)
    write()
    return stream.getvalue().splitlines()


def test_structlog_and_the_standard_library_look_alike():
    def write():
        structlog.get_logger("ours").warning("one", table="a.b", odd=object)
        logging.getLogger("theirs").error("two %s", 2)

    one, two = map(json.loads, logged(write))
    assert (one["event"], one["level"], one["logger"], one["table"]) == ("one", "warning", "ours", "a.b")
    assert (two["event"], two["level"], two["logger"]) == ("two 2", "error", "theirs")
    assert one["timestamp"].endswith("Z")


def test_a_traceback_is_part_of_its_line():
    def write():
        try:
            raise ValueError("inside")
        except ValueError:
            logging.getLogger("x").exception("failed")

    (line,) = logged(write)
    assert "ValueError: inside" in json.loads(line)["exception"]


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_traceback_shows_no_values(log_format):
    """Passwords and tokens are in variables of what fails."""

    def check(password):
        raise ValueError("inside")

    def write():
        try:
            check("".join(["plan", "ted"]))
        except ValueError:
            structlog.get_logger("ours").exception("failed")
            logging.getLogger("theirs").exception("failed")

    text = "\n".join(logged(write, log_format=log_format))
    assert text.count("ValueError: inside") == 2
    assert "planted" not in text


def test_levels_below_the_wanted_one_are_left_out():
    def write():
        structlog.get_logger("ours").info("hidden")
        logging.getLogger("x").info("hidden")
        logging.getLogger("uvicorn.error").info("hidden")

    assert logged(write, level="warning") == []


def test_text_for_people():
    (line,) = logged(lambda: structlog.get_logger("ours").info("hello", a=1), log_format="text")
    assert "hello" in line
    assert not line.startswith("{")


def test_a_test_that_configures_logging_changes_nothing_for_the_next():
    """One that left a handler with a closed stream made a later test fail that read what a command printed."""

    def state():
        loggers = [logging.getLogger(name) for name in (None, "uvicorn")]
        return [(logger.level, logger.handlers[:]) for logger in loggers], structlog.get_config()["processors"]

    before = state()
    with kept_logging():
        configure_logging(level="error", stream=io.StringIO())
        assert state() != before
    assert state() == before


@pytest.mark.parametrize(
    ("chosen", "is_terminal", "expected"),
    [(None, True, "text"), (None, False, "json"), ("json", True, "json"), ("text", False, "text")],
)
def test_without_a_choice_a_terminal_gets_text(chosen, is_terminal, expected, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert format_for_stderr(chosen) == expected
