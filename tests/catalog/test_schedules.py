"""When cron expressions come round, beside a second-by-second reading of them where that is short enough."""

from datetime import UTC, datetime

import pytest

from hms_gateway.catalog.scheduled_queries import InvalidSchedule, parse_schedule


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("schedule", "now", "following"),
    [
        ("* * * * * ?", "2024-02-28T23:59:59", "2024-02-29T00:00:00"),
        ("0 0 0 * * ?", "2024-01-01T00:00:00", "2024-01-02T00:00:00"),
        ("0 0 0 * * ? *", "2023-12-31T12:00:00", "2024-01-01T00:00:00"),
        ("0 0/15 8-9 * * ?", "2024-01-01T08:15:00", "2024-01-01T08:30:00"),
        ("0 0/15 8-9 * * ?", "2024-01-01T09:45:00", "2024-01-02T08:00:00"),
        ("30 5,10 3 * * ?", "2024-01-01T03:05:30", "2024-01-01T03:10:30"),
        ("0 0 22-2 * * ?", "2024-01-01T02:00:00", "2024-01-01T22:00:00"),
        ("0 0 12 ? * MON-FRI", "2024-01-05T12:00:00", "2024-01-08T12:00:00"),
        ("0 0 12 ? * SAT,1", "2024-01-06T12:00:00", "2024-01-07T12:00:00"),
        ("0 0 0 29 2 ?", "2024-02-29T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 0 1 JAN,jul ?", "2024-01-01T00:00:00", "2024-07-01T00:00:00"),
        ("0 0 0 L * ?", "2024-02-01T00:00:00", "2024-02-29T00:00:00"),
        ("0 0 0 L-2 * ?", "2023-02-01T00:00:00", "2023-02-26T00:00:00"),
        ("0 0 0 LW * ?", "2024-03-01T00:00:00", "2024-03-29T00:00:00"),
        ("0 0 0 15W * ?", "2024-06-01T00:00:00", "2024-06-14T00:00:00"),
        ("0 0 0 1W * ?", "2024-06-01T00:00:00", "2024-06-03T00:00:00"),
        ("0 0 0 ? * 6L", "2024-03-01T00:00:00", "2024-03-29T00:00:00"),
        ("0 0 0 ? * FRI#2", "2024-03-01T00:00:00", "2024-03-08T00:00:00"),
        ("0 0 0 1 1 ? 2030", "2024-03-01T00:00:00", "2030-01-01T00:00:00"),
        ("0 0 0 1 1 ? 2024/3", "2024-03-01T00:00:00", "2027-01-01T00:00:00"),
        ("59 59 23 31 12 ? 2099", "2099-12-31T23:59:58", "2099-12-31T23:59:59"),
    ],
)
def test_the_next_time(schedule: str, now: str, following: str) -> None:
    found = parse_schedule(schedule).next_after(at(now))
    assert found is not None
    assert datetime.fromtimestamp(found, UTC) == datetime.fromisoformat(following).replace(tzinfo=UTC)


@pytest.mark.parametrize("schedule", ["0 0 0 30 2 ?", "0 0 0 1 1 ? 2020", "59 59 23 31 12 ? 2099"])
def test_some_times_never_come(schedule: str) -> None:
    assert parse_schedule(schedule).next_after(at("2099-12-31T23:59:59")) is None


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * * ?", "60 * * * * ?", "* * 24 * * ?", "* * * 32 * ?", "* * * ? * ?", "* * * ? * 8", "0 0 0 1 13 ?",
     "a * * * * ?", "*/0 * * * * ?", "* * * ? * FRI#6", "* * * L-x * ?", "0 0 0 ? * FRY", "1- * * * * ?", "x" * 600],
)  # fmt: skip
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(InvalidSchedule):
        parse_schedule(schedule)
