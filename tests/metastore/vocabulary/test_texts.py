"""Texts of values."""

import pytest

from hms_gateway.metastore.vocabulary.texts import time_text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (0, None),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_999, "2023-11-14T22:13:20Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (99_999_999_999, "5138-11-16T09:46:39Z"),
        (2**63 - 1, "9223372036854775807"),
    ],
)
def test_times_are_seconds_or_milliseconds(moment, text):
    assert time_text(moment) == text
