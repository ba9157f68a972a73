"""Events of share-partitions as a coordinator emits them, for tests of the page: a handler too slow for its locks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

GROUP: Final = "jobs-app"
LOCK_MS: Final = 30_000
Step = tuple[int, str, dict[str, Any]]


def _joins(at: int, member: str) -> Step:
    fields = {
        "group_id": GROUP, "member_id": f"{member}-id", "client_id": member, "client_host": "/127.0.0.1",
        "group_instance_id": None, "member_type": "share", "protocols": [], "topics": ["jobs"], "state": "Stable",
        "session_timeout_ms": 45_000, "rebalance_timeout_ms": 0, "client_reason": None,
    }  # fmt: skip
    return at, "member_joined", fields


def _records(at: int, name: str, first: int, last: int, count: int, **more: Any) -> Step:
    fields = {"group_id": GROUP, "topic": "jobs", "partition": 0, "first_offset": first, "last_offset": last}
    return at, name, {**fields, "delivery_count": count, **more}


def _window(at: int, start: int, end: int) -> Step:
    fields = {"group_id": GROUP, "topic": "jobs", "partition": 0, "start_offset": start, "end_offset": end}
    return at, "share_window_moved", {**fields, "in_flight": end - start + 1}


def slow_handler() -> Iterator[Step]:
    """Two members take 20 records; the first loses its locks after 30 s, and one record is archived at the end."""
    one, two = {"member_id": "jobs-1-id"}, {"member_id": "jobs-2-id"}
    yield _joins(0, "jobs-1")
    yield _joins(100, "jobs-2")
    yield _records(1_000, "share_records_acquired", 0, 9, 1, **one, lock_ms=LOCK_MS)
    yield _window(1_000, 0, 9)
    yield _records(2_000, "share_records_acquired", 10, 19, 1, **two, lock_ms=LOCK_MS)
    yield _window(2_000, 0, 19)
    yield _records(6_000, "share_records_acknowledged", 10, 14, 1, **two, type="accept", held_ms=4_000)
    yield _records(8_000, "share_records_acknowledged", 15, 15, 1, **two, type="release", held_ms=6_000)
    yield _records(10_000, "share_records_acknowledged", 16, 16, 1, **two, type="reject", held_ms=8_000)
    yield _records(10_000, "share_records_archived", 16, 16, 1, reason="reject")
    yield _records(20_000, "share_records_acknowledged", 17, 19, 1, **two, type="renew", held_ms=18_000)
    yield _records(31_000, "share_locks_expired", 0, 9, 1, **one, held_ms=LOCK_MS)
    yield _records(32_000, "share_records_acquired", 0, 3, 2, **two, lock_ms=LOCK_MS)
    yield _records(32_000, "share_records_acquired", 4, 9, 2, **one, lock_ms=LOCK_MS)
    yield _records(40_000, "share_records_acknowledged", 0, 3, 2, **two, type="accept", held_ms=8_000)
    yield _window(40_000, 4, 19)
    yield _records(62_000, "share_locks_expired", 4, 9, 2, **one, held_ms=LOCK_MS)
    yield _records(62_000, "share_records_archived", 4, 9, 2, reason="delivery-limit")
    yield _window(62_000, 15, 19)


def write(path: Path, steps: Iterator[Step]) -> None:
    """Write events as a journal; their instants are ms since the start."""
    rows = []
    for seq, (at, name, fields) in enumerate(steps, 1):
        head = {"event": name, "at_ms": at, "seq": seq, "run_id": "run", "node": "1", "source": "coordinator"}
        rows.append(orjson.dumps({"schema_version": 2, **head, **fields}))
    path.write_bytes(b"\n".join(rows) + b"\n")


def long_window(records: int, rounds: int) -> Iterator[Step]:
    """A member takes so many records again and again, each of another delivery than its neighbour."""
    one = {"member_id": "jobs-1-id"}
    yield _joins(0, "jobs-1")
    for number in range(1, rounds + 1):
        at = number * 1_000
        for offset in range(records):
            yield _records(at, "share_records_acquired", offset, offset, number + offset % 2, **one, lock_ms=500)
        yield _window(at, 0, records - 1)
