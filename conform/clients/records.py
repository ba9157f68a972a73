"""Records that a program says it has processed: whether some are lost, or processed twice, inside the client.

A program may print a line ``processed TOPIC PARTITION OFFSET`` for each record; one that prints none is not judged.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from rejoin.conform.clients.observed import ClientLife, ClientOutcome, ClientVerdict, is_accepted, only
from rejoin.conform.clients.stage import TOPIC
from rejoin.protocol.types import TopicPartition

WORD: Final = b"processed"
MOST_NAMED: Final = 5
_WORDS: Final = 4


def read_line(line: bytes) -> tuple[TopicPartition, int] | None:
    """Partition and offset in a line of output; None in any other line."""
    words = line.split()
    if len(words) != _WORDS or words[0] != WORD or not (words[2].isdigit() and words[3].isdigit()):
        return None
    return TopicPartition(words[1].decode(errors="replace"), int(words[2])), int(words[3])


def problem_of(life: ClientLife) -> ClientVerdict | None:
    """A failure if a record below a committed offset was never processed, or one was processed once too often."""
    times = Counter((partition, offset) for (topic, partition), offset in life.processed if topic == TOPIC)
    if not times:
        return None
    fetched = _fetched_positions(life)
    for partition, committed in sorted(_committed(life).items()):
        first = min((position for at, position in fetched if at == partition), default=0)
        lost = [offset for offset in range(first, committed) if not times[partition, offset]]
        if lost:
            return _failed(f"committed offset {committed} of partition {partition}, and never processed", lost)
    for partition in sorted({partition for partition, _ in times}):
        starts = [position for at, position in fetched if at == partition]
        doubled = [
            offset
            for (at, offset), count in sorted(times.items())
            if at == partition and count > max(1, sum(start <= offset for start in starts))
        ]
        if doubled:
            return _failed(f"processed records of partition {partition} once more than it fetched offsets:", doubled)
    return None


def _failed(said: str, offsets: list[int]) -> ClientVerdict:
    more = f" and {len(offsets) - MOST_NAMED} more" if len(offsets) > MOST_NAMED else ""
    return ClientVerdict(ClientOutcome.FAILED, f"{said} {', '.join(map(str, offsets[:MOST_NAMED]))}{more}")


def _committed(life: ClientLife) -> dict[int, int]:
    """The highest offset that was committed, by partition."""
    found: dict[int, int] = {}
    for each in filter(is_accepted, only(life.requests, "OffsetCommit")):
        request: Any = each.request
        for topic in request.topics:
            for one in topic.partitions:
                found[one.partition_index] = max(one.committed_offset, found.get(one.partition_index, 0))
    return found


def _fetched_positions(life: ClientLife) -> list[tuple[int, int]]:
    """Partition and offset of each start of reading: an answer to OffsetFetch; 0 where nothing is committed."""
    found = []
    for each in filter(is_accepted, only(life.requests, "OffsetFetch")):
        answer: Any = each.response
        topics = [topic for group in answer.groups for topic in group.topics] or answer.topics
        found += [(one.partition_index, max(0, one.committed_offset)) for topic in topics for one in topic.partitions]
    return found
