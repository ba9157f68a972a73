"""Names of clients as they are shown on a terminal."""

from __future__ import annotations

import pytest

from rejoin.protocol.printable import printable, printable_fields


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-app", "orders-app"),
        ("größe 東京", "größe 東京"),
        ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
        ("two\nlines\r\t\x00", "two\\nlines\\r\\t\\x00"),
        ("right\u202eleft", "right\\u202eleft"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_a_traceback_keeps_its_lines_and_nothing_else() -> None:
    fields = {"event": "left\n", "exception": "Traceback\n  \x1b[2J", "times": 3}
    assert printable_fields(None, "info", fields) == {
        "event": "left\\n",
        "exception": "Traceback\n  \\x1b[2J",
        "times": 3,
    }
