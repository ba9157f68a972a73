"""Values on the command line of `rejoin groups`: topics with partitions, times, durations, plans in files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rejoin.client.commands.tools.arguments import UsageError
from rejoin.files import read_text
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.units import iso_duration_ms

MOST_PLAN_BYTES: Final = 64 * 2**20


def topic_partitions(text: str) -> list[TopicPartition]:
    """The partitions of ``topic:0,1``. Raises UsageError."""
    parts = text.split(":")
    if len(parts) != 2:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for number in parts[1].split(","):
        if not number.strip().isdecimal():
            raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''")
        found.append(TopicPartition(parts[0], int(number)))
    return found


def instant(text: str) -> int:
    """``2024-05-01T10:00:00.000``, in UTC unless it says itself, in ms since 1970. Raises UsageError."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--to-datetime {text}: expected YYYY-MM-DDTHH:mm:SS.sss") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1_000)


def duration(text: str) -> int:
    """``P1DT2H30M`` in ms. Raises UsageError."""
    try:
        return iso_duration_ms(text)
    except ValueError as problem:
        raise UsageError(f"--by-duration {text}: {problem}") from None


def read_plan(path: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """A plan as ``--export`` writes it. Raises UsageError naming the line."""
    plans: dict[str, dict[TopicPartition, int]] = {}
    try:
        lines = read_text(path, MOST_PLAN_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise UsageError(f"--from-file {path}: {why}; expected lines of [GROUP,]TOPIC,PARTITION,OFFSET") from None
    for number, line in enumerate(lines, 1):
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if not line.strip():
            continue
        if len(cells) == 3 and len(groups) == 1:
            cells.insert(0, groups[0])
        if len(cells) != 4 or not cells[2].isdecimal() or not cells[3].isdecimal():
            raise UsageError(f"--from-file {path}:{number}: expected [GROUP,]TOPIC,PARTITION,OFFSET")
        plans.setdefault(cells[0], {})[TopicPartition(cells[1], int(cells[2]))] = int(cells[3])
    return plans
