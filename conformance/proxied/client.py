"""One client as a process: ``python -m conformance.proxied.client LIBRARY ROLE BOOTSTRAP NUMBER``.

It prints what was acknowledged, one JSON object a line, and ends with SIGTERM. Roles: ``produce`` numbers the records
of its partition; ``consume`` commits what a group has read; ``move`` copies records in transactions that have the
offsets, and aborts one in five. An error is printed; the client is used on, and replaced only where its library asks
for that.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

NUMBERS: Final = "numbers"
ABORTED: Final = 5
"""Each transaction whose number is a multiple of this is aborted."""
AT_ONCE: Final = 20
UNACKNOWLEDGED: Final = 20
SESSION_MS: Final = 20_000
BACKOFF_MS: Final = 500
"""The longest pause between tries to connect. Libraries have 1 s to 30 s by default."""
TRANSACTION_MS: Final = 60_000
_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.01
stopping = threading.Event()


def moved(library: str) -> str:
    """The topic of what a library's client copies."""
    return f"moved-{library}"


def group_of(library: str, role: str) -> str:
    """The group of a library's client."""
    return f"{role}-{library}"


def say(**what: Any) -> None:
    print(json.dumps({"at": round(time.time() * 1000), **what}), flush=True)


def _problem(problem: BaseException) -> None:
    say(problem=f"{type(problem).__name__}: {problem}"[:300])


class TransactionLost(Exception):
    """The producer cannot go on; another one has to take its place."""


class Rdkafka:
    """confluent-kafka."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._kafka: Any = importlib.import_module("confluent_kafka")
        self._number = number
        # Without it librdkafka forgets a coordinator that comes back (librdkafka issue 5511).
        self._settings = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": BACKOFF_MS,
            "metadata.recovery.strategy": "none",
            "log_level": 0,
        }

    def produce(self) -> None:
        producer = self._kafka.Producer({**self._settings, "enable.idempotence": True, "linger.ms": 1})
        sent = answered = 0

        def delivered(error: Any, message: Any) -> None:
            nonlocal answered
            answered += 1
            if error is None:
                say(produced=[int(message.value()), message.offset()])
            else:
                say(problem=str(error), number=int(message.value()))

        while not stopping.is_set():
            if sent - answered < UNACKNOWLEDGED:
                producer.produce(NUMBERS, str(sent), partition=self._number, on_delivery=delivered)
                sent += 1
            producer.poll(_PAUSE_SECONDS)
        producer.flush(_SECONDS)

    def _consumer(self, role: str) -> Any:
        settings = {"group.id": group_of("rdkafka", role), "session.timeout.ms": SESSION_MS}
        consumer = self._kafka.Consumer(
            {
                **self._settings,
                **settings,
                "heartbeat.interval.ms": 1_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([NUMBERS])
        return consumer

    def consume(self) -> None:
        consumer = self._consumer("consume")
        while not stopping.is_set():
            if not [each for each in consumer.consume(AT_ONCE, 0.2) if each.error() is None]:
                continue
            try:
                for each in consumer.commit(asynchronous=False):
                    if each.error is None and each.offset >= 0:
                        say(committed=[each.partition, each.offset])
            except self._kafka.KafkaException as problem:
                _problem(problem)
        consumer.close()

    def move(self) -> None:
        consumer, producer = self._consumer("move"), self._transactional()
        number = 0
        while not stopping.is_set():
            records = [each for each in consumer.consume(AT_ONCE, 0.2) if each.error() is None]
            if not records:
                continue
            number += 1
            try:
                producer.begin_transaction()
                for each in records:
                    value = f"{number} {each.partition()} {each.offset()}"
                    producer.produce(moved("rdkafka"), value, partition=each.partition())
                offsets = consumer.position(consumer.assignment())
                group = consumer.consumer_group_metadata()
                self._finished(producer.send_offsets_to_transaction, offsets, group, _SECONDS)
                if number % ABORTED:
                    self._finished(producer.commit_transaction, _SECONDS)
                    say(moved=number, records=[[each.partition(), each.offset()] for each in records])
                    continue
                self._abort(producer)
                say(aborted=number)
            except self._kafka.KafkaException as problem:
                _problem(problem)
                try:
                    self._abort(producer)
                    say(aborted=number)
                except self._kafka.KafkaException as fatal:
                    say(replaced=str(fatal))
                    producer = self._transactional()
            self._rewind(consumer)
        consumer.close()

    def _transactional(self) -> Any:
        settings = {"transactional.id": "move-rdkafka", "transaction.timeout.ms": TRANSACTION_MS}
        producer = self._kafka.Producer({**self._settings, **settings})
        self._finished(producer.init_transactions, _SECONDS)
        return producer

    def _abort(self, producer: Any) -> None:
        self._finished(producer.abort_transaction, _SECONDS)

    def _finished(self, call: Callable[..., object], *arguments: object) -> None:
        """Call, again where that is what the library asks for."""
        while True:
            try:
                call(*arguments)
            except self._kafka.KafkaException as problem:
                if not problem.args[0].retriable() or stopping.is_set():
                    raise
                _problem(problem)
            else:
                return

    def _rewind(self, consumer: Any) -> None:
        """Go back to what is committed."""
        while not stopping.is_set():
            try:
                for each in consumer.committed(consumer.assignment(), timeout=_SECONDS):
                    each.offset = max(each.offset, 0)
                    consumer.seek(each)
            except self._kafka.KafkaException as problem:
                _problem(problem)
            else:
                return


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._kafka: Any = importlib.import_module("kafka")
        self._errors: Any = importlib.import_module("kafka.errors")
        self._number = number
        self._settings = {"bootstrap_servers": bootstrap.split(","), "reconnect_backoff_max_ms": BACKOFF_MS}

    def produce(self) -> None:
        producer = self._kafka.KafkaProducer(**self._settings, linger_ms=1)
        sent = answered = 0

        def failed(number: int, problem: BaseException) -> None:
            nonlocal answered
            answered += 1
            say(problem=f"{type(problem).__name__}: {problem}", number=number)

        def delivered(number: int, record: Any) -> None:
            nonlocal answered
            answered += 1
            say(produced=[number, record.offset])

        while not stopping.is_set():
            if sent - answered < UNACKNOWLEDGED:
                future = producer.send(NUMBERS, str(sent).encode(), partition=self._number)
                future.add_callback(lambda record, number=sent: delivered(number, record))
                future.add_errback(lambda problem, number=sent: failed(number, problem))
                sent += 1
            time.sleep(_PAUSE_SECONDS)
        producer.close(timeout=_SECONDS)

    def _consumer(self, role: str) -> Any:
        return self._kafka.KafkaConsumer(
            NUMBERS,
            **self._settings,
            group_id=group_of("kafka-python", role),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1_000,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    def _read(self, consumer: Any) -> list[Any]:
        got = consumer.poll(timeout_ms=200, max_records=AT_ONCE)
        return [record for records in got.values() for record in records]

    def _positions(self, consumer: Any) -> dict[Any, Any]:
        made = importlib.import_module("kafka.structs").OffsetAndMetadata
        return {each: made(consumer.position(each), "", -1) for each in consumer.assignment()}

    def consume(self) -> None:
        consumer = self._consumer("consume")
        while not stopping.is_set():
            try:
                if not self._read(consumer):
                    continue
                offsets = self._positions(consumer)
                consumer.commit(offsets)
            except self._errors.KafkaError as problem:
                _problem(problem)
            else:
                for each, position in offsets.items():
                    say(committed=[each.partition, position.offset])
        consumer.close()

    def move(self) -> None:
        consumer, producer = self._consumer("move"), self._transactional()
        number = 0
        while not stopping.is_set():
            number += 1
            try:
                records = self._read(consumer)
                if not records:
                    continue
                producer.begin_transaction()
                for each in records:
                    value = f"{number} {each.partition} {each.offset}".encode()
                    producer.send(moved("kafka-python"), value, partition=each.partition)
                producer.send_offsets_to_transaction(self._positions(consumer), consumer.group_metadata())
                if number % ABORTED:
                    producer.commit_transaction()
                    say(moved=number, records=[[each.partition, each.offset] for each in records])
                    continue
                producer.abort_transaction()
                say(aborted=number)
            except self._errors.KafkaError as problem:
                _problem(problem)
                try:
                    producer.abort_transaction()
                    say(aborted=number)
                except (self._errors.KafkaError, AssertionError) as fatal:
                    say(replaced=f"{type(fatal).__name__}: {fatal}")
                    producer.close(timeout=0)
                    producer = self._transactional()
            self._rewind(consumer)
        consumer.close()

    def _transactional(self) -> Any:
        producer = self._kafka.KafkaProducer(
            **self._settings, transactional_id="move-kafka-python", transaction_timeout_ms=TRANSACTION_MS
        )
        producer.init_transactions()
        return producer

    def _rewind(self, consumer: Any) -> None:
        while not stopping.is_set():
            try:
                for each in consumer.assignment():
                    consumer.seek(each, consumer.committed(each) or 0)
            except self._errors.KafkaError as problem:
                _problem(problem)
            else:
                return


class Aiokafka:
    """aiokafka."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._kafka: Any = importlib.import_module("aiokafka")
        self._errors: Any = importlib.import_module("aiokafka.errors")
        self._number = number
        self._settings = {"bootstrap_servers": bootstrap}

    def produce(self) -> None:
        asyncio.run(self._produce())

    def consume(self) -> None:
        asyncio.run(self._consume())

    def move(self) -> None:
        asyncio.run(self._move())

    async def _produce(self) -> None:
        producer = self._kafka.AIOKafkaProducer(**self._settings, enable_idempotence=True, linger_ms=1)
        await producer.start()
        limit = asyncio.Semaphore(UNACKNOWLEDGED)

        def answered(number: int, future: asyncio.Future[Any]) -> None:
            limit.release()
            if future.cancelled() or future.exception() is not None:
                say(problem=repr(None if future.cancelled() else future.exception()), number=number)
            else:
                say(produced=[number, future.result().offset])

        sent = 0
        while not stopping.is_set():
            await limit.acquire()
            future = await producer.send(NUMBERS, str(sent).encode(), partition=self._number)
            future.add_done_callback(lambda done, number=sent: answered(number, done))
            sent += 1
            await asyncio.sleep(_PAUSE_SECONDS)
        await asyncio.wait_for(producer.stop(), _SECONDS)

    async def _consumer(self, role: str) -> Any:
        consumer = self._kafka.AIOKafkaConsumer(
            NUMBERS,
            **self._settings,
            group_id=group_of("aiokafka", role),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1_000,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        return consumer

    async def _read(self, consumer: Any) -> list[Any]:
        got = await consumer.getmany(timeout_ms=200, max_records=AT_ONCE)
        return [record for records in got.values() for record in records]

    def _positions(self, records: Iterable[Any]) -> dict[Any, int]:
        ends: dict[Any, int] = {}
        for each in records:
            at = self._kafka.TopicPartition(each.topic, each.partition)
            ends[at] = max(ends.get(at, 0), each.offset + 1)
        return ends

    async def _consume(self) -> None:
        consumer = await self._consumer("consume")
        while not stopping.is_set():
            try:
                offsets = self._positions(await self._read(consumer))
                if not offsets:
                    continue
                await consumer.commit(offsets)
            except self._errors.KafkaError as problem:
                _problem(problem)
            else:
                for at, offset in offsets.items():
                    say(committed=[at.partition, offset])
        await asyncio.wait_for(consumer.stop(), _SECONDS)

    async def _move(self) -> None:
        consumer, producer = await self._consumer("move"), await self._transactional()
        number = 0
        while not stopping.is_set():
            number += 1
            try:
                records = await self._read(consumer)
                if not records:
                    continue
                await producer.begin_transaction()
                for each in records:
                    value = f"{number} {each.partition} {each.offset}".encode()
                    await producer.send(moved("aiokafka"), value, partition=each.partition)
                await producer.send_offsets_to_transaction(self._positions(records), group_of("aiokafka", "move"))
                if number % ABORTED:
                    await producer.commit_transaction()
                    say(moved=number, records=[[each.partition, each.offset] for each in records])
                    continue
                await producer.abort_transaction()
                say(aborted=number)
            except self._errors.KafkaError as problem:
                _problem(problem)
                try:
                    await producer.abort_transaction()
                    say(aborted=number)
                except self._errors.KafkaError as fatal:
                    say(replaced=f"{type(fatal).__name__}: {fatal}")
                    await producer.stop()
                    producer = await self._transactional()
            await self._rewind(consumer)
        await asyncio.wait_for(consumer.stop(), _SECONDS)

    async def _transactional(self) -> Any:
        producer = self._kafka.AIOKafkaProducer(
            **self._settings, transactional_id="move-aiokafka", transaction_timeout_ms=TRANSACTION_MS
        )
        await producer.start()
        return producer

    async def _rewind(self, consumer: Any) -> None:
        while not stopping.is_set():
            try:
                for each in consumer.assignment():
                    consumer.seek(each, await consumer.committed(each) or 0)
            except self._errors.KafkaError as problem:
                _problem(problem)
            else:
                return


LIBRARIES: Final = {"rdkafka": Rdkafka, "kafka-python": KafkaPython, "aiokafka": Aiokafka}


def main() -> None:
    library, role, bootstrap, number = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    getattr(LIBRARIES[library](bootstrap, int(number)), role)()


if __name__ == "__main__":
    main()
