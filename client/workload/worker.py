"""The consumers of one process: each polls, spends time on the records, journals what it processed, and commits.

Processed records are flushed to the journal piece by piece, so a process that is killed has journaled all it had
processed but for the piece in hand.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final, NoReturn, Protocol, TypeAlias

import structlog

from rejoin.client.config import ConsumerConfig
from rejoin.client.consumer import Consumer, RebalanceListener
from rejoin.client.core.errors import (
    AssignorFailedError,
    CommitFailedError,
    KafkaError,
    ListenerError,
    RebalanceInProgressError,
    WakeupError,
)
from rejoin.client.core.inputs import Millis, RecordRange
from rejoin.client.driver import ConsumerRuntime
from rejoin.client.logs import log_event
from rejoin.client.records import Records
from rejoin.client.share_config import ShareConsumerConfig
from rejoin.client.transports.addresses import no_coordinator, open_transport
from rejoin.client.workload.commit_mode import CommitMode
from rejoin.client.workload.processing_time import ProcessingTime
from rejoin.client.workload.transforming import Transform, Transformer, is_over_after_abort
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CoordinatorFound, CoordinatorNotFound, MembershipReset, RejoinRequested
from rejoin.journal.events.coordinator import JournalRowsLost
from rejoin.journal.writer import JournalWriter
from rejoin.posix import stop_signals
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

POLL_MS: Final = 500
PAUSE_MS: Final = 10_000
"""The longest wait after polls that failed one after the other."""
FLUSH_SECONDS: Final = 0.1
PIECE_MS: Final = 50.0
"""Processing is journaled in pieces of about this length."""

GOES_ON: Final = (AssignorFailedError, ListenerError, CommitFailedError, RebalanceInProgressError)
"""Errors, besides retriable ones, after which a consumer's loop goes on: the next poll rejoins."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one process. ``instance_ids`` is empty for dynamic members."""

    topics: tuple[str, ...]
    pattern: str | None
    client_ids: tuple[str, ...]
    instance_ids: tuple[str, ...]
    assignors: tuple[str, ...]
    settings: dict[str, Any]
    commit: CommitMode
    processing_time: ProcessingTime
    revoke_time: ProcessingTime
    """For each partition that the listener gives up."""
    assign_time: ProcessingTime
    """For each partition that the listener gets."""
    seed: int
    node: str
    run_id: str
    journal: Path | None = None
    leave: bool = True
    racks: tuple[str, ...] = ()
    wait_seconds: float = math.inf
    """How long the first coordinator may take. A consumer that has found one looks for it again without limit."""
    transform: Transform | None = None
    share: bool = False
    """The consumers are members of a share group."""


class Events:
    """Where events go: the log, and the journal if there is one.

    A journal that cannot be written stops no consumer: its rows wait in memory, and those that do not fit are counted.
    """

    def __init__(self, work: Work) -> None:
        self._log: Any = structlog.get_logger("client").bind()
        self._writer = None
        self._fails = False
        self._newest_at: Millis = 0
        self._closing: set[str] = set()
        self.found_coordinator = False
        self.why_not_found = "no answer yet"
        if work.journal is not None:
            self._writer = JournalWriter(work.journal, work.run_id, "client", work.node)

    def publish(self, event: Event, at_ms: Millis) -> None:
        self._newest_at = at_ms
        if self._writer is not None:
            self._writer.append(event, at_ms)
        if isinstance(event, CoordinatorFound):
            self.found_coordinator = True
        elif isinstance(event, CoordinatorNotFound):
            self.why_not_found = event.problem
        if isinstance(event, RejoinRequested | MembershipReset) and event.client_id in self._closing:
            # Kafka: a member that leaves is reset, and a reset asks for a rejoin. A consumer that closes never rejoins.
            return
        log_event(self._log, event)

    def closing(self, client_id: str) -> None:
        """A consumer is about to be closed."""
        self._closing.add(client_id)

    def flush(self) -> None:
        """Write the journal. Its failure is logged once, and so is its recovery."""
        writer = self._writer
        if writer is None:
            return
        try:
            writer.flush()
        except OSError as problem:
            if not self._fails:
                self._log.error("journal_not_written", problem=str(problem), waiting_bytes=writer.unflushed_bytes)
            self._fails = True
            return
        if self._fails:
            self._log.info("journal_written_again")
        self._fails = False
        if lost := writer.take_lost():
            writer.append(JournalRowsLost(rows_lost=lost), self._newest_at)
            self._log.error(JournalRowsLost.name, rows_lost=lost)

    def close(self) -> None:
        if self._writer is None:
            return
        self.flush()
        try:
            self._writer.close()
        except OSError as problem:
            self._log.error("journal_not_closed", problem=str(problem))


class WorkListener(RebalanceListener):
    """Takes its time for partitions that come and go.

    With asynchronous commits, a synchronous one comes last, before partitions are revoked; an open transaction is
    committed then, too. Where partitions are lost it is aborted.
    """

    def __init__(
        self,
        work: Work,
        random: Random,
        commit: Callable[[], Awaitable[None]] | None,
        abort: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._work = work
        self._random = random
        self._commit = commit
        self._abort = abort

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        await self._take(self._work.revoke_time, len(revoked))
        if revoked and self._commit is not None:
            await self._commit()

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        await self._take(self._work.assign_time, len(assigned))

    async def on_partitions_lost(self, lost: list[TopicPartition]) -> None:
        """Another member owns them already: a commit would fail."""
        if lost and self._abort is not None:
            await self._abort()

    async def _take(self, time: ProcessingTime, partitions: int) -> None:
        if partitions and (ms := time.of(partitions, self._random)) > 0:
            await asyncio.sleep(ms / 1_000)


class ConsumerLoop:
    """One consumer and the loop that polls it."""

    def __init__(self, work: Work, index: int, runtime: ConsumerRuntime, events: Events) -> None:
        self._work = work
        self._events = events
        self._random = Random(f"{work.seed}/{work.client_ids[index]}")
        self._stopping = asyncio.Event()
        self.records_read: Counter[tuple[str, int]] = Counter()
        self._topic_errors: Mapping[str, ErrorCode] = {}
        self._log: Any = structlog.get_logger("client").bind(client=work.client_ids[index])
        settings = {**work.settings, "client_id": work.client_ids[index], "enable_auto_commit": work.commit == "auto"}
        if work.racks:
            settings["client_rack"] = work.racks[index % len(work.racks)]
        if work.instance_ids:
            settings["group_instance_id"] = work.instance_ids[index]
        self._transformer = None
        commit, abort = (self._commit_now if work.commit == "async" else None), None
        if work.transform is not None:
            self._transformer = Transformer(work.transform, index, work.client_ids[index], self._stopping.is_set)
            if work.transform.exactly_once:
                commit, abort = self._end_open, self._abort_open
        self.consumer = Consumer(
            *work.topics,
            pattern=work.pattern,
            listener=WorkListener(work, self._random, commit, abort),
            assignor=work.assignors or None,
            runtime=runtime,
            jitter=self._random.random,
            **settings,
        )

    async def _commit_now(self) -> None:
        await self.consumer.commit()

    def stop(self) -> None:
        """Finish the piece in hand, then close."""
        self._stopping.set()
        self.consumer.wakeup()

    async def run(self) -> bool:
        """Poll until :meth:`stop`; false when an error ended it."""
        try:
            if self._transformer is not None:
                await self._transformer.start()
            await self.consumer.start()
            await self._loop()
        except KafkaError as error:
            self._log.error("consumer_stopped", error=type(error).__name__, problem=str(error))
            return False
        finally:
            if self._transformer is not None:
                await self._close(self._transformer.close())
            self._events.closing(self.consumer.config.client_id)
            await self._close(self.consumer.close(leave=self._work.leave))
        return True

    async def _close(self, closing: Awaitable[None]) -> None:
        try:
            await closing
        except KafkaError as error:
            self._log.warning("close_failed", error=type(error).__name__, problem=str(error))

    async def _loop(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                records = await self.consumer.poll(POLL_MS)
                self._warn_of_topics()
                if records:
                    await self._handle(records)
                if self._transformer is not None and self._transformer.is_due:
                    await self._end_open()
                failures = 0
            except WakeupError:
                continue
            except KafkaError as error:
                self._go_on_after(error)
                failures += 1
                await self._pause(failures)
        try:
            await self._end_open()
        except KafkaError as error:
            self._go_on_after(error)

    def _warn_of_topics(self) -> None:
        """Log topics that Metadata has no partitions of, whenever that changes."""
        # Kafka: NetworkClient.DefaultMetadataUpdater logs {nosuch=UNKNOWN_TOPIC_OR_PARTITION} as a warning.
        errors = self.consumer.topic_errors()
        if errors and errors != self._topic_errors:
            self._log.warning("topics_not_found", topics={name: error.name for name, error in errors.items()})
        self._topic_errors = errors

    def _go_on_after(self, error: KafkaError) -> None:
        if not is_over_after_abort(error) and not isinstance(error, GOES_ON):
            raise error
        self._log.warning("poll_failed", error=type(error).__name__, problem=str(error))

    async def _pause(self, failures: int) -> None:
        """Wait longer after each failed poll in a row: an assignor that always raises must not cause many joins."""
        config = self.consumer.config
        wait_ms = min(config.retry_backoff_ms * 2 ** min(failures, 10), max(config.retry_backoff_max_ms, PAUSE_MS))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), wait_ms / 1_000)

    async def _handle(self, records: Records) -> None:
        """Process and commit the records of a poll."""
        transformer = self._transformer
        if transformer is None:
            await self._process(records)
            await self._commit()
            return
        try:
            await transformer.begin()
            await self._process(records)
        except KafkaError as error:
            await self._start_again(list(records.ranges), error)
        if not transformer.exactly_once:
            await self._end_open()
            await self._commit()

    async def _end_open(self) -> None:
        """Have stored what is written and not stored yet, with its offsets.

        Raises what kept it from that, when it is aborted and its records are sought.
        """
        if self._transformer is None or not self._transformer.is_open:
            return
        try:
            # The membership of the last assignment, which the records were read with: before another one they end.
            await self._transformer.end(self.consumer.group_metadata())
        except KafkaError as error:
            await self._start_again([], error)

    async def _abort_open(self) -> None:
        if self._transformer is not None and self._transformer.is_open:
            self._put_back(await self._transformer.abort())

    async def _start_again(self, ranges: list[RecordRange], error: KafkaError) -> NoReturn:
        """Go back to the beginning of what is open, and to these records; raises what the error was made of."""
        assert self._transformer is not None, "it writes"
        cause = error.__cause__ if isinstance(error.__cause__, KafkaError) else error
        self._put_back([*await self._transformer.abort(), *ranges])
        raise cause from None

    async def _process(self, records: Records) -> None:
        """Take the time these records take, write what they become, and journal them piece by piece.

        What is left when this consumer is being stopped is put back.
        """
        work = self._work.processing_time
        total = work.of(len(records), self._random)
        each = total / len(records)
        piece = max(1, int(PIECE_MS / each)) if each > 0 else len(records)
        for index, (taken, part) in enumerate(records.parts()):
            for start in range(taken.start, taken.end, piece):
                if self._stopping.is_set():
                    self._put_back([taken._replace(start=start), *records.ranges[index + 1 :]])
                    return
                done = taken._replace(start=start, end=min(taken.end, start + piece))
                if each > 0:
                    await asyncio.sleep((done.end - done.start) * each / 1_000)
                if self._transformer is not None:
                    within = (record for record in part if done.start <= record.offset < done.end)
                    await self._transformer.write(done, within)
                self.records_read[done.topic, done.partition] += done.end - done.start
                self.consumer.processed([done])
                self._events.flush()

    def _put_back(self, ranges: list[RecordRange]) -> None:
        """Seek back to unprocessed records, so that they are not committed either."""
        owned = set(self.consumer.assignment())
        for topic, partition, start, _ in reversed(ranges):
            if (topic, partition) in owned:
                self.consumer.seek(TopicPartition(topic, partition), start)

    async def _commit(self) -> None:
        if self._work.commit == "sync":
            await self.consumer.commit()
        elif self._work.commit == "async":
            self.consumer.commit_async()


class Loop(Protocol):
    """A consumer and the loop that polls it."""

    records_read: Counter[tuple[str, int]]

    def stop(self) -> None: ...

    async def run(self) -> bool: ...


MakeLoop: TypeAlias = Callable[[Work, int, ConsumerRuntime, Events], Loop]


async def run_worker(work: Work, until: asyncio.Event | None = None, make_loop: MakeLoop = ConsumerLoop) -> int:
    """Run the consumers of one process until SIGTERM, SIGINT or ``until``; the exit code."""
    events = Events(work)
    config = ShareConsumerConfig(**work.settings) if work.share else ConsumerConfig(**work.settings)
    transport = open_transport(
        config.bootstrap_servers,
        reconnect_backoff_ms=config.reconnect_backoff_ms,
        reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
        security=config,
    )
    runtime = ConsumerRuntime(transport, events.publish)
    members = [make_loop(work, index, runtime, events) for index in range(len(work.client_ids))]
    stop = asyncio.Event() if until is None else until
    loop = asyncio.get_running_loop()
    began = monotonic()
    running = [asyncio.create_task(member.run()) for member in members]
    helpers = [asyncio.create_task(_stop_when(stop, members)), asyncio.create_task(_keep_flushing(events))]
    if work.wait_seconds < math.inf:
        loop.call_later(work.wait_seconds, lambda: None if events.found_coordinator else stop.set())
    try:
        with stop_signals(loop, stop.set):
            results = await asyncio.gather(*running)
        if all(results) and not events.found_coordinator:
            problem = no_coordinator(",".join(config.bootstrap_servers), events.why_not_found)
            structlog.get_logger("client").error("no_coordinator", problem=problem)
        _log_summary(members, monotonic() - began)
        return 0 if all(results) and events.found_coordinator else 1
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        runtime.stop()
        await transport.close()
        events.close()


def _log_summary(members: Sequence[Loop], seconds: float) -> None:
    """The last line: how much was read."""
    log: Any = structlog.get_logger("client")
    read = sum((member.records_read for member in members), Counter[tuple[str, int]]())
    log.info("summary", consumers=len(members), records=read.total(), partitions=len(read), seconds=round(seconds, 1))


async def _stop_when(stop: asyncio.Event, members: Sequence[Loop]) -> None:
    await stop.wait()
    for member in members:
        member.stop()


async def _keep_flushing(events: Events) -> None:
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        events.flush()
