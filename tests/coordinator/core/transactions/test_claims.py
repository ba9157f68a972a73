"""Common claims about idempotence and transactions, each with what happens.

The docstring of a test is the claim, in our words, as docs/claims.md has it beside what is true of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import string_hash
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import read_batch
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode, commit, join
from tests.coordinator.core.transactions.producer import Producer, batch, fetch, node
from tests.docs.texts import TEXTS

NONE = ErrorCode.NONE
DAY_MS = 86_400_000
PLAIN_OFFSET = OffsetCommitRequestPartition(partition_index=0, committed_offset=99, committed_metadata="")


class IdempotentProducer:
    """A producer without a transactional id."""

    def __init__(self, driven: DrivenNode) -> None:
        self.driven = driven
        answer = driven.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def produce(self, sequence: int) -> tuple[ErrorCode, int]:
        """One record with this sequence: the error, and its offset."""
        data = batch(self.producer_id, self.epoch, sequence, is_transactional=False)
        topic = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=data),))
        answer = self.driven.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)), 9)
        partition = answer.responses[0].partition_responses[0]
        return partition.error_code, partition.base_offset


def transactional(driven: DrivenNode, **given: Any) -> Producer:
    producer = Producer(driven, **given)
    assert producer.init() is NONE
    return producer


def values(driven: DrivenNode, *, committed: bool) -> list[bytes | None]:
    """The records that a reader of this isolation level gives to its user."""
    read = fetch(driven, committed=committed)
    aborted = {each.producer_id for each in read.aborted_transactions or ()}
    data, at, found = bytes(read.records), 0, []
    while at < len(data):
        header = parse_header(data, at)
        if not header.is_control and not (committed and header.producer_id in aborted):
            found += [record.value for record in read_batch(data[at : at + header.size])]
        at += header.size
    return found


def commit_offset(producer: Producer, offset: int, generation: int = -1, member_id: str = "") -> ErrorCode:
    """TxnOffsetCommit, as a client of transaction.version 2 sends it."""
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    )
    error: ErrorCode = producer.driven.ask(request, 5).topics[0].partitions[0].error_code
    return error


def committed_offset(driven: DrivenNode, *, stable: bool) -> tuple[ErrorCode, int]:
    wanted = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=(wanted,)),), require_stable=stable
    )
    found = driven.ask(request, 8).groups[0].topics[0].partitions[0]
    return found.error_code, found.committed_offset


# -- idempotence


def test_a_duplicate_is_a_success() -> None:
    """The broker answers a repeated batch with DUPLICATE_SEQUENCE_NUMBER."""
    driven = node()
    producer = IdempotentProducer(driven)
    assert [producer.produce(0), producer.produce(1), producer.produce(0)] == [(NONE, 0), (NONE, 1), (NONE, 0)]
    assert len(values(driven, committed=False)) == 2


def test_five_batches_are_remembered() -> None:
    """The broker remembers the last sequence number of a producer."""
    producer = IdempotentProducer(node())
    for sequence in range(6):
        producer.produce(sequence)
    assert producer.produce(1) == (NONE, 1)
    assert producer.produce(0)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused() -> None:
    """A batch whose sequence leaves a gap is refused."""
    producer = IdempotentProducer(node())
    producer.produce(0)
    assert producer.produce(2)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """A broker that has forgotten a producer answers UNKNOWN_PRODUCER_ID."""
    assert IdempotentProducer(node()).produce(7) == (NONE, 0)
    producer = transactional(node())
    producer.sequence = 7
    assert producer.produce() is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_restarted_producer_is_another_one() -> None:
    """An idempotent producer writes each record once."""
    driven = node()
    before, after = IdempotentProducer(driven), IdempotentProducer(driven)
    assert before.producer_id != after.producer_id
    assert [before.produce(0), after.produce(0)] == [(NONE, 0), (NONE, 1)]


def test_deleted_records_are_remembered() -> None:
    """Deleting a producer's records makes the broker forget its sequence numbers."""
    driven = node()
    producer = IdempotentProducer(driven)
    producer.produce(0)
    everything = DeleteRecordsTopic(name=TOPIC, partitions=(DeleteRecordsPartition(partition_index=0, offset=-1),))
    deleted = driven.ask(DeleteRecordsRequest(topics=(everything,), timeout_ms=1_000), 2)
    assert deleted.topics[0].partitions[0].low_watermark == 1
    assert producer.produce(0) == (NONE, 0)
    assert producer.produce(7)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# -- one transactional id


def test_a_transactional_id_keeps_its_producer_id() -> None:
    """After a restart a producer with the same transactional.id has the same producer id, and a higher epoch."""
    driven = node()
    first, second = transactional(driven), transactional(driven)
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 1)


def test_a_zombie_is_fenced() -> None:
    """A zombie gets PRODUCER_FENCED when it writes."""
    driven = node()
    zombie = transactional(driven)
    zombie.produce()
    heir = Producer(driven)
    assert heir.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    driven.elapse(50)
    assert heir.init() is NONE
    assert zombie.produce() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end() is ErrorCode.PRODUCER_FENCED
    assert values(driven, committed=True) == []


def test_init_does_not_wait() -> None:
    """initTransactions waits at the coordinator until the transaction before has ended."""
    driven = node(emulator_transaction_marker_delay_ms=1_000)
    transactional(driven).produce()
    heir = Producer(driven)
    answers = []
    while (error := heir.init()) is not NONE:
        answers.append(error)
        driven.elapse(100)
    assert set(answers) == {ErrorCode.CONCURRENT_TRANSACTIONS}


def test_a_batch_adds_its_partition() -> None:
    """With transaction.version 2 there is no AddPartitionsToTxn any more."""
    driven = node()
    producer = transactional(driven)
    assert producer.produce(version=11) is ErrorCode.TRANSACTION_ABORTABLE
    assert producer.produce(version=12) is NONE
    (topic,) = producer.described().topics
    assert (topic.topic, topic.partitions) == (TOPIC, (0,))


def test_the_timeout_counts_from_the_first_partition() -> None:
    """Each write begins the transaction's timeout anew."""
    driven = node()
    producer = transactional(driven, timeout_ms=15_000)
    for _ in range(4):
        assert producer.produce() is NONE
        driven.elapse(4_900)
    driven.elapse(1_000)
    assert producer.described().transaction_state == "CompleteAbort"


def test_a_timeout_that_is_too_long_is_refused() -> None:
    """A timeout above transaction.max.timeout.ms is cut down to it."""
    assert Producer(node(), timeout_ms=900_000).init() is NONE
    assert Producer(node(), timeout_ms=900_001).init() is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_transaction_without_its_producer_is_aborted() -> None:
    """The transaction of a producer that died stays open until an administrator aborts it."""
    driven = node()
    lost, other = transactional(driven, timeout_ms=15_000), transactional(driven, transactional_id="other")
    lost.produce(value=b"lost")
    other.produce(value=b"other")
    other.end()
    assert values(driven, committed=True) == []
    driven.elapse(26_000)
    assert lost.described().transaction_state == "CompleteAbort"
    assert values(driven, committed=True) == [b"other"]


def test_a_transactional_id_outlives_its_producer() -> None:
    """A transactional.id is forgotten when its producer closes."""
    driven = node()
    before = transactional(driven)
    driven.elapse(DAY_MS)
    after = transactional(driven)
    assert (after.producer_id, after.epoch) == (before.producer_id, before.epoch + 1)
    driven.elapse(8 * DAY_MS)
    assert before.described().error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_the_coordinator_is_found_by_an_absolute_value() -> None:
    """The coordinator leads partition (hash & 0x7fffffff) % 50 of __transaction_state."""
    code = string_hash("shipping")
    assert code < 0
    assert partition_for("shipping", 50) == abs(code) % 50 != (code & 0x7FFF_FFFF) % 50


# -- the end of a transaction


def test_records_are_in_the_log_at_once() -> None:
    """The broker keeps the records of a transaction apart until it commits."""
    driven = node()
    producer = transactional(driven)
    producer.produce(value=b"open")
    assert values(driven, committed=False) == [b"open"]


def test_readers_are_given_nothing_of_an_open_transaction() -> None:
    """A consumer with read_committed keeps the records of open transactions until it reads their markers."""
    driven = node()
    producer = transactional(driven)
    producer.produce(value=b"a")
    assert bytes(fetch(driven).records) == b""
    producer.end()
    assert values(driven, committed=True) == [b"a"]


def test_the_last_stable_offset_is_in_each_response() -> None:
    """Only readers with read_committed get the last stable offset."""
    driven = node()
    transactional(driven).produce()
    read = fetch(driven, committed=False)
    assert (read.last_stable_offset, read.high_watermark) == (0, 1)


def test_the_decision_is_what_is_answered() -> None:
    """When commitTransaction returns, consumers can read the records."""
    driven = node(emulator_transaction_marker_delay_ms=1_000)
    producer = transactional(driven)
    producer.produce(value=b"a")
    assert producer.end() is NONE
    assert producer.described().transaction_state == "PrepareCommit"
    assert values(driven, committed=True) == []
    driven.elapse(1_100)
    assert values(driven, committed=True) == [b"a"]


def test_aborted_records_stay() -> None:
    """Records of an aborted transaction are removed."""
    driven = node()
    producer = transactional(driven)
    producer.produce(value=b"aborted")
    producer.end(commits=False)
    assert values(driven, committed=True) == []
    assert values(driven, committed=False) == [b"aborted"]


def test_markers_take_offsets() -> None:
    """The offsets of a partition have no gaps."""
    driven = node()
    producer = transactional(driven)
    for _ in range(2):
        producer.produce()
        producer.end()
    read = fetch(driven)
    assert (len(values(driven, committed=True)), read.last_stable_offset) == (2, 4)


def test_the_oldest_open_transaction_holds_up_a_partition() -> None:
    """read_committed gives a record as soon as its transaction has committed."""
    driven = node()
    slow, quick = transactional(driven, transactional_id="slow"), transactional(driven, transactional_id="quick")
    slow.produce(value=b"slow")
    quick.produce(value=b"quick")
    quick.end()
    assert values(driven, committed=True) == []
    slow.end()
    assert values(driven, committed=True) == [b"slow", b"quick"]


# -- offsets


@pytest.mark.parametrize(("commits", "after"), [(True, 5), (False, -1)])
def test_offsets_count_with_the_records(commits: bool, after: int) -> None:
    """Offsets sent to a transaction are committed with it, or not at all."""
    driven = node()
    producer = transactional(driven)
    assert commit_offset(producer, 5) is NONE
    assert committed_offset(driven, stable=False) == (NONE, -1)
    assert committed_offset(driven, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.end(commits=commits) is NONE
    assert committed_offset(driven, stable=True) == (NONE, after)
    assert commit_offset(producer, 6) is NONE
    plain = driven.ask(commit(topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(PLAIN_OFFSET,)),)), 8)
    assert plain.topics[0].partitions[0].error_code is NONE
    assert producer.end() is NONE
    assert committed_offset(driven, stable=True) == (NONE, 99)


def test_the_generation_fences_a_consumer_that_was_replaced() -> None:
    """A consumer that has lost its partitions is fenced by the transactional.id."""
    driven = node(group_initial_rebalance_delay_ms=0)
    member_id = driven.joins(join())
    producer = transactional(driven)
    assert commit_offset(producer, 5, 1, "another-member") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_offset(producer, 5, 7, member_id) is ErrorCode.ILLEGAL_GENERATION
    # Without the group's metadata nothing is compared.
    assert commit_offset(producer, 5) is NONE


def test_offsets_are_not_in_the_transaction_log() -> None:
    """Offsets that are sent to a transaction are kept in the transaction log until it commits."""
    driven = node()
    producer = transactional(driven)
    assert commit_offset(producer, 5) is NONE
    ((topic),) = producer.described().topics
    assert topic.topic == "__consumer_offsets"


# -- the documentation


def test_the_documentation_has_each_statement_with_its_test() -> None:
    section = (
        TEXTS["docs/claims.md"]
        .partition("\n## Common claims about idempotence and transactions\n")[2]
        .partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)[1:]
    tests: list[Callable[..., None]] = [
        found for name, found in globals().items() if name.startswith("test_") and "documentation" not in name
    ]
    statements = [(test.__doc__ or "").strip().replace("\n    ", " ") for test in tests]
    assert [said.replace("`", "") for said, _ in rows] == [said.replace("`", "") for said in statements]
    assert all(happens.startswith(("so it is", "wrong", "not quite")) for _, happens in rows)
