"""confluent-kafka's ShareConsumer in groups of its own, one for each step: ``python -m tests.real_clients.share_groups
BOOTSTRAP_SERVERS`` prints a line of JSON for each."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from confluent_kafka import AcknowledgeType, Consumer, Message, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

PATIENCE_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 1.0
LOCK_MS: Final = 3_000
LONG_LOCK_MS: Final = 60_000

VICTIM: Final = """
import sys, time
from confluent_kafka import ShareConsumer
servers, group_id = sys.argv[1:]
consumer = ShareConsumer(
    {"bootstrap.servers": servers, "group.id": group_id, "share.acknowledgement.mode": "explicit"}
)
consumer.subscribe([group_id])
records = []
while not records:
    records = list(consumer.poll(0.5))
print(len(records), flush=True)
time.sleep(60)
"""


class Groups:
    """The steps, against the node that listens at ``servers``."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._open: list[ShareConsumer] = []

    def steps(self) -> dict[str, Callable[[], None]]:
        return {
            "three members on two partitions": self.three_members,
            "release": self.release,
            "reject": self.reject,
            "a lock runs out": self.lock_runs_out,
            "one is killed with records in flight": self.kill,
            "delivery limit and dead letters": self.dead_letters,
            "rolling restart": self.rolling_restart,
        }

    def close(self) -> None:
        """Close the consumers of a step."""
        for consumer in self._open:
            consumer.close()
        self._open.clear()

    # --- steps

    def three_members(self) -> None:
        group = self._prepare("confluent-three", partitions=2)
        members = [self._consumer(group, "implicit") for _ in range(3)]
        seen: Counter[bytes] = Counter()
        busy: set[int] = set()
        written = 0
        end = time.monotonic() + PATIENCE_SECONDS
        while len(busy) < 3 or len(seen) < written:
            if len(seen) == written:
                self._produce(group, written, 60)
                written += 60
            for number, member in enumerate(members):
                for record in _records(member.poll(0.1)):
                    seen[record.value() or b""] += 1
                    busy.add(number)
            assert time.monotonic() < end, f"{len(seen)} of {written} records came to members {busy}"
        assert seen.total() == written, f"{seen.total()} deliveries of {written} records"

    def release(self) -> None:
        group = self._prepare("confluent-release")
        self._produce(group, 0, 3)
        consumer = self._consumer(group)
        _acknowledge(consumer, _poll(consumer, 3), {1: AcknowledgeType.RELEASE})
        (again,) = _poll(consumer, 1)
        assert (again.offset(), again.delivery_count()) == (1, 2)
        _acknowledge(consumer, [again])
        _nothing_left(consumer)

    def reject(self) -> None:
        group = self._prepare("confluent-reject")
        self._produce(group, 0, 3)
        consumer = self._consumer(group)
        _acknowledge(consumer, _poll(consumer, 3), {1: AcknowledgeType.REJECT})
        _nothing_left(consumer)

    def lock_runs_out(self) -> None:
        group = self._prepare("confluent-lock", settings={"share.record.lock.duration.ms": str(LOCK_MS)})
        self._produce(group, 0, 2)
        slow = self._consumer(group)
        held = _poll(slow, 2)
        other = self._consumer(group)
        again = _poll(other, 2)
        assert [record.delivery_count() for record in again] == [2, 2]
        for record in held:
            slow.acknowledge(record)
        names = [None if error is None else error.args[0].name() for error in slow.commit_sync(20.0).values()]
        assert names == ["INVALID_RECORD_STATE"], names
        _acknowledge(other, again)
        _nothing_left(other)

    def kill(self) -> None:
        settings = {"share.record.lock.duration.ms": str(LONG_LOCK_MS)}
        group = self._prepare("confluent-kill", partitions=1, settings=settings)
        self._produce(group, 0, 10)
        command = [sys.executable, "-c", VICTIM, self._servers, group]
        with ExitStack() as stack:
            victim = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(victim.kill)
            assert victim.stdout is not None
            assert victim.stdout.readline().strip() == "10"
        killed = time.monotonic()
        heir = self._consumer(group)
        records = _poll(heir, 10)
        assert {record.delivery_count() for record in records} == {2}
        assert time.monotonic() - killed < LONG_LOCK_MS / 2_000, "released with the lock and not with the connection"
        _acknowledge(heir, records)
        _nothing_left(heir)

    def dead_letters(self) -> None:
        dead = "dlq.confluent"
        self._create(dead, 1, {"errors.deadletterqueue.group.enable": "true"})
        settings = {
            "share.delivery.count.limit": "3",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        group = self._prepare("confluent-poison", settings=settings)
        self._produce(group, 0, 3)
        consumer = self._consumer(group)
        deliveries = []
        for wanted in (3, 1, 1):
            records = _poll(consumer, wanted)
            deliveries += [record.delivery_count() for record in records if record.offset() == 1]
            _acknowledge(consumer, records, {1: AcknowledgeType.RELEASE})
        assert deliveries == [1, 2, 3]
        _nothing_left(consumer)
        reader = Consumer({"bootstrap.servers": self._servers, "group.id": "dead", "auto.offset.reset": "earliest"})
        reader.assign([TopicPartition(dead, 0, 0)])
        try:
            letter = reader.poll(PATIENCE_SECONDS)
            assert letter is not None, "no dead letter"
            assert (letter.key(), letter.value()) == (b"key-1", b"1")
            headers = dict(letter.headers() or ())
            assert headers["__dlq.errors.topic"] == headers["__dlq.errors.group"] == group.encode()
            assert (headers["__dlq.errors.offset"], headers["__dlq.errors.delivery.count"]) == (b"1", b"3")
        finally:
            reader.close()

    def rolling_restart(self) -> None:
        group = self._prepare("confluent-rolling", partitions=2)
        members = [self._consumer(group, "implicit") for _ in range(3)]
        seen: set[bytes] = set()
        written = 0

        def everything() -> None:
            nonlocal written
            self._produce(group, written, 60)
            written += 60
            end = time.monotonic() + PATIENCE_SECONDS
            while len(seen) < written:
                for member in members:
                    seen.update(record.value() or b"" for record in _records(member.poll(0.1)))
                assert time.monotonic() < end, f"{len(seen)} of {written} records came"

        everything()
        for number, member in enumerate(list(members)):
            self._produce(group, written, 60)
            written += 60
            seen.update(record.value() or b"" for record in _records(member.poll(0.1)))
            member.close()
            self._open.remove(member)
            members[number] = self._consumer(group, "implicit")
            everything()

    # --- what they are made of

    def _create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        for future in self._admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            future.result(PATIENCE_SECONDS)

    def _prepare(self, name: str, partitions: int = 1, settings: dict[str, str] | None = None) -> str:
        """Make a topic, and a group of its name that reads from the earliest record; returns the name."""
        self._create(name, partitions, {})
        wanted = {"share.auto.offset.reset": "earliest", **(settings or {})}
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()
        ]
        resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=changes)
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(PATIENCE_SECONDS)
        return name

    def _produce(self, topic: str, first: int, records: int) -> None:
        producer = Producer({"bootstrap.servers": self._servers})
        for number in range(first, first + records):
            producer.produce(topic, str(number), f"key-{number}")
        assert producer.flush(PATIENCE_SECONDS) == 0

    def _consumer(self, group: str, mode: str = "explicit") -> ShareConsumer:
        settings = {"bootstrap.servers": self._servers, "group.id": group, "share.acknowledgement.mode": mode}
        consumer = ShareConsumer(settings | {"max.poll.records": 10})
        consumer.subscribe([group])
        self._open.append(consumer)
        return consumer


def _records(polled: Any) -> list[Message]:
    found = list(polled)
    for record in found:
        assert record.error() is None, record.error()
    return found


def _poll(consumer: ShareConsumer, wanted: int) -> list[Message]:
    """The records of the first poll that has any."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if found := _records(consumer.poll(0.5)):
            assert len(found) == wanted, f"{len(found)} records of one poll, expected {wanted}"
            return found
    raise AssertionError(f"no records, expected {wanted}")


def _acknowledge(consumer: ShareConsumer, records: list[Message], others: dict[int, Any] | None = None) -> None:
    """Accept the records but those whose offsets are in ``others``, and commit."""
    for record in records:
        consumer.acknowledge(record, (others or {}).get(record.offset() or 0, AcknowledgeType.ACCEPT))
    for partition, error in consumer.commit_sync(20.0).items():
        assert error is None, f"{partition}: {error}"


def _nothing_left(consumer: ShareConsumer) -> None:
    assert not _records(consumer.poll(QUIET_SECONDS)), "a record after the last"


def main() -> None:
    groups = Groups(sys.argv[1])
    for name, step in groups.steps().items():
        problem = ""
        try:
            step()
        except Exception as error:
            problem = " ".join(f"{type(error).__name__} {error}".split())
        groups.close()
        print(json.dumps({"step": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main()
