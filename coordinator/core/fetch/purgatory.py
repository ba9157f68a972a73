"""Fetches that wait for bytes. Each counts what its partitions have, so that progress costs a look at one partition.

Kafka: DelayedFetch, DelayedOperationPurgatory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from rejoin.coordinator.core.fetch.logs import Found, ReadableLogs
from rejoin.coordinator.core.fetch.reading import FetchRead, epoch_error
from rejoin.coordinator.core.fetch.sessions import WantedPartition
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.coordinator.core.partitions.log import READ_COMMITTED
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import LogPartition, TopicPartition

LIKELY_RECORD_BYTES: Final = 64

NO_PARTITION: Final = TopicPartition("", -1)
"""The owner of timers that belong to no partition."""


class FetchTimer(IntEnum):
    """The timer of a Fetch that waits: its longest wait is over, or a synthetic log has grown."""

    FETCH = 3_000


@dataclass(slots=True)
class _Watched:
    """Bytes that one partition has for a waiting Fetch."""

    wanted: WantedPartition
    available: int = 0


@dataclass(slots=True)
class ParkedFetch:
    """A Fetch that waits, with the bytes it would get, partition by partition."""

    read: FetchRead
    timer: TimerKey
    deadline: Millis
    watched: dict[LogPartition, _Watched] = field(default_factory=dict)
    available: int = 0
    watches_synthetic: bool = False


class FetchPurgatory:
    """All Fetches that wait. ``complete`` reads again and answers."""

    def __init__(self, ctx: StepContext, logs: ReadableLogs, complete: Callable[[FetchRead], None]) -> None:
        self._ctx = ctx
        self._logs = logs
        self._complete = complete
        self._by_timer: dict[TimerKey, ParkedFetch] = {}
        self._by_token: dict[Token, ParkedFetch] = {}
        self._by_partition: dict[LogPartition, dict[TimerKey, ParkedFetch]] = {}
        self._number = 0

    def reads(self) -> list[FetchRead]:
        """Every Fetch that waits, in the order in which they came."""
        return [parked.read for parked in self._by_timer.values()]

    def park(self, read: FetchRead) -> bool:
        """Let a Fetch wait; returns whether it has to."""
        self._number += 1
        timer = TimerKey(FetchTimer.FETCH, NO_PARTITION, name=f"{self._number:012}")
        parked = ParkedFetch(read, timer, self._ctx.now + read.max_wait_ms)
        for wanted in read.partitions:
            found = self._find(read, wanted)
            if isinstance(found, ErrorCode):
                return False
            parked.watched[found.partition] = _Watched(wanted)
            parked.watches_synthetic |= found.is_synthetic
            if self._is_satisfied(parked, found.partition):
                return False
        self._by_timer[timer] = self._by_token[read.token] = parked
        for partition in parked.watched:
            self._by_partition.setdefault(partition, {})[timer] = parked
        self._set_timer(parked)
        return True

    def on_progress(self, partition: LogPartition) -> None:
        """A partition has changed for its readers: answer those who have waited for that."""
        parked_here = self._by_partition.get(partition)
        if parked_here:
            for parked in [each for each in parked_here.values() if self._is_satisfied(each, partition)]:
                self._end(parked)

    def on_topics_changed(self) -> None:
        """Topics are gone, or synthetic logs have got records."""
        for parked in [each for each in self._by_timer.values() if each.watches_synthetic]:
            self._look_again(parked)

    def fire(self, timer: TimerKey) -> None:
        """The timer of a Fetch is due."""
        parked = self._by_timer.get(timer)
        if parked is None:
            return
        if self._ctx.now >= parked.deadline:
            self._end(parked)
        else:
            self._look_again(parked)

    def end_wait(self, token: Token) -> None:
        """Answer the Fetch with this token, if it waits."""
        parked = self._by_token.get(token)
        if parked is not None:
            self._end(parked)

    def _look_again(self, parked: ParkedFetch) -> None:
        if any(self._is_satisfied(parked, partition) for partition in parked.watched):
            self._end(parked)
        else:
            self._set_timer(parked)

    def _find(self, read: FetchRead, wanted: WantedPartition) -> Found:
        topic, (_, topic_id, partition) = wanted.topic or "", wanted.key
        return self._logs.find(topic, partition, topic_id, from_follower=read.from_follower)

    def _is_satisfied(self, parked: ParkedFetch, partition: LogPartition) -> bool:
        """Whether a Fetch need not wait any longer, now that one of its partitions has changed."""
        read = parked.read
        watched = parked.watched[partition]
        wanted = watched.wanted
        found = self._find(read, wanted)
        if isinstance(found, ErrorCode) or found.partition != partition:
            return True
        if epoch_error(wanted.asked, found.leader_epoch) is not ErrorCode.NONE:
            return True
        log = found.log
        offset = wanted.asked.fetch_offset
        if not log.log_start_offset <= offset <= log.end_offset:
            return True
        limit = log.last_stable_offset if read.isolation_level == READ_COMMITTED else log.high_watermark
        # Kafka: more bytes than one partition may give do not count.
        bound = max(0, min(wanted.asked.partition_max_bytes, read.min_bytes))
        available = log.bytes_between(offset, limit, bound) if offset < limit else 0
        parked.available += available - watched.available
        watched.available = available
        return parked.available >= read.min_bytes

    def _end(self, parked: ParkedFetch) -> None:
        """Take a Fetch out, and answer it."""
        del self._by_timer[parked.timer], self._by_token[parked.read.token]
        self._ctx.deadlines.cancel(parked.timer)
        for partition in parked.watched:
            parked_here = self._by_partition[partition]
            del parked_here[parked.timer]
            if not parked_here:
                del self._by_partition[partition]
        self._complete(parked.read)

    def _set_timer(self, parked: ParkedFetch) -> None:
        """Come back at the end of the longest wait, or when synthetic logs may have grown by enough."""
        at = parked.deadline
        if parked.watches_synthetic:
            missing = max(0, parked.read.min_bytes - parked.available)
            for watched in parked.watched.values():
                _, topic, asked = watched.wanted
                grown_at = self._logs.grows_at(topic or "", asked.partition, missing // LIKELY_RECORD_BYTES)
                at = at if grown_at is None else min(at, grown_at)
        self._ctx.deadlines.set(parked.timer, at)
