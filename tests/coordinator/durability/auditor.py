"""A reader of the committed bookings of the bank: wherever it looks, no transfer may be there in part.

The bookings of a transfer are in two partitions, and the marker of its transaction is written to each by itself, so a
reader may get one of them before the other, in Kafka as well. An audit is a cut through all partitions in which that
cannot be: whatever is visible when it begins was decided before, so both of its bookings lie in front of the ends
(high watermarks) that the partitions have now. Once all is read up to these ends, the sum must be 0.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.coordinator.durability.bank import BOOKINGS, CALM, PARTITIONS
from tests.coordinator.durability.producers import COMING_BACK, servers

PAUSE: Final = 0.5
"""Seconds until the next audit, after one that could not be made. It only bounds what asking costs."""
LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class _Audit(NamedTuple):
    """A cut: the transfers of which one booking was visible, and how far each partition must be read."""

    booked_in_part: frozenset[str]
    bookings: int
    ends: dict[TopicPartition, Future[Any]]


class Auditor(threading.Thread):
    """Reads what is committed of the bookings, and audits it whenever there are new ones."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(name="auditor", daemon=True)
        self.booked: Counter[tuple[str, bool]] = Counter()
        """How often each transfer was booked, as credit or not."""
        self.audited = 0
        """The bookings that were there when the last audit that has ended began."""
        self.audits = 0
        self.problems: list[str] = []
        self._in_part: dict[str, int] = {}
        """What is booked of the transfers of which one booking was read."""
        self._read_up_to = dict.fromkeys(range(PARTITIONS), 0)
        self._audit: _Audit | None = None
        self._next_audit_at = 0.0
        self._admin_settings = {**servers(*ports), **COMING_BACK, **CALM}
        self._admin = AdminClient(self._admin_settings)
        self._settings = {
            **servers(*ports),
            **COMING_BACK,
            **CALM,
            "group.id": "audit",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        self._stopped = threading.Event()
        self._fresh_consumer = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def replace_its_consumer(self) -> None:
        """Go on with a new consumer where the old one stands still."""
        self._fresh_consumer.set()

    def run(self) -> None:
        while not self._stopped.is_set():
            self._fresh_consumer.clear()
            consumer = Consumer(self._settings)
            consumer.assign(_bookings((partition, end or OFFSET_BEGINNING) for partition, end in self._positions()))
            while not self._stopped.is_set() and not self._fresh_consumer.is_set():
                message: Any = consumer.poll(0.05)
                if message is not None:
                    self._take(message)
                self._go_on_with_audit()
            consumer.close()

    def __str__(self) -> str:
        return (
            f"{self.audits} audits, the last of {self.audited} bookings; read up to {self._read_up_to}, {self._audit}"
        )

    def _positions(self) -> Iterable[tuple[int, int]]:
        return self._read_up_to.items()

    def _take(self, message: Any) -> None:
        if message.error() is None:
            name, _, delta = message.value().decode().split()
            self.booked[name, int(delta) > 0] += 1
            self._read_up_to[message.partition()] = message.offset() + 1
            left = self._in_part.pop(name, 0) + int(delta)
            if left:
                self._in_part[name] = left
        elif message.error().code() == KafkaError._PARTITION_EOF:
            # Markers and aborted records lie behind the last record that was given.
            self._read_up_to[message.partition()] = message.offset()

    def _go_on_with_audit(self) -> None:
        if self._audit is None:
            if self.booked.total() > self.audited and time.monotonic() >= self._next_audit_at:
                self._audit = self._begun()
        elif all(each.done() for each in self._audit.ends.values()):
            self._end_when_all_is_read(self._audit)

    def _begun(self) -> _Audit:
        wanted: dict[TopicPartition, Any] = dict.fromkeys(_bookings((each, 0) for each in self._read_up_to), LATEST)
        ends = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=5)
        return _Audit(frozenset(self._in_part), self.booked.total(), ends)

    def _end_when_all_is_read(self, audit: _Audit) -> None:
        try:
            ends = {partition.partition: each.result().offset for partition, each in audit.ends.items()}
        except KafkaException:
            ends = {}
        if not ends or min(ends.values()) < 0:
            # Leaders are away, or new. librdkafka 2.16 gives a negative offset where it knows no leader, and does not
            # forget a leader epoch that it has asked with.
            self._audit = None
            self._admin = AdminClient(self._admin_settings)
            self._next_audit_at = time.monotonic() + PAUSE
            return
        if all(self._read_up_to[partition] >= end for partition, end in ends.items()):
            self._audit = None
            self.audits += 1
            self.audited = audit.bookings
            left = {name: self._in_part[name] for name in sorted(audit.booked_in_part & self._in_part.keys())}
            if left:
                self.problems.append(f"the sum is {sum(left.values())}: of {left} nothing else was booked")


def _bookings(offsets: Iterable[tuple[int, int]]) -> list[TopicPartition]:
    return [TopicPartition(BOOKINGS, partition, offset) for partition, offset in offsets]
