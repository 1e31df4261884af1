"""A second attack: with log_format=text a location or name of two lines wrote a line of the log of its own."""

import io
import logging

import pytest
import structlog

from hms_gateway.runtime.logging import configure_logging
from tests.gateway.observability.test_access_log import lines
from tests.gateway.serving import record

FORGED = "2026-11-22T11:00:00.000000Z [info] user=admin"
ENDS = ["\n", "\r", "\u2028", "\x85", "\x1b[2K\x1b[1G"]


@pytest.mark.parametrize("end", ENDS)
def test_a_text_of_a_caller_begins_no_line(end):
    stream = io.StringIO()
    configure_logging(log_format="text", stream=stream)
    logging.getLogger("hms_gateway.metastore").warning("Kept %s: it is outside", f"file:/x{end}{FORGED}")
    structlog.get_logger("hms_gateway").warning("refused", user=f"é{end}{FORGED}")
    first, second = stream.getvalue().removesuffix("\n").split("\n")
    assert FORGED in first
    assert first.isprintable()
    assert "é" in second
    assert second.isprintable()


@pytest.mark.parametrize("end", ENDS)
def test_a_name_of_a_caller_begins_no_line_of_the_access_log(end):
    (line,) = lines(record(method=f"x{end}{FORGED}", user=f"a{end}{FORGED}"), log_format="text")
    assert line.isprintable()
    assert line.count(FORGED) == 2


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ("ann get_table ok 200", '"ann get_table ok 200"'),
        ('x" admin drop_table ok 200 "', r'"x\" admin drop_table ok 200 \""'),
        ('x\\" admin', r'"x\\\" admin"'),
        ("-", '"-"'),
        ("", "-"),
        ("ann", "ann"),
    ],
)
def test_a_name_of_a_caller_is_one_word_of_the_access_log(user, shown):
    (line,) = lines(record(user=user), log_format="text")
    assert f" 127.0.0.1 {shown} get_table ok 200 " in line
