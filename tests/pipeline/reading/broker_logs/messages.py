"""What a message of a coordinator is read as."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.reading.broker_logs.messages import read_message


def check_message(text: str, kind: str, group: str | None, values: dict[str, Any]) -> None:
    """It is of this kind and about this group, and has these values."""
    found = read_message(text)
    assert found is not None
    assert (found.kind, found.group) == (kind, group)
    assert values.items() <= found.values.items()
