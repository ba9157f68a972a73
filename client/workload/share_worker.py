"""One member of a share group in a process of `rejoin consume --share`: polls, takes its time, accepts.

Each processed record is accepted on its own, so a consumer that is stopped releases exactly what it has not processed.
With ``share.acknowledgement.mode=implicit`` the next poll accepts all records of the last.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from random import Random
from typing import Any

import structlog

from rejoin.client.core.errors import KafkaError, WakeupError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import RecordRange
from rejoin.client.driver import ConsumerRuntime
from rejoin.client.records import Records
from rejoin.client.share_consumer import ShareConsumer
from rejoin.client.workload.worker import PIECE_MS, POLL_MS, Events, Work
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


class ShareConsumerLoop:
    """One share consumer and the loop that polls it."""

    def __init__(self, work: Work, index: int, runtime: ConsumerRuntime, events: Events) -> None:
        self._work = work
        self._events = events
        self._random = Random(f"{work.seed}/{work.client_ids[index]}")
        self._stopping = asyncio.Event()
        self.records_read: Counter[tuple[str, int]] = Counter()
        self._topic_errors: Mapping[str, ErrorCode] = {}
        self._log: Any = structlog.get_logger("client").bind(client=work.client_ids[index])
        settings = {"share_acknowledgement_mode": "explicit", **work.settings, "client_id": work.client_ids[index]}
        if work.racks:
            settings["client_rack"] = work.racks[index % len(work.racks)]
        self.consumer = ShareConsumer(
            *work.topics,
            on_acknowledged=self._acknowledged,
            runtime=runtime,
            jitter=self._random.random,
            **settings,
        )

    def stop(self) -> None:
        """Finish the piece in hand, then close."""
        self._stopping.set()
        self.consumer.wakeup()

    async def run(self) -> bool:
        """Poll until :meth:`stop`; false when an error ended it."""
        try:
            await self.consumer.start()
            await self._loop()
        except KafkaError as error:
            self._log.error("consumer_stopped", error=type(error).__name__, problem=str(error))
            return False
        finally:
            self._events.closing(self.consumer.config.client_id)
            with suppress(KafkaError):
                await self.consumer.close(leave=self._work.leave)
        return True

    async def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                records = await self.consumer.poll(POLL_MS)
            except WakeupError:
                continue
            self._warn_of_topics()
            if not records:
                continue
            await self._process(records)
            if self._work.commit == "sync":
                await self.consumer.commit()
            elif self._work.commit == "async":
                self.consumer.commit_async()

    def _warn_of_topics(self) -> None:
        errors = self.consumer.topic_errors()
        if errors and errors != self._topic_errors:
            self._log.warning("topics_not_found", topics={name: error.name for name, error in errors.items()})
        self._topic_errors = errors

    async def _process(self, records: Records) -> None:
        """Take the time these records take, and accept them piece by piece; the rest when stopped is left alone."""
        total = self._work.processing_time.of(len(records), self._random)
        each = total / len(records)
        piece = max(1, int(PIECE_MS / each)) if each > 0 else len(records)
        waiting = list(records)
        for start in range(0, len(waiting), piece):
            if self._stopping.is_set():
                return
            done = waiting[start : start + piece]
            if each > 0:
                await asyncio.sleep(len(done) * each / 1_000)
            for record in done:
                self.records_read[record.topic, record.partition] += 1
                if self.consumer.config.share_acknowledgement_mode == "explicit":
                    self.consumer.acknowledge(record)
            self.consumer.processed(_ranges(done))
            self._events.flush()

    def _acknowledged(self, partition: TopicPartition, offsets: tuple[int, ...], error: KafkaError | None) -> None:
        if error is not None:
            where = {"partition": str(partition), "first_offset": offsets[0], "records": len(offsets)}
            self._log.warning("acknowledgement_failed", **where, problem=str(error))


def _ranges(records: Sequence[ConsumerRecord]) -> Iterator[RecordRange]:
    """Runs of consecutive offsets."""
    runs = groupby(enumerate(records), key=lambda at: (at[1].topic, at[1].partition, at[1].offset - at[0]))
    for (topic, partition, _), run in runs:
        found = [record.offset for _, record in run]
        yield RecordRange(topic, partition, found[0], found[-1] + 1)
