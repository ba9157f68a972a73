"""Ranges of seeds, as options name them."""

from __future__ import annotations


class BadRange(ValueError):
    """A range of seeds that cannot be read."""


def parse_seeds(text: str) -> tuple[int, int]:
    """``A:B`` or one number. Raises :class:`BadRange` saying what was expected."""
    first, colon, last = text.partition(":")
    try:
        begin = int(first)
        end = int(last) if colon else begin + 1
    except ValueError:
        raise BadRange(f"--seeds {text}: expected A:B, such as 0:1000, or one number") from None
    if begin < 0 or end <= begin:
        raise BadRange(f"--seeds {text}: expected at least one seed from 0 on, such as 0:1000")
    return begin, end
