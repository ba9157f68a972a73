"""Transactions of the producer's core: which calls are allowed when, which requests follow, and each error's end."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.effects import Send
from rejoin.client.core.inputs import Answered, Failed, Failure, GroupMetadata, OffsetAndMetadata
from rejoin.client.core.producer.inputs import TransactionCall, TransactionCalled
from rejoin.client.core.producer.reactions import INIT_WITH_ID, TABLES, ProducerReaction, reaction
from rejoin.client.producer_config import checked_producer_config
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.types import TopicPartition
from tests.client.core.producer.bench import NONE, Bench

CALLS = {call.name.lower(): call for call in TransactionCall}
OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(5)}
GROUP = GroupMetadata("g", 3, "m")


class TransactionBench(Bench):
    """Answers requests about transactions by itself: first what ``answers`` has for an API, then without an error."""

    def __init__(self, level: int = 2, **settings: Any) -> None:
        super().__init__(transactional_id="tx", retry_backoff_ms=100, **settings)
        self.level = level
        self.answers: dict[str, list[ErrorCode | Failure]] = {}

    def call(self, *names: str) -> None:
        """Calls by their names, which are their tokens too."""
        for name in names:
            self.step(TransactionCalled(name, CALLS[name], OFFSETS if name == "send_offsets" else {}, GROUP))

    def in_transaction(self) -> None:
        """Init, begin, and forget what that took."""
        self.call("init", "begin")
        self.take()

    def _send(self, send: Send) -> None:
        api = BY_REQUEST[type(send.request)]
        if isinstance(send.request, ProduceRequest) or api.name == "Metadata":
            super()._send(send)
            return
        to = "any" if send.to is None else str(send.to.node_id)
        self.lines.append(f"{api.name} v{send.version} to {to}{self._shown_request(send.request)}")
        scripted = self.answers.get(api.name)
        error = scripted.pop(0) if scripted else NONE
        if isinstance(error, Failure):
            self.step(Failed(send.request_id, error))
        else:
            self.step(Answered(send.request_id, self._answer_to(send.request, send.version, error)))

    @staticmethod
    def _shown_request(request: Request) -> str:
        match request:
            case FindCoordinatorRequest():
                return f": {request.coordinator_keys[0]} of type {request.key_type}"
            case InitProducerIdRequest():
                return f": {request.producer_id}/{request.producer_epoch}"
            case EndTxnRequest():
                end = "commit" if request.committed else "abort"
                return f": {request.producer_id}/{request.producer_epoch} {end}"
            case _:
                return ""

    def _answer_to(self, request: Request, version: int, error: ErrorCode) -> Response:
        producer_id, epoch = self.producer
        match request:
            case ApiVersionsRequest():
                feature = FinalizedFeatureKey(name="transaction.version", max_version_level=self.level)
                return ApiVersionsResponse(finalized_features=(feature,))
            case FindCoordinatorRequest():
                node = 2 if request.key_type else 1
                found = Coordinator(key=request.coordinator_keys[0], node_id=node, host="h", port=1, error_code=error)
                return FindCoordinatorResponse(coordinators=(found,))
            case InitProducerIdRequest() if error is NONE:
                if request.producer_id >= 0:
                    self.producer = (producer_id, epoch + 1)
                return InitProducerIdResponse(producer_id=producer_id, producer_epoch=self.producer[1])
            case EndTxnRequest() if error is NONE and version >= 5:
                self.producer = (producer_id, epoch + 1)
                return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch + 1)
            case _:
                return request.error_response(version, error)


def test_a_transaction_of_version_2() -> None:
    bench = TransactionBench()
    bench.call("init", "begin")
    assert bench.take() == [
        "ApiVersions v5 to any",
        "FindCoordinator v6 to any: tx of type 1",
        "InitProducerId v5 to 2: -1/-1",
        "init done",
        "begin done",
    ]
    bench.produce("a")
    bench.call("send_offsets", "commit")
    bench.answer()
    assert bench.take()[2:] == [
        "Produce to 1: t-0 0/0 x1",
        "FindCoordinator v6 to any: g of type 0",
        "TxnOffsetCommit v5 to 1",
        "send_offsets done",
        "a stored t-0@0",
        "EndTxn v5 to 2: 7/0 commit",
        "commit done",
    ]
    bench.call("begin")
    bench.produce("b")
    bench.call("abort")
    bench.answer(base_offset=2)
    assert bench.take()[1:] == [
        "Produce to 1: t-0 1/0 x1",
        "b stored t-0@2",
        "EndTxn v5 to 2: 7/1 abort",
        "abort done",
    ]


def test_a_transaction_before_version_2_adds_partitions_and_keeps_the_epoch() -> None:
    bench = TransactionBench(level=1)
    bench.in_transaction()
    bench.answers["AddPartitionsToTxn"] = [ErrorCode.CONCURRENT_TRANSACTIONS]
    bench.produce("a")
    assert bench.take() == ["a waits", "a goes on", "AddPartitionsToTxn v3 to 2"]
    bench.advance(19)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["AddPartitionsToTxn v3 to 2", "Produce to 1: t-0 0/0 x1"]
    assert bench.in_flight[0].version == 11
    bench.answer()
    bench.call("send_offsets", "commit", "begin")
    assert bench.take() == [
        "a stored t-0@0",
        "AddOffsetsToTxn v4 to 2",
        "FindCoordinator v6 to any: g of type 0",
        "TxnOffsetCommit v4 to 1",
        "send_offsets done",
        "EndTxn v4 to 2: 7/0 commit",
        "commit done",
        "begin done",
    ]
    bench.produce("b")
    assert bench.take() == ["AddPartitionsToTxn v3 to 2", "Produce to 1: t-0 0/1 x1"]


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_empty_transaction_ends_without_a_request(level: int, end: str) -> None:
    bench = TransactionBench(level)
    bench.in_transaction()
    bench.call(end)
    assert bench.take() == [f"{end} done"]


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ([], "begin", "beginTransaction is not possible in state UNINITIALIZED; call init_transactions first"),
        (["init"], "init", "initTransactions is not possible in state READY"),
        (["init"], "commit", "commitTransaction is not possible in state READY; call begin_transaction first"),
        (["init"], "abort", "abortTransaction is not possible in state READY; call begin_transaction first"),
        (["init"], "send_offsets", "sendOffsetsToTransaction is not possible in state READY"),
        (["init", "begin"], "begin", "beginTransaction is not possible in state IN_TRANSACTION"),
    ],
)
def test_a_call_in_the_wrong_state_is_refused(before: list[str], call: str, message: str) -> None:
    bench = TransactionBench()
    bench.call(*before)
    bench.take()
    bench.call(call)
    (line,) = bench.take()
    assert line.startswith(f"{call} done: {message}")


def test_records_outside_of_a_transaction_are_refused() -> None:
    bench = TransactionBench()
    bench.call("init")
    bench.take()
    bench.produce("a")
    assert bench.take() == ["a failed: send is not possible in state READY; call begin_transaction first"]


def test_the_end_waits_for_all_records_and_abort_drops_those_that_were_not_sent() -> None:
    bench = TransactionBench(linger_ms=1_000)
    bench.in_transaction()
    bench.produce("a")
    bench.take()
    bench.call("commit")
    assert bench.take() == ["Produce to 1: t-0 0/0 x1"]
    bench.answer()
    bench.call("begin")
    bench.produce("b")
    bench.take()
    bench.call("abort")
    # As the Java client since transaction.version 2: the record counts as part of the transaction before it is sent.
    assert bench.take() == [
        "b failed: the transaction was aborted before the record was sent",
        "EndTxn v5 to 2: 7/1 abort",
        "abort done",
    ]


@pytest.mark.parametrize(
    "error",
    [ErrorCode.INVALID_RECORD, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH],
)
@pytest.mark.parametrize("level", [1, 2])
def test_a_record_that_fails_makes_the_transaction_one_to_abort(level: int, error: ErrorCode) -> None:
    bench = TransactionBench(level)
    bench.in_transaction()
    bench.produce("a")
    bench.answer(error)
    bench.take()
    bench.call("commit")
    bench.produce("b")
    failed, refused = bench.take()
    if error is ErrorCode.INVALID_PRODUCER_EPOCH:
        assert failed == "commit done: commitTransaction: t-0: INVALID_PRODUCER_EPOCH (47)"
        assert refused == "b failed: send: t-0: INVALID_PRODUCER_EPOCH (47)"
    else:
        assert failed.startswith("commit done: commitTransaction: the transaction can only be aborted: t-0: ")
        assert refused.startswith("b failed: send: the transaction can only be aborted")
    bench.call("abort", "begin")
    end, *more = bench.take()
    assert end == ("EndTxn v5 to 2: 7/0 abort" if level == 2 else "EndTxn v4 to 2: 7/0 abort")
    # Before version 2 the client asks for the next epoch itself (KIP-360).
    assert more == ([] if level == 2 else ["InitProducerId v5 to 2: 7/0"]) + ["abort done", "begin done"]
    bench.produce("c")
    assert bench.take()[-1] == "Produce to 1: t-0 1/0 x1"


def test_a_record_that_cannot_be_taken_in_makes_the_transaction_one_to_abort() -> None:
    # Kafka: KafkaProducer.doSend; a commit would lack the record.
    bench = TransactionBench(max_request_size=200, linger_ms=1_000)
    bench.in_transaction()
    bench.produce("small")
    bench.produce("large" * 60)
    bench.take()
    bench.call("commit")
    [refused] = bench.take()
    assert refused.startswith("commit done: commitTransaction: the transaction can only be aborted: the record has ")
    bench.call("abort", "begin")
    assert bench.take() == ["EndTxn v5 to 2: 7/0 abort", "abort done", "begin done"]
    bench.produce("again", topic="missing")
    bench.take()
    bench.advance(60_000)
    bench.call("commit")
    assert [line for line in bench.take() if line.startswith("commit")] == [
        "commit done: commitTransaction: the transaction can only be aborted: "
        "topic missing not present in metadata after 60000 ms"
    ]


@pytest.mark.parametrize("error", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_cannot_go_on(error: ErrorCode) -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.call("send_offsets")
    bench.answers["EndTxn"] = [error]
    bench.take()
    bench.call("commit", "abort", "begin")
    bench.produce("a")
    end, *refused = bench.take()
    assert end == "EndTxn v5 to 2: 7/0 commit"
    assert [f"EndTxn: {error.name}" in line for line in refused] == [True] * 4
    bench.close()
    assert bench.take() == ["close done"]


@pytest.mark.parametrize(
    ("api", "error", "looks_up"),
    [
        ("EndTxn", ErrorCode.CONCURRENT_TRANSACTIONS, False),
        ("EndTxn", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        ("EndTxn", ErrorCode.NOT_COORDINATOR, True),
        ("EndTxn", Failure.DISCONNECT, True),
        ("TxnOffsetCommit", ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
    ],
)
def test_what_is_tried_again_is_tried_after_a_backoff(api: str, error: ErrorCode | Failure, looks_up: bool) -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.answers[api] = [error]
    bench.call("send_offsets")
    bench.advance(100)
    bench.call("commit")
    bench.advance(100)
    lines = bench.take()
    assert sum(line.startswith(api) for line in lines) == 2
    assert sum(line.startswith("FindCoordinator") for line in lines) == 1 + looks_up
    assert lines[-1] == "commit done"


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID]
)
def test_offsets_of_a_group_that_has_moved_on_abort_the_transaction(error: ErrorCode) -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.answers["TxnOffsetCommit"] = [error]
    bench.call("send_offsets", "abort")
    failed, *ended = bench.take()[2:]
    assert failed.startswith(f"send_offsets done: TxnOffsetCommit: {error.name}")
    assert ended == ["EndTxn v5 to 2: 7/0 abort", "abort done"]


def test_abort_does_not_wait_for_offsets_that_cannot_be_committed() -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.answers["TxnOffsetCommit"] = [ErrorCode.NOT_COORDINATOR] * 9
    bench.call("send_offsets", "abort")
    bench.advance(100)
    assert bench.take()[2:] == [
        "send_offsets done: the transaction was aborted before the offsets were committed",
        "EndTxn v5 to 2: 7/0 abort",
        "abort done",
    ]


@pytest.mark.parametrize(
    ("api", "error", "reacts"),
    [
        # Kafka: the handlers of TransactionManager. What is retriable is tried again, whatever it is.
        ("EndTxn", ErrorCode.NOT_ENOUGH_REPLICAS, ProducerReaction.RETRY),
        ("AddOffsetsToTxn", ErrorCode.KAFKA_STORAGE_ERROR, ProducerReaction.RETRY),
        (INIT_WITH_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER, ProducerReaction.RETRY),
        ("TxnOffsetCommit", ErrorCode.UNSTABLE_OFFSET_COMMIT, ProducerReaction.RETRY),
        ("AddPartitionsToTxn", ErrorCode.UNKNOWN_SERVER_ERROR, ProducerReaction.ABORT),
        ("AddPartitionsToTxn", ErrorCode.INVALID_TXN_STATE, ProducerReaction.FATAL),
        ("AddPartitionsToTxn", ErrorCode.INVALID_PRODUCER_ID_MAPPING, ProducerReaction.ABORT),
        ("TxnOffsetCommit", ErrorCode.INVALID_PRODUCER_ID_MAPPING, ProducerReaction.FATAL),
        ("EndTxn", ErrorCode.INVALID_PRODUCER_ID_MAPPING, ProducerReaction.ABORT),
        ("EndTxn", ErrorCode.UNKNOWN_SERVER_ERROR, ProducerReaction.FATAL),
        ("FindCoordinator", ErrorCode.TRANSACTION_ABORTABLE, ProducerReaction.ABORT),
        ("FindCoordinator", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ProducerReaction.FATAL),
        ("Produce", ErrorCode.GROUP_AUTHORIZATION_FAILED, ProducerReaction.FAIL),
    ],
)
def test_what_no_table_names_is_as_with_kafkas_client(api: str, error: ErrorCode, reacts: ProducerReaction) -> None:
    assert reaction(api, error) is reacts


def test_a_partition_that_is_not_there_yet_is_added_later() -> None:
    bench = TransactionBench(level=1)
    bench.in_transaction()
    bench.answers["AddPartitionsToTxn"] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    bench.produce("a")
    bench.advance(100)
    bench.call("abort")
    bench.advance(1_000)
    assert bench.take()[-2:] == ["a failed: the transaction was aborted before the record was sent", "abort done"]


def test_a_coordinator_that_does_not_know_the_producer_gives_it_a_new_epoch() -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.produce("a")
    bench.answer()
    bench.take()
    bench.answers["EndTxn"] = [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    bench.call("commit", "abort")
    failed, *recovered = bench.take()[1:]
    assert failed == "commit done: EndTxn: INVALID_PRODUCER_ID_MAPPING (49)"
    assert recovered == ["InitProducerId v5 to 2: 7/0", "abort done"]


def test_a_call_that_takes_too_long_can_be_made_again() -> None:
    bench = TransactionBench(max_block_ms=1_000)
    bench.answers["InitProducerId"] = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    bench.call("init")
    bench.answers["InitProducerId"] += [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
    bench.advance(1_000)
    assert "init done: initTransactions is not done after 1000 ms; call it again to wait longer" in bench.take()
    bench.advance(10_000)
    bench.call("init", "begin")
    assert bench.take()[-2:] == ["init done", "begin done"]


def test_close_aborts_what_is_open() -> None:
    bench = TransactionBench()
    bench.in_transaction()
    bench.produce("a")
    bench.close()
    bench.answer()
    assert bench.take()[-3:] == ["a stored t-0@0", "EndTxn v5 to 2: 7/0 abort", "close done"]


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    bench = Bench()
    bench.step(TransactionCalled("init", TransactionCall.INIT))
    assert bench.take() == ["init done: transactions need a transactional.id"]


@pytest.mark.parametrize("settings", [{"enable_idempotence": False}, {"acks": "1"}, {"retries": 0}])
def test_transactions_need_idempotence(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"transactional\.id needs enable\.idempotence"):
        checked_producer_config({"transactional_id": "tx", **settings})


@pytest.mark.parametrize("api", [INIT_WITH_ID, "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_every_request_to_a_coordinator_survives_its_failover(api: str) -> None:
    table = TABLES[api]
    assert table[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] is ProducerReaction.RETRY
    assert table[ErrorCode.CONCURRENT_TRANSACTIONS] is ProducerReaction.RETRY
    for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION):
        assert table[error] is ProducerReaction.FIND_COORDINATOR
    for error in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE):
        assert reaction(api, error) is ProducerReaction.FATAL
