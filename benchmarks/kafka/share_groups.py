"""A node's CPU for 500 records: for a consumer, and for a member of a share group.

All in one process and in turns, each round all of them, with requests and answers as bytes of Kafka's protocol:

- consumer: a Fetch of ten batches of 50 records, and an OffsetCommit;
- implicit: a ShareFetch of as many, which also accepts what the one before gave, batch by batch;
- explicit: the same with a type for each record, and every tenth record released and delivered once more.

A log in memory takes no time. The times are those of the process. Events of records are deferred, as by a server
without a journal.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import DeferredEvents, Effect
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.node import Node
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.wire.codec import Codec, codec_of
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from tests.coordinator.core.driver import PARTITION, Driver

BATCHES: Final = 10
RECORDS_OF_A_BATCH: Final = 50
RECORDS: Final = BATCHES * RECORDS_OF_A_BATCH
FETCHES: Final = 200
ROUNDS: Final = 5
BOUND: Final = 1.5
RELEASED: Final = 10
ACCEPT, RELEASE = 1, 2


class _Server(Driver):
    """A driver that makes no deferred event, like a server without readers."""

    def carry_out(self, effect: Effect) -> None:
        if type(effect) is not DeferredEvents:
            super().carry_out(effect)


class _Broker:
    """A node with one topic of one partition, asked in bytes."""

    def __init__(self, fetches: int) -> None:
        self.ids = 0
        self.asked = 0
        settings = Settings(offsets_topic_num_partitions=1, share_coordinator_state_topic_num_partitions=1)
        self.driver = _Server(Node(settings, self._new_id, defers_events=True))
        self.driver.see_cluster()
        self.driver.elect(PARTITION)
        topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
        created = self.ask("CreateTopics", 7, {"topics": [topic], "timeoutMs": 1})
        self.topic_id = created.topics[0].topic_id
        for _ in range(fetches * BATCHES):
            self._produce()

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032x}"

    def _produce(self) -> None:
        builder = BatchBuilder(self.driver.now)
        for offset in range(RECORDS_OF_A_BATCH):
            builder.append(encode_record(0, offset, b"key", b"x" * 100), self.driver.now)
        partition = {"index": 0, "records": bytes(builder.seal(CompressionType.NONE))}
        api = BY_NAME["Produce"].request
        topics = ({"name": "t", "partition_data": (partition,)},)
        request = api.model_validate({"acks": -1, "timeout_ms": 1, "topic_data": topics})
        self.answer(request, 9)

    def ask(self, name: str, version: int, body: dict[str, Any]) -> Any:
        """The response to a request, which is not written."""
        return self.answer(BY_NAME[name].request.from_json(json.dumps(body)), version)

    def answer(self, request: Any, version: int) -> Any:
        self.asked += 1
        self.driver.request(self.asked, request, Context(version, "client", connection="c"))
        return self.driver.replies.pop(self.asked)

    def serve(self, codec: Codec, frame: bytes) -> Any:
        """Read a request, handle it, write its response."""
        response = self.answer(codec.read_request(frame, 0), codec.version)
        codec.response_frame(1, response)
        return response


def _codec(name: str, version: int) -> Codec:
    found = codec_of(BY_NAME[name].key, version)
    assert found is not None
    return found


def _frame(codec: Codec, body: dict[str, Any]) -> bytes:
    return bytes(codec.write_request(codec.api.request.from_json(json.dumps(body))))


def consumer(broker: _Broker) -> float:
    """The CPU seconds of all Fetches, each with its OffsetCommit."""
    fetch, commit = _codec("Fetch", 12), _codec("OffsetCommit", 8)
    frames = []
    for number in range(FETCHES):
        offset = number * RECORDS
        asked = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": BATCHES * RECORDS_OF_A_BATCH * 120}
        reads = {
            "maxWaitMs": 0,
            "minBytes": 1,
            "topics": [{"topic": "t", "partitions": [asked]}],
            "forgottenTopicsData": [],
        }
        committed = {"partitionIndex": 0, "committedOffset": offset + RECORDS, "committedMetadata": ""}
        commits = {
            "groupId": "g",
            "memberId": "",
            "generationIdOrMemberEpoch": -1,
            "topics": [{"name": "t", "partitions": [committed]}],
        }
        frames.append((_frame(fetch, reads), _frame(commit, commits)))
    began = time.process_time()
    for reading, committing in frames:
        broker.serve(fetch, reading)
        broker.serve(commit, committing)
    return time.process_time() - began


def sharing(broker: _Broker, acknowledges: Callable[[Any], list[dict[str, Any]]]) -> float:
    """The CPU seconds of all ShareFetches."""
    codec, spent, rows = _codec("ShareFetch", 2), 0.0, ()
    named = {"topicId": broker.topic_id}
    _begin_to_share(broker)
    for epoch in range(FETCHES + 1):
        partition = {"partitionIndex": 0, "acknowledgementBatches": acknowledges(rows) if epoch > 1 else []}
        body = {
            "groupId": "s",
            "memberId": "m",
            "shareSessionEpoch": epoch,
            "maxWaitMs": 0 if epoch else 1,
            "minBytes": 1,
            "maxRecords": RECORDS if epoch else 0,
            "batchSize": RECORDS,
            "topics": [named | {"partitions": [partition]}],
            "forgottenTopicsData": [],
        }
        frame = _frame(codec, body)
        began = time.process_time()
        response = broker.serve(codec, frame)
        spent += time.process_time() - began
        rows = response.responses[0].partitions[0].acquired_records if response.responses else ()
        assert not epoch or rows, "each fetch acquires"
    return spent


def _begin_to_share(broker: _Broker) -> None:
    """The group exists, its share-partition is initialised, and the leader has loaded it."""
    reset = {"name": "share.auto.offset.reset", "configOperation": 0, "value": "earliest"}
    resource = {"resourceType": 32, "resourceName": "s", "configs": [reset]}
    broker.ask("IncrementalAlterConfigs", 1, {"resources": [resource], "validateOnly": False})
    joins = {"groupId": "s", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["t"]}
    broker.ask("ShareGroupHeartbeat", 1, joins)
    warm = {"partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}], "topicId": broker.topic_id}
    body = {
        "groupId": "s",
        "memberId": "warm",
        "shareSessionEpoch": 0,
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxRecords": 1,
        "batchSize": 1,
        "topics": [warm],
        "forgottenTopicsData": [],
    }
    broker.ask("ShareFetch", 2, body)


def implicit(rows: Any) -> list[dict[str, Any]]:
    """Everything is accepted, a row at a time."""
    return [
        {"firstOffset": row.first_offset, "lastOffset": row.last_offset, "acknowledgeTypes": [ACCEPT]} for row in rows
    ]


def explicit(rows: Any) -> list[dict[str, Any]]:
    """A type for each record; every tenth is released when it comes for the first time."""
    return [
        {
            "firstOffset": row.first_offset,
            "lastOffset": row.last_offset,
            "acknowledgeTypes": [
                RELEASE if row.delivery_count == 1 and not offset % RELEASED else ACCEPT
                for offset in range(row.first_offset, row.last_offset + 1)
            ],
        }
        for row in rows
    ]


def main() -> int:
    """Measure, print, and say whether implicit acknowledgement is within its bound."""
    rounds = [
        (
            consumer(_Broker(FETCHES)),
            sharing(_Broker(FETCHES + 1), implicit),
            sharing(_Broker(2 * FETCHES), explicit),
        )
        for _ in range(ROUNDS)
    ]
    table = Table(title=f"{RECORDS} records in {BATCHES} batches, CPU of the node")
    for column in ("", "µs", "of the consumer's"):
        table.add_column(column, justify="left" if not column else "right")
    for place, name in enumerate(("consumer: Fetch and OffsetCommit", "implicit: ShareFetch", "explicit: ShareFetch")):
        micros = statistics.median(each[place] for each in rounds) / FETCHES * 1e6
        ratio = statistics.median(each[place] / each[0] for each in rounds)
        table.add_row(name, f"{micros:,.0f}", f"{ratio:.2f}")
    console = printer()
    console.print(table)
    reached = statistics.median(each[1] / each[0] for each in rounds)
    console.print(f"implicit: {reached:.2f} of the consumer's CPU; the bound is {BOUND}")
    return int(reached > BOUND)
