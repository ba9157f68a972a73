"""Times at the beginning of lines, in every format that a logger or a collector is known to write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rejoin.pipeline.reading.peeling.stamps import Calendar, Stamp, begins_with_time

FULL = ("2025-03-09", "07:05:03")


@pytest.mark.parametrize(
    ("line", "stamp"),
    [
        ("2025-03-09 07:05:03,250 INFO x", (*FULL, "250", None)),
        ("2025-03-09T07:05:03.250Z INFO x", (*FULL, "250", "Z")),
        ("2025-03-09T07:05:03.250123456+01:00 x", (*FULL, "250123456", "+01:00")),
        ("[2025-03-09 07:05:03 +0000] [7] [INFO] x", (*FULL, None, "+0000")),
        ("[2025-03-09 07:05:03,250: WARNING/MainProcess] x", (*FULL, "250", None)),
        ("I, [2025-03-09T07:05:03.250123 #7]  INFO -- : x", (*FULL, "250123", None)),
        ("2025/03/09 07:05:03.250123 client.go:7: x", (*FULL, "250123", None)),
        ("2025.03.09 07:05:03.250123 [ 7 ] {} <Warning> x", (*FULL, "250123", None)),
        ("25/03/09 07:05:03 INFO x", (*FULL, None, None)),
        ("03/09/2025 07:05:03 AM x", (*FULL, None, None)),
        ("[Nest] 1  - 03/09/2025, 7:05:03 AM   ERROR x", (*FULL, None, None)),
        ("[WARNING] 03/09/2025 07:05:03 PM x", ("2025-03-09", "19:05:03", None, None)),
        ("09.03.2025 07:05:03 x", (*FULL, None, None)),
        ("31/03/2025 07:05:03 x", ("2025-03-31", "07:05:03", None, None)),
        ("9 Mar 2025 07:05:03,250 x", (*FULL, "250", None)),
        ("09/Mar/2025:07:05:03 +0000 x", (*FULL, None, "+0000")),
        ("Sun, 09 Mar 2025 07:05:03 GMT x", (*FULL, None, "Z")),
        ("2025 Mar 09 07:05:03  | x", (*FULL, None, None)),
        ("Mar 9, 2025 @ 07:05:03.250 x", (*FULL, "250", None)),
        ("Mar 09, 2025 7:05:03 PM org.apache.kafka x", ("2025-03-09", "19:05:03", None, None)),
        ("Sun Mar  9 07:05:03 UTC 2025 x", (*FULL, None, None)),
        ("Mar  9 07:05:03 host app[1]: x", ("03-09", "07:05:03", None, None)),
        ("I0309 07:05:03.250123       1 file.go:12] x", ("03-09", "07:05:03", "250123", None)),
        ("07:05:03.250 [main] INFO x", (None, "07:05:03", "250", None)),
        ('time="2025-03-09T07:05:03Z" level=info msg=x', (*FULL, None, "Z")),
    ],
)
def test_a_time_is_read(line: str, stamp: tuple[str | None, ...]) -> None:
    begun = begins_with_time(line)
    assert begun is not None
    assert begun.stamp == Stamp(*stamp)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "at_ms"),
    [
        ("1741503903.250 RDKAFKA-7-X: x", 1_741_503_903_250),
        ("%4|1741503903.250|MAXPOLL|x", 1_741_503_903_250),
        ("1741503903250 INFO x", 1_741_503_903_250),
        ("1741503903250000 x", 1_741_503_903_250),
        ("1741503903250000000 x", 1_741_503_903_250),
        ("1741503903 x", 1_741_503_903_000),
    ],
)
def test_an_instant_is_read(line: str, at_ms: int) -> None:
    begun = begins_with_time(line)
    assert begun is not None
    assert begun.stamp == Stamp(at_ms=at_ms)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "12 members",
        "1234567890123456789012 x",
        "1.2.3.4:9092",
        "March on",
        "Monday",
        "[INFO] x",
        "99999 x",
        "::1",
    ],
)
def test_other_beginnings_are_no_times(line: str) -> None:
    assert begins_with_time(line) is None


def test_a_year_that_is_not_written_is_that_of_the_file_and_goes_on_over_new_year() -> None:
    calendar = Calendar(datetime(2025, 1, 2, tzinfo=UTC))
    days = [calendar.whole(Stamp(day, "12:00:00")).date for day in ("12-30", "12-31", "01-01")]
    assert days == ["2024-12-30", "2024-12-31", "2025-01-01"]
    assert calendar.guessed


def test_a_date_that_is_not_written_goes_on_over_midnight() -> None:
    calendar = Calendar(datetime(2025, 1, 2, tzinfo=UTC))
    times = ["23:59:59", "00:00:01", "12:00:00"]
    assert [calendar.whole(Stamp(None, time)).date for time in times] == ["2025-01-02", "2025-01-03", "2025-01-03"]
