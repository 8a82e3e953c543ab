"""The form of amounts."""

from __future__ import annotations

import pytest

from spark_bridge.model.summary import Load, PlannedBroker
from spark_bridge.report.measures import BYTES, BYTES_IN, REPLICAS, count, percent, size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (1_130_000_000_000, "1.13 TB"),
        (-318_000_000_000, "-318 GB"),
        (2_500_000_000_000_000_000_000, "2,500 EB"),
    ],
)
def test_sizes_have_three_digits(number: int, text: str) -> None:
    assert size(number) == text


def test_sizes_that_round_up_to_ten_keep_three_digits() -> None:
    assert size(9_999) == "10.0 kB"
    assert size(99_960) == "100 kB"


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (-1e-17, "0 %"),
        (0, "0 %"),
        (0.05, "5 %"),
        (0.0473, "4.7 %"),
        (0.0502, "5.0 %"),
        (0.0999, "10 %"),
        (0.123, "12 %"),
        (15, "1,500 %"),
    ],
)
def test_parts_are_percents(part: float, text: str) -> None:
    assert percent(part) == text


def test_a_share_of_a_few_things_has_a_decimal() -> None:
    assert [count(3), count(2.5), count(1234.5)] == ["3", "2.5", "1,234"]


def test_a_rate_is_written_in_full_or_under_a_heading() -> None:
    assert (BYTES_IN.text(1_500_000), BYTES_IN.write(1_500_000), BYTES_IN.heading) == (
        "1.50 MB/s",
        "1.50 MB",
        "bytes in/s",
    )


def test_a_change_has_a_sign_and_none_is_a_dash() -> None:
    broker = PlannedBroker(1, None, "live", 1.0, None, Load(replicas=5, bytes=2000), Load(replicas=7, bytes=500))
    assert [REPLICAS.difference(broker), BYTES.difference(broker), BYTES_IN.difference(broker)] == [
        "+2",
        "-1.50 kB",
        "-",
    ]
