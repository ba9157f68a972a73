"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.protocol.units import LONGEST_MS, duration_ms, format_duration, iso_duration_ms, size_bytes


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250us", 0.25), ("250ms", 250), ("1.5s", 1_500), ("5m", 300_000), ("1h30m", 5_400_000), (" 2d ", 172_800_000)],
)
def test_a_duration_names_its_unit(text: str, ms: float) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "5", "5 minutes", "m5", "-5s", "nan", "1e3s"])
def test_a_duration_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a length of time with its unit"):
        duration_ms(text)


def test_a_bare_number_counts_in_the_unit_of_its_option() -> None:
    assert duration_ms("2.5", bare="s") == 2_500
    assert duration_ms("2.5ms", bare="s") == 2.5


def test_a_duration_ends_after_ten_years() -> None:
    assert duration_ms("3653d") == LONGEST_MS
    with pytest.raises(ValueError, match="at most ten years"):
        duration_ms("3654d")


@given(st.integers(0, LONGEST_MS))
def test_a_formatted_duration_is_read_back(ms: int) -> None:
    shown = format_duration(ms)
    assert abs(duration_ms(shown) - ms) <= 0.5, shown


def test_durations_are_formatted_as_people_write_them() -> None:
    assert [format_duration(ms) for ms in (250, 1_500, 90_000, 5_400_000)] == ["250ms", "1.5s", "1m30s", "1h30m"]


def test_kafkas_tools_write_iso_8601() -> None:
    assert iso_duration_ms("P1DT2H3M4.5S") == ((26 * 60 + 3) * 60 + 4) * 1_000 + 500
    assert iso_duration_ms("-PT1S") == -1_000
    for wrong in ("P", "1H", "PT"):
        with pytest.raises(ValueError, match="expected PnDTnHnMnS"):
            iso_duration_ms(wrong)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("4096", 4_096), ("64MiB", 64 * 2**20), ("1 kB", 1_000), ("2gib", 2**31)]
)
def test_a_size_is_bytes_or_names_its_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5MiB", "64MIX", "MiB"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number of bytes, or a size such as 64MiB"):
        size_bytes(text)
