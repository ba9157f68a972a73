"""Producers and consumers of confluent-kafka whose broker is killed, and what must be true afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.coordinator.durability.service import PATIENCE

RECONNECTING: Final[dict[str, Any]] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
COMING_BACK: Final = {"metadata.recovery.strategy": "none"}
"""For clients that must come back when no broker was left. With ``rebootstrap``, the default, librdkafka 2.16 drops its
brokers then, and makes new ones. Its cache of coordinators keeps the old ones: after AddOffsetsToTxn is answered,
``send_offsets_to_transaction`` sends nothing and waits for a broker that is gone, beyond its own timeout
(github.com/confluentinc/librdkafka/issues/5511)."""

UNACKNOWLEDGED: Final = 20


def servers(*ports: int) -> dict[str, Any]:
    """Settings of a client of these brokers that comes back soon."""
    return {"bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports), **RECONNECTING}


class NumberingProducer(threading.Thread):
    """An idempotent producer that writes 0, 1, 2, … to a partition of its own."""

    def __init__(self, ports: Sequence[int], topic: str, partition: int, pause_s: float = 0.001, in_flight: int = 5):
        super().__init__(name=f"producer-{partition}", daemon=True)
        self.topic = topic
        self.partition = partition
        self.sent = 0
        self.acknowledged: dict[int, int] = {}
        """The offset of each number that was acknowledged."""
        self.problems: list[str] = []
        self._pause_s = pause_s
        self._stopped = threading.Event()
        self._producer = Producer(
            {
                **servers(*ports),
                "enable.idempotence": True,
                "max.in.flight": in_flight,
                "linger.ms": 1,
                "batch.num.messages": 5,
                "message.timeout.ms": int(PATIENCE * 1_000),
                "socket.timeout.ms": 10_000,
                "error_cb": self._failed,
            }
        )

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.is_set() and not self.problems:
            if self.sent - len(self.acknowledged) < UNACKNOWLEDGED:
                value = str(self.sent).encode()
                self._producer.produce(self.topic, value, partition=self.partition, on_delivery=self._delivered)
                self.sent += 1
            self._producer.poll(0)
            self._stopped.wait(self._pause_s)
        if self._producer.flush(PATIENCE):
            self.problems.append("records were neither acknowledged nor refused")

    def _delivered(self, error: Any, message: Any) -> None:
        number = int(message.value())
        if error is not None:
            self.problems.append(f"{number}: {error}")
        elif number in self.acknowledged:
            self.problems.append(f"{number} was acknowledged twice")
        else:
            self.acknowledged[number] = message.offset()

    def _failed(self, error: Any) -> None:
        if error.fatal():
            self.problems.append(f"fatal: {error}")


class FollowingConsumer(threading.Thread):
    """A consumer of a group that commits what it has read, and keeps the value at each offset."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(name="consumer", daemon=True)
        self.seen: dict[tuple[int, int], int] = {}
        """The number at each partition and offset."""
        self.problems: list[str] = []
        self._topic = topic
        self._settings = {
            **servers(port),
            "group.id": "followers",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 200,
        }
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def wait_until_it_consumes(self) -> None:
        """Kills that follow each other at once may have kept it from joining its group."""
        deadline = time.monotonic() + PATIENCE
        while not self.seen:
            assert time.monotonic() < deadline, "nothing is consumed"
            time.sleep(0.01)

    def run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic])
        newest: dict[int, int] = {}
        while not self._stopped.is_set():
            message: Any = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            partition, offset, number = message.partition(), message.offset(), int(message.value())
            if self.seen.setdefault((partition, offset), number) != number:
                self.problems.append(f"partition {partition}, offset {offset}: another record than before")
            if offset > newest.get(partition, -1) + 1:
                self.problems.append(f"partition {partition}: offset {offset} after {newest.get(partition)}")
            newest[partition] = max(offset, newest.get(partition, -1))
        consumer.close()


def read_all(port: int, topic: str, expected: dict[int, int]) -> dict[int, list[int]]:
    """The numbers of each partition from its beginning to its end, in order; ``expected`` says how many there are."""
    consumer = Consumer({**servers(port), "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in expected])
    found: dict[int, list[int]] = {partition: [] for partition in expected}
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE)[1]
        for partition in expected
    }
    assert ends == expected, "each record is there once"
    deadline = time.monotonic() + PATIENCE
    while any(len(numbers) < ends[partition] for partition, numbers in found.items()):
        assert time.monotonic() < deadline, "records are missing"
        messages: list[Any] = consumer.consume(1_000, 0.1)
        for message in messages:
            assert message.error() is None, message.error()
            assert message.offset() == len(found[message.partition()])
            found[message.partition()].append(int(message.value()))
    consumer.close()
    return found


def check_log(port: int, producers: list[NumberingProducer]) -> None:
    """Every record is there once, in the order in which it was produced, at the offset that was acknowledged."""
    for producer in producers:
        assert producer.problems == [], producer.problems
        assert len(producer.acknowledged) == producer.sent
    found = read_all(port, producers[0].topic, {each.partition: each.sent for each in producers})
    for producer in producers:
        assert found[producer.partition] == list(range(producer.sent))
        assert producer.acknowledged == {number: number for number in range(producer.sent)}


def go_on(producers: list[NumberingProducer]) -> None:
    """Wait until each producer has had some records acknowledged."""
    before = [len(each.acknowledged) for each in producers]
    deadline = time.monotonic() + PATIENCE
    while any(len(each.acknowledged) < then + 10 for each, then in zip(producers, before, strict=True)):
        problems = [each.problems for each in producers]
        assert not any(problems), problems
        assert time.monotonic() < deadline, "records are not acknowledged any more"
        time.sleep(0.01)
