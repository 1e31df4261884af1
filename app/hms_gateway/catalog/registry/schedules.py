"""Cron expressions in Quartz's form, as scheduled queries have them: when is the next time.

Six or seven fields: seconds, minutes, hours, day of month, month, day of week, and perhaps the year. A field is `*`, or
a list of values, ranges and steps (`1,5-9,0/15`); months and days have names. One of the two day fields is `?`, or both
hold. Days of month also know `L` (the last), `L-3`, `15W` (the nearest weekday) and `LW`; days of week count from 1,
Sunday, and know `6L` (the last Friday) and `6#3` (the third one). Times are UTC.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_YEARS: Final = (1970, 2099)
_CHARACTERS_MAX: Final = 500


class InvalidSchedule(ValueError):
    """A text is not a cron expression; the message says why."""


class Schedule(msgspec.Struct, frozen=True):
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: str
    months: frozenset[int]
    weekdays: str
    years: frozenset[int]

    def next_after(self, seconds: int) -> int | None:
        """The first time after `seconds`, both since the epoch; None when there is none up to 2099."""
        start = datetime.fromtimestamp(seconds, UTC) + timedelta(seconds=1)
        day, earliest = start.date(), (start.hour, start.minute, start.second)
        while day.year <= _YEARS[1]:
            if day.year not in self.years:
                day = date(day.year + 1, 1, 1)
            elif day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
            else:
                found = self._time_of_day(earliest) if self._is_on(day) else None
                if found is not None:
                    return int(datetime(day.year, day.month, day.day, *found, tzinfo=UTC).timestamp())
                day += timedelta(days=1)
            earliest = (0, 0, 0)
        return None

    def _is_on(self, day: date) -> bool:
        return _is_day_of_month(self.days, day) and _is_weekday(self.weekdays, day)

    def _time_of_day(self, earliest: tuple[int, int, int]) -> tuple[int, int, int] | None:
        times = ((hour, minute, second) for hour in self.hours for minute in self.minutes for second in self.seconds)
        if earliest == (0, 0, 0):
            return next(times)
        return next((time for time in times if time >= earliest), None)


def parse_schedule(text: str) -> Schedule:
    """Raises InvalidSchedule."""
    fields = text.upper().split()
    if len(fields) not in (6, 7) or len(text) > _CHARACTERS_MAX:
        raise InvalidSchedule("a schedule has six or seven fields")
    seconds, minutes, hours, days, months, weekdays = fields[:6]
    if days == "?" and weekdays == "?":
        raise InvalidSchedule("only one of the two day fields may be ?")
    schedule = Schedule(
        _sorted(seconds, 0, 59),
        _sorted(minutes, 0, 59),
        _sorted(hours, 0, 23),
        days,
        frozenset(_numbers(months, 1, 12, _MONTHS)),
        weekdays,
        frozenset(_numbers(fields[6] if len(fields) == 7 else "*", *_YEARS)),
    )
    # Both are evaluated day by day: whatever is wrong with them shows here.
    for day in (date(2024, 2, 1), date(2024, 3, 1)):
        _is_day_of_month(days, day)
        _is_weekday(weekdays, day)
    return schedule


def _sorted(field: str, low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted(set(_numbers(field, low, high))))


def _numbers(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> Iterator[int]:
    for part in field.split(","):
        whole, slash, step_text = part.partition("/")
        first_text, dash, last_text = whole.partition("-")
        if whole in ("*", "?"):
            first, last = low, high
        else:
            first = _number(first_text, low, high, names)
            last = _number(last_text, low, high, names) if dash else high if slash else first
        step = _number(step_text, 1, high, ()) if slash else 1
        # A range may go past the end: 22-2 is 22, 23, 0, 1, 2.
        size = high - low + 1
        for offset in range(0, (last - first) % size + 1, step):
            yield (first - low + offset) % size + low


def _number(text: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + low
    if not (text.isascii() and text.isdigit()) or len(text) > 4 or not low <= int(text) <= high:
        raise InvalidSchedule(f"{text[:20]!r} is not between {low} and {high}")
    return int(text)


def _is_day_of_month(field: str, day: date) -> bool:
    last = monthrange(day.year, day.month)[1]
    for part in field.split(","):
        if part in ("*", "?"):
            return True
        if part == "L":
            found = {last}
        elif part == "LW":
            found = {_nearest_weekday(day, last)}
        elif part.startswith("L-"):
            found = {last - _number(part[2:], 0, 30, ())}
        elif part.endswith("W"):
            found = {_nearest_weekday(day, min(_number(part[:-1], 1, 31, ()), last))}
        else:
            found = set(_numbers(part, 1, 31))
        if day.day in found:
            return True
    return False


def _nearest_weekday(day: date, wanted: int) -> int:
    """The weekday of the month that is nearest to a day of it."""
    last = monthrange(day.year, day.month)[1]
    weekday = day.replace(day=wanted).weekday()
    if weekday == 5:
        return wanted - 1 if wanted > 1 else wanted + 2
    if weekday == 6:
        return wanted + 1 if wanted < last else wanted - 2
    return wanted


def _is_weekday(field: str, day: date) -> bool:
    number = day.isoweekday() % 7 + 1
    last = monthrange(day.year, day.month)[1]
    for part in field.split(","):
        if part in ("*", "?"):
            return True
        if part == "L":
            is_on = number == 7
        elif part.endswith("L"):
            is_on = number == _number(part[:-1], 1, 7, _DAYS) and day.day > last - 7
        elif "#" in part:
            weekday, _, which = part.partition("#")
            is_on = number == _number(weekday, 1, 7, _DAYS) and (day.day + 6) // 7 == _number(which, 1, 5, ())
        else:
            is_on = number in _numbers(part, 1, 7, _DAYS)
        if is_on:
            return True
    return False
