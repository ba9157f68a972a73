"""Answers to clients, and whether the broker has all of them: read from the broker itself, beside any proxy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from conformance.proxied.client import NUMBERS, group_of, moved

READ_SECONDS: Final = 120.0


@dataclass
class ClientLedger:
    """The output of one client."""

    library: str
    role: str
    number: int
    produced: dict[int, int] = field(default_factory=dict)
    """Offsets by the number of the record."""
    given_up: set[int] = field(default_factory=set)
    """Numbers of records whose producer had an error."""
    committed: dict[int, int] = field(default_factory=dict)
    """The highest offset that was acknowledged, by partition."""
    moved: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Partitions and offsets that a committed transaction copied."""
    aborted: set[int] = field(default_factory=set)
    answered_at: list[float] = field(default_factory=list)
    """Instants of what was acknowledged, in s since 1970."""
    problems: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Why a producer had to be replaced by another one of the same process."""

    def take(self, said: dict[str, Any]) -> None:
        """One line of the client."""
        if "produced" in said:
            number, offset = said["produced"]
            self.produced[number] = offset
        elif "committed" in said:
            partition, offset = said["committed"]
            self.committed[partition] = max(self.committed.get(partition, 0), offset)
        elif "moved" in said:
            self.moved[said["moved"]] = [(partition, offset) for partition, offset in said["records"]]
        elif "aborted" in said:
            self.aborted.add(said["aborted"])
        elif "replaced" in said:
            self.replaced.append(said["replaced"])
        else:
            self.problems.append(said["problem"])
            if "number" in said:
                self.given_up.add(said["number"])
        if not {"problem", "replaced"} & said.keys():
            self.answered_at.append(said["at"] / 1_000)

    def acknowledged(self) -> int:
        """How many produces, commits or ends of transactions were acknowledged."""
        return len(self.answered_at)


def lost(broker: str, ledgers: Iterable[ClientLedger]) -> list[str]:
    """Acknowledgements that the broker does not bear out, in words."""
    return [problem for each in ledgers for problem in _CHECKS[each.role](broker, each)]


def _produced(broker: str, ledger: ClientLedger) -> Iterator[str]:
    found = {offset: int(value) for offset, value in _records(broker, NUMBERS, ledger.number)}
    who = f"{ledger.library} produce"
    for number, offset in ledger.produced.items():
        if found.get(offset) != number:
            yield f"{who}: record {number} was acknowledged at {offset}, where {found.get(offset)} is"
    twice = [number for number, count in Counter(found.values()).items() if count > 1]
    if twice:
        yield f"{who}: twice in the log: {twice[:10]}"
    numbers = list(found.values())
    if numbers != sorted(numbers):
        yield f"{who}: out of order"
    missing = set(range(max(numbers, default=-1) + 1)) - set(numbers) - ledger.given_up
    if missing:
        yield f"{who}: not in the log, though later ones are: {sorted(missing)[:10]}"


def _committed(broker: str, ledger: ClientLedger) -> Iterator[str]:
    found = _offsets(broker, group_of(ledger.library, "consume"), ledger.committed)
    for partition, offset in ledger.committed.items():
        if found[partition] < offset:
            yield f"{ledger.library} consume: {offset} was acknowledged in {partition}; committed is {found[partition]}"


def _moved(broker: str, ledger: ClientLedger) -> Iterator[str]:
    who = f"{ledger.library} move"
    partitions = {partition for records in ledger.moved.values() for partition, _ in records}
    copies = [
        tuple(map(int, value.split()))
        for partition in sorted(partitions)
        for _, value in _records(broker, moved(ledger.library), partition)
    ]
    attempts = {(number, partition, offset) for number, partition, offset in copies}
    twice = [where for where, count in Counter(copy[1:] for copy in copies).items() if count > 1]
    if twice:
        yield f"{who}: copied more than once: {twice[:10]}"
    for number, records in ledger.moved.items():
        gone = [where for where in records if (number, *where) not in attempts]
        if gone:
            yield f"{who}: transaction {number} was committed without {gone[:10]}"
    seen = sorted(ledger.aborted & {number for number, _, _ in attempts})
    if seen:
        yield f"{who}: aborted, but there: {seen[:10]}"
    ends = _offsets(broker, group_of(ledger.library, "move"), dict.fromkeys(partitions))
    for partition, end in ends.items():
        offsets = {offset for _, at, offset in attempts if at == partition}
        if offsets != set(range(end)):
            yield f"{who}: {end} is committed in {partition}; copies differ: {sorted(offsets ^ set(range(end)))[:10]}"


_CHECKS: Final = {"produce": _produced, "consume": _committed, "move": _moved}


def _offsets(broker: str, group: str, partitions: Iterable[int]) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group, "log_level": 0})
    wanted = [TopicPartition(NUMBERS, partition) for partition in partitions]
    found = consumer.committed(wanted, timeout=READ_SECONDS) if wanted else []
    consumer.close()
    return {each.partition: max(each.offset, 0) for each in found}


def _records(broker: str, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
    """Offsets and values of the records that are committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    deadline = time.monotonic() + READ_SECONDS
    try:
        while time.monotonic() < deadline:
            message: Any = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is None:
                yield message.offset(), message.value()
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise KafkaException(message.error())
        raise TimeoutError(f"{topic}-{partition} was not read in {READ_SECONDS:.0f} s")
    finally:
        consumer.close()
