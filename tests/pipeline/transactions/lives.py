"""What becomes of producers on one node, as rows of a journal: each life once with something wrong, once nearly so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.simulation import RunEnded
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.core.driver import DrivenNode
from tests.coordinator.core.transactions.producer import Producer

RUN = "run"
ID = "payments-1"


class RecordedNode(DrivenNode):
    """A node that keeps when each event came."""

    def __init__(self, **settings: Any) -> None:
        self.timed: list[tuple[int, Event]] = []
        usual = {"transaction_state_log_num_partitions": 1, "transaction_partition_verification_enable": True}
        super().__init__(**(usual | settings))

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        self.timed.append((self.now, event))

    def journal(self) -> str:
        """All events as lines of a journal."""
        encoder = RowEncoder(RUN, "coordinator", "1")
        lines = [encoder.encode(number, at, event) for number, (at, event) in enumerate(self.timed, 1)]
        lines.append(RowEncoder(RUN, "simulation", "lab").encode(1, self.now, RunEnded(seed=1)))
        return "".join(line.decode() + "\n" for line in lines)


def begun(node: RecordedNode, timeout_ms: int = 60_000, *, name: str = ID) -> Producer:
    """A producer with an open transaction."""
    producer = Producer(node, name, timeout_ms)
    assert producer.init() is ErrorCode.NONE
    assert producer.produce() is ErrorCode.NONE
    return producer


def again(producer: Producer) -> None:
    """A new instance takes the transactional id; what is open is aborted first."""
    while producer.init() is ErrorCode.CONCURRENT_TRANSACTIONS:
        producer.driven.elapse(50)


def healthy(node: RecordedNode) -> None:
    """Commits, an abort that the client asks for, and a transaction that is open when the journal ends."""
    producer = begun(node)
    for commits in (True, True, False, True):
        node.elapse(800)
        assert producer.end(commits=commits) is ErrorCode.NONE
        assert producer.produce() is ErrorCode.NONE
    node.elapse(5_000)


def late_batch(node: RecordedNode) -> None:
    """A batch of a transaction comes after its end; without verification the log takes it, and it hangs."""
    producer = begun(node)
    assert producer.end(version=4) is ErrorCode.NONE
    node.elapse(100)
    assert producer.produce(11) is ErrorCode.NONE
    node.elapse(600_000)


def refused_late_batch(node: RecordedNode) -> None:
    """The same with transaction version 2: the batch has the epoch before the end's, and is refused."""
    producer = begun(node)
    epoch = producer.epoch
    assert producer.end() is ErrorCode.NONE
    producer.use(producer.producer_id, epoch)
    assert producer.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
    node.elapse(600_000)


def shared_id(node: RecordedNode) -> None:
    """Two instances with one transactional id, each of which begins anew when it is fenced."""
    first, second = begun(node), Producer(node, ID)
    for _ in range(3):
        for one, other in ((second, first), (first, second)):
            node.elapse(1_000)
            again(one)
            assert one.produce() is ErrorCode.NONE
            assert other.produce() is ErrorCode.INVALID_PRODUCER_EPOCH


def restarted(node: RecordedNode) -> None:
    """An instance that dies in the middle of a transaction, and its successor."""
    begun(node)
    node.elapse(2_000)
    successor = Producer(node, ID)
    again(successor)
    assert successor.produce() is ErrorCode.NONE
    assert successor.end() is ErrorCode.NONE


def zombie(node: RecordedNode) -> None:
    """An instance that is replaced, and goes on writing once."""
    first = begun(node)
    node.elapse(2_000)
    successor = Producer(node, ID)
    again(successor)
    assert first.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.produce() is ErrorCode.NONE
    assert successor.end() is ErrorCode.NONE


def unseen_fence(node: RecordedNode) -> None:
    """An instance is replaced between its transactions, so the log does not know the new epoch when it writes again."""
    first = begun(node)
    assert first.end(version=4) is ErrorCode.NONE
    node.elapse(2_000)
    again(Producer(node, ID))
    node.elapse(10_000)
    first.produce(11)
    node.elapse(120_000)


def known_fence(node: RecordedNode) -> None:
    """An instance is replaced within its transaction, so the log knows the new epoch when it writes again."""
    first = begun(node)
    node.elapse(2_000)
    again(Producer(node, ID))
    node.elapse(10_000)
    first.produce(11)
    node.elapse(120_000)


def too_slow(node: RecordedNode) -> None:
    """Work that takes longer than the timeout, again and again."""
    producer = begun(node, 10_000)
    for _ in range(3):
        node.elapse(30_000)
        assert producer.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
        again(producer)
        assert producer.produce() is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE


def just_in_time(node: RecordedNode) -> None:
    """Work that takes nearly as long as the timeout."""
    producer = begun(node, 10_000)
    for _ in range(3):
        node.elapse(9_900)
        assert producer.end() is ErrorCode.NONE
        assert producer.produce() is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE


def died(node: RecordedNode) -> None:
    """A producer that dies in the middle of a transaction, and never comes back."""
    begun(node, 20_000)
    node.elapse(300_000)


def long_transaction(node: RecordedNode, lasts_ms: int = 45_000) -> None:
    """A long transaction, with another producer that commits behind it."""
    producer, other = begun(node), begun(node, name="other")
    for _ in range(lasts_ms // 500):
        assert other.end() is ErrorCode.NONE
        node.elapse(500)
        assert other.produce() is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    assert other.end() is ErrorCode.NONE


def shorter_transaction(node: RecordedNode) -> None:
    """The same within what readers can wait for."""
    long_transaction(node, 20_000)


def lines_of(life: Callable[[RecordedNode], None], **settings: Any) -> str:
    """A life as a journal."""
    node = RecordedNode(**settings)
    life(node)
    return node.journal()


def rows_of(journal: str) -> list[dict[str, Any]]:
    """A journal as rows of the table of events, as far as tables of transactions read them."""
    rows = []
    for number, line in enumerate(journal.splitlines(), 1):
        row = json.loads(line)
        if isinstance(row.get("partitions"), dict):
            row["partitions"] = [
                {"topic": topic, "partition": index} for topic, found in row["partitions"].items() for index in found
            ]
        rows.append({"confidence": "exact", "file": "journal", "line": number, **row})
    return rows
