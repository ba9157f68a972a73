"""Real files with mistakes in them, for readers that must report every mistake in words."""

from __future__ import annotations

import os
import re
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st

EXAMPLES: Final = int(os.environ.get("REJOIN_FUZZ_EXAMPLES", "60"))
"""Mutated files of each kind; ``make fuzz`` takes more."""

FUZZED: Final = settings(max_examples=EXAMPLES)

TOKENS: Final = (
    b"", b"\x00", b"\xff\xfe", b"\n", b"\r\n", b"{", b"}", b"[" * 3_000, b'{"a":' * 3_000, b'"', b"\\ud800", b"\\u0000",
    b"null", b"true", b"NaN", b"1e400", b"-1", b"0", b"2147483647", b"2147483648", b"9223372036854775807", b"9" * 20,
    b"9" * 5_000, b"0000-01-01", b"9999-12-31", b"[]", b"{}", b'""', b"&a [*a]", b"\xc3\xa9", b" ", b":",
)  # fmt: skip
"""What does not belong where it is put."""

_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")
_VALUE: Final = re.compile(rb'"[^"\n]*"|-?\d+|\b\w+\b')


def edited(content: bytes, kind: str, where: float, length: int, token: bytes) -> bytes:
    """The file with one mistake in it."""
    at = int(where * len(content))
    match kind:
        case "insert":
            return content[:at] + token + content[at:]
        case "overwrite":
            return content[:at] + token + content[at + length :]
        case "cut":
            return content[:at] + content[at + length :]
        case "repeat":
            return content[: at + length] + content[at:]
        case "end":
            return content[:at]
        case "number" | "value":
            found = list((_NUMBER if kind == "number" else _VALUE).finditer(content))
            if found:
                begin, end = found[int(where * len(found))].span()
                return content[:begin] + token + content[end:]
    return content


KINDS: Final = ("insert", "overwrite", "cut", "repeat", "end", "number", "value", "value")


@st.composite
def mutated(draw: st.DrawFn, files: tuple[bytes, ...]) -> bytes:
    """One of these files, with up to four mistakes in it."""
    content = draw(st.sampled_from(files))
    for _ in range(draw(st.integers(1, 4))):
        content = edited(
            content,
            draw(st.sampled_from(KINDS)),
            draw(st.floats(0, 1, exclude_max=True)),
            draw(st.integers(1, 200)),
            draw(st.sampled_from(TOKENS)),
        )
    return content


@st.composite
def overwritten(draw: st.DrawFn, content: bytes) -> bytes:
    """A file in a binary format with other bytes in up to four places, or cut off."""
    for _ in range(draw(st.integers(1, 4))):
        from_end = draw(st.sampled_from((0.02, 0.4, 1.0))) * draw(st.floats(0, 1, exclude_max=True))
        at = int((1 - from_end) * len(content))
        other = draw(st.binary(min_size=1, max_size=6))
        content = content[:at] + other + content[at + len(other) :]
    return content[: int(draw(st.floats(0, 1)) * len(content))] if draw(st.integers(0, 9)) == 0 else content
