"""Numbers as people read them."""

import pytest

from hms_gateway.pipeline.reports import Unit, amount_text, bytes_text, count_text, duration_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1_023, "1,023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (10_240, "10 KiB"),
        (1_048_575, "1 MiB"),
        (1_048_576, "1 MiB"),
        (3 * 1_024**4, "3 TiB"),
        (5_000 * 1_024**6, "5,000 EiB"),
    ],
)
def test_bytes(value, text):
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.42, "0.4 s"), (12.4, "12 s"), (90, "1.5 min"), (7_200, "2 h"), (864_000, "10 d")],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


def test_counts_and_shares():
    assert count_text(1_234_567) == "1,234,567"
    assert count_text(2.0) == "2"
    assert count_text(0.125) == "0.12"
    assert amount_text(99.96, Unit.PERCENT) == "100 %"
    assert amount_text(12.34, Unit.PERCENT) == "12.3 %"
    assert amount_text(2_048, Unit.BYTES) == "2 KiB"
