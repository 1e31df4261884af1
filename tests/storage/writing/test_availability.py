"""An outage is one line when it begins and one when it ends; who waits on a database that hangs hears of it."""

import socket

import pytest
from structlog.testing import capture_logs

from hms_gateway.metastore.ports.store import OutcomeUnknown, StoreUnavailable
from hms_gateway.storage.dialects.base import NoAnswer
from hms_gateway.storage.writing.availability import Availability
from tests.support.manual_clock import ManualClock

AWAY = StoreUnavailable("the database cannot be reached", "connection refused")


def test_an_outage_of_many_calls_is_two_lines_with_its_length_and_the_calls() -> None:
    clock = ManualClock()
    availability = Availability(clock.seconds)
    with capture_logs() as lines:
        for _ in range(200):
            availability.note("read", AWAY)
        availability.note("write", AWAY)
        assert not availability.is_up
        clock.advance(30)
        availability.note("read")
        assert not availability.is_up
        availability.note("write", ValueError("of the caller"))
        availability.note("read")
    assert availability.is_up
    assert lines == [
        {
            "event": "the database cannot be used",
            "problem": "the database cannot be reached",
            "detail": "connection refused",
            "log_level": "error",
        },
        {"event": "the database can be used again", "seconds": 30, "refused": 201, "log_level": "warning"},
    ]


def test_a_new_connection_ends_an_outage_of_any_kind() -> None:
    availability = Availability()
    availability.note("write", AWAY)
    availability.note_answer(AWAY)
    availability.note_answer()
    assert availability.is_up


def test_a_limit_of_the_gateway_is_no_outage_and_a_lost_commit_is_counted() -> None:
    availability = Availability()
    availability.note("write", StoreUnavailable("too many", limit="write_queue_max"))
    availability.note("write", OutcomeUnknown("lost"))
    assert (availability.is_up, availability.lost_commits) == (True, 1)


def test_a_database_that_hangs_loses_its_connections_and_gets_no_new_ones() -> None:
    availability = Availability()
    closed, other = socket.socketpair()
    for end in (closed, other):
        end.close()
    availability.keep(closed)
    ours, others = socket.socketpair()
    with ours, others:
        availability.keep(ours)
        availability.note_answer(AWAY)
        availability.check()
        assert others.send(b"x") == 1
        assert ours.recv(1) == b"x"
        availability.note_answer(NoAnswer(TimeoutError("no answer")))
        assert ours.recv(1) == b""
        with pytest.raises(StoreUnavailable, match="does not answer within 10 s"):
            availability.check()
        availability.note_answer()
        availability.check()
