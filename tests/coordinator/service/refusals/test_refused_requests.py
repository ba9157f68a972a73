"""A request that is refused is counted, and logged once in a line that says who sent what, and what was wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final

import pytest

from rejoin.coordinator.service.options import InitialTopic
from rejoin.coordinator.service.refusals.refused_requests import REFUSALS, refusals_of
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.registry import APIS, BY_NAME
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.record_batch import BatchHeader, parse_header, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import START, Harness, create_topics
from tests.coordinator.service.kafka.frames import Peer, api_versions, heartbeat, request
from tests.coordinator.service.kafka.test_connection import logged, metrics

IN_ORDINARY_LIFE: Final = {
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # the core failed, which has a line of its own
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,  # the subscriptions have changed
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.REBOOTSTRAP_REQUIRED,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.GROUP_DELETION_FAILED,
}


def test_each_error_is_a_refusal_or_retriable_or_belongs_to_ordinary_life() -> None:
    assert {error for error in ErrorCode if not error.retriable} == REFUSALS - _RETRIABLE | IN_ORDINARY_LIFE
    assert not REFUSALS & IN_ORDINARY_LIFE


_RETRIABLE: Final = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
"""Refusals that Kafka's clients try again."""


def test_some_apis_have_refusals_of_their_own() -> None:
    assert _RETRIABLE <= REFUSALS
    of = {api.name: refusals_of(api) for api in APIS}
    unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
    assert unknown <= of["Produce"] & of["Fetch"] & of["OffsetCommit"] & of["CreatePartitions"]
    assert not unknown & (of["Metadata"] | of["DescribeTopicPartitions"] | of["DeleteTopics"])
    assert [name for name, errors in of.items() if ErrorCode.OFFSET_OUT_OF_RANGE in errors] == ["DeleteRecords"]


HEADER: Final = BatchHeader(0, 0, -1, 2, 0, 0, 0, START, START, -1, -1, -1, 1)


def batch(value: bytes = b"a", **header: int) -> bytes:
    return sealed(HEADER._replace(**header), write_records([DefaultRecord(0, 0, None, value)]))


def damaged(**header: int) -> bytes:
    """A batch whose checksum does not say what is in it."""
    whole = batch()
    return parse_header(whole)._replace(**header).pack() + whole[len(HEADER.pack()) :]


def read(api: str, body: dict[str, Any]) -> Request:
    return BY_NAME[api].request.from_json(json.dumps(body))


def produce(records: bytes | None, topic: str = "orders", acks: int = -1) -> Request:
    empty = read(
        "Produce",
        {
            "acks": acks,
            "timeoutMs": 1_000,
            "topicData": [{"name": topic, "partitionData": [{"index": 0, "records": None}]}],
        },
    )
    topics: Any = empty.topic_data  # type: ignore[attr-defined]
    (data,) = topics[0].partition_data
    data = data.model_copy(update={"records": records})
    return empty.model_copy(update={"topic_data": (topics[0].model_copy(update={"partition_data": (data,)}),)})


def create(name: str, **fields: Any) -> Request:
    return read("CreateTopics", create_topics(name, 1, **fields))


def alter(value: str) -> Request:
    configs = [{"name": "retention.ms", "configOperation": 0, "value": value}]
    resource = {"resourceType": 2, "resourceName": "orders", "configs": configs}
    return read("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})


def fetch(topic: str, offset: int) -> Request:
    partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 100}
    topics = [{"topic": topic, "partitions": [partition]}]
    return read("Fetch", {"maxWaitMs": 0, "minBytes": 0, "topics": topics, "forgottenTopicsData": []})


def commit(topic: str) -> Request:
    partition = {"partitionIndex": 3, "committedOffset": 1, "committedMetadata": ""}
    return read("OffsetCommit", {"groupId": "g", "topics": [{"name": topic, "partitions": [partition]}]})


def named_software(name: str) -> Request:
    return read("ApiVersions", {"clientSoftwareName": name, "clientSoftwareVersion": "1"})


def sequence(number: int) -> Request:
    return produce(batch(producer_id=9, producer_epoch=0, base_sequence=number))


ORDERS: Final = {"topic": "orders", "partition": 0}
REFUSED: Final[dict[str, tuple[int, list[Request], ErrorCode, dict[str, Any]]]] = {
    "a record that is too large": (9, [produce(batch(bytes(1_100_000)))], ErrorCode.MESSAGE_TOO_LARGE, ORDERS),
    "a wrong checksum": (9, [produce(damaged(crc=1))], ErrorCode.CORRUPT_MESSAGE, ORDERS),
    "no records": (9, [produce(b"")], ErrorCode.INVALID_RECORD, ORDERS),
    "acks of 2": (9, [produce(batch(), acks=2)], ErrorCode.INVALID_REQUIRED_ACKS, ORDERS),
    "a control batch": (9, [produce(batch(attributes=0x20))], ErrorCode.INVALID_RECORD, ORDERS),
    "a gap": (9, [sequence(0), sequence(7)], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ORDERS),
    "zstd too early": (6, [produce(batch(attributes=4))], ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ORDERS),
    "a topic that does not exist": (
        9,
        [produce(batch(), "nowhere")],
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        {"topic": "nowhere", "partition": 0},
    ),
    "an illegal name": (7, [create("a b")], ErrorCode.INVALID_TOPIC_EXCEPTION, {"topic": "a b"}),
    "an illegal setting": (1, [alter("q")], ErrorCode.INVALID_CONFIG, {"resource": "orders"}),
    "too few partitions": (
        3,
        [
            read(
                "CreatePartitions",
                {
                    "topics": [{"name": "orders", "count": 0, "assignments": None}],
                    "timeoutMs": 1,
                    "validateOnly": False,
                },
            )
        ],
        ErrorCode.INVALID_PARTITIONS,
        {"topic": "orders"},
    ),
    "Fetch of a topic that does not exist": (
        12,
        [fetch("nowhere", 0)],
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        {"topic": "nowhere", "partition": 0},
    ),
    "OffsetCommit of a topic that does not exist": (
        8,
        [commit("nowhere")],
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        {"group_id": "g", "topic": "nowhere", "partition": 3},
    ),
    "a bad name of the software": (3, [named_software("a b")], ErrorCode.INVALID_REQUEST, {}),
    "an empty transactional id": (
        4,
        [read("InitProducerId", {"transactionalId": "", "transactionTimeoutMs": 1})],
        ErrorCode.INVALID_REQUEST,
        {},
    ),
}


def frame(message: Request, version: int, client_id: str = "bad-app") -> bytes:
    codec = codec_of(BY_NAME[type(message).__name__.removesuffix("Request")].key, version)
    assert codec is not None
    return codec.request_frame(1, client_id, message)[4:]


def orders() -> dict[str, Any]:
    return {"kafka_port": 0, "topics": (InitialTopic("orders", 1),)}


def connect(node: Harness) -> Peer:
    return Peer(node.app.endpoints[0].port)


@pytest.mark.parametrize("case", REFUSED)
async def test_it_is_counted_and_logged_once_for_each_client(serve: Serve, case: str) -> None:
    version, messages, error, subject = REFUSED[case]
    async with logged() as lines:
        node = await serve(orders())
        before = await node.get("/groups")
        for client_id in ("bad-app", "bad-app", "another"):
            async with connect(node) as peer:
                for message in messages:
                    await peer.ask(frame(message, version, client_id))
        assert await node.get("/groups") == before
        shown = await metrics(node)
    api = type(messages[0]).__name__.removesuffix("Request")
    assert [(line.pop("client_id"), line["event"]) for line in lines()] == [
        ("bad-app", "request_refused"),
        ("another", "request_refused"),
    ]
    line = lines()[0]
    client = "a b 1" if api == "ApiVersions" else "127.0.0.1"
    expected = {"level": "warning", "client": client, "client_id": "bad-app", "api": api, "error": error.name}
    assert {name: line.get(name) for name in expected} == expected
    labels = ("topic", "partition", "group_id", "transactional_id", "resource", "topic_id")
    assert {name: line[name] for name in labels if name in line} == subject
    assert f'kafka_network_request_metrics_errors_total{{error="{error.name}",request="{api}"}} 3' in shown


async def test_the_reason_is_that_of_the_response(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve(orders())
        async with connect(node) as peer:
            await peer.ask(api_versions(3, name="my-lib", software="1"))
            await peer.ask(frame(create("a b"), 7))
            await peer.ask(frame(produce(batch(), acks=2), 9))
    named, bare = lines()
    assert named["client"] == bare["client"] == "my-lib 1"
    assert not bare["reason"], "it has none"
    assert "a b" in named["reason"]


ORDINARY: Final[dict[str, Callable[[], bytes]]] = {
    "Heartbeat UNKNOWN_MEMBER_ID": lambda: heartbeat("g", "m"),
    "Fetch OFFSET_OUT_OF_RANGE": lambda: frame(fetch("orders", 99), 12),
    "Metadata UNKNOWN_TOPIC_OR_PARTITION": lambda: frame(
        read("Metadata", {"topics": [{"name": "nowhere"}], "allowAutoTopicCreation": False}), 4
    ),
    "CreateTopics TOPIC_ALREADY_EXISTS": lambda: frame(create("orders"), 7),
    "ApiVersions UNSUPPORTED_VERSION": lambda: request(18, 99, 1, b"\0"),
}


@pytest.mark.parametrize("case", ORDINARY)
async def test_what_belongs_to_ordinary_life_is_only_counted(serve: Serve, case: str) -> None:
    api, error = case.split()
    async with logged() as lines:
        node = await serve(orders())
        async with connect(node) as peer:
            for _ in range(2):
                await peer.ask(ORDINARY[case]())
        shown = await metrics(node)
    assert lines() == []
    assert f'kafka_network_request_metrics_errors_total{{error="{error}",request="{api}"}} 2' in shown


async def test_success_is_no_error(serve: Serve) -> None:
    node = await serve(orders())
    async with connect(node) as peer:
        await peer.ask(frame(produce(batch()), 9))
        await peer.ask(frame(fetch("orders", 0), 12))
    shown = await metrics(node)
    assert "kafka_network_request_metrics_errors_total{" not in shown
    assert 'kafka_network_request_metrics_requests_total{error="",request="Produce"} 1' in shown


async def test_it_is_logged_over_http_too(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve(orders())
        for _ in range(2):
            body = json.loads(create("a b").to_json(7))
            await node.call("CreateTopics", body, 7, Kafka_Client_Id="over-http")
        shown = await metrics(node)
    (line,) = lines()
    assert (line["event"], line["client"], line["client_id"]) == ("request_refused", "127.0.0.1", "over-http")
    assert (line["api"], line["error"]) == ("CreateTopics", "INVALID_TOPIC_EXCEPTION")
    assert 'errors_total{error="INVALID_TOPIC_EXCEPTION",request="CreateTopics"} 2' in shown


async def test_clients_that_name_themselves_anew_each_time_do_not_fill_the_log(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve(orders())
        async with connect(node) as peer:
            for number in range(300):
                await peer.ask(frame(produce(batch(), "nowhere\x1b[31m" * 100), 9, f"{number}\n{'x' * 1_000}"))
            await peer.ask(frame(produce(batch(), acks=2), 9, "one more"))
    assert len(lines()) == 102, "a hundred names, and a line for each error of all others"
    assert lines()[-1]["client_id"] == "one more"
    assert max(len(json.dumps(line)) for line in lines()) < 2_500
    assert "\x1b" not in lines()[0]["topic"]
    assert "\n" not in lines()[0]["client_id"]


async def test_a_produce_with_acks_of_0_has_the_line_of_its_connection(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve(orders())
        for _ in range(2):
            async with connect(node) as peer:
                too_new = batch(base_timestamp=START + 10**8, max_timestamp=START + 10**8)
                peer.send(frame(produce(too_new, acks=0), 9))
                assert await peer.rest() == b""
                node.clock.advance(1_000)
        shown = await metrics(node)
    (line,) = lines()
    assert (line["event"], line["client_id"], line["api"]) == ("kafka_request_refused", "bad-app", "Produce")
    assert line["reason"].startswith("acks of 0, and orders-0 refused it: INVALID_TIMESTAMP: ")
    assert "message.timestamp.after.max.ms" in line["reason"]
    assert 'errors_total{error="INVALID_TIMESTAMP",request="Produce"} 2' in shown
    assert 'rejoin_refused_requests_total{api="Produce"} 2' in shown


CLOSING: Final = {
    "an old version": ("", 0, 2, "Produce", "version 2; expected 3 to 13, though ApiVersions says 0 to 13"),
    "another old version": ("", 1, 3, "Fetch", "version 3; expected 4 to 18, as ApiVersions says"),
    "an API of a later release": ("2.8", 68, 0, "ConsumerGroupHeartbeat", "a request with API key 68, which is not"),
    "an API that is not defined": ("", 999, 0, None, "a request with API key 999, which is not offered"),
}


@pytest.mark.parametrize("case", CLOSING)
async def test_what_ends_its_connection_says_who_sent_what(serve: Serve, case: str) -> None:
    release, key, version, api, reason = CLOSING[case]
    async with logged() as lines:
        node = await serve({"kafka_port": 0}, emulator_as_kafka=release)
        for client_id in ("one", "one", "two"):
            async with connect(node) as peer:
                await peer.ask(api_versions(3, name="my-lib", software="1"))
                flexible = b"\0" if key == 68 else b""
                peer.send(request(key, version, 1, flexible + struct.pack(">h", 0), client_id))
                assert await peer.rest() == b""
        shown = await metrics(node)
    assert [line["client_id"] for line in lines()] == ["one", "two"], "each client has its own line"
    for line in lines():
        assert (line["event"], line["client"], line["api"]) == ("kafka_request_refused", "my-lib 1", api)
        assert line["reason"].startswith(reason)
    assert f'rejoin_refused_requests_total{{api="{api or "none"}"}} 3' in shown


NOT_OFFERED: Final = {
    "an API of Kafka's that is not there": (67, 0, "AllocateProducerIds", "no version"),
    "a version that is not there": (78, 9, "ShareFetch", "1 to 2"),
    "an API that Kafka has not": (999, 0, None, "no version"),
}


@pytest.mark.parametrize("case", NOT_OFFERED)
async def test_what_is_not_offered_is_one_line_with_all_that_was_asked(serve: Serve, case: str) -> None:
    key, version, api, offered = NOT_OFFERED[case]
    async with logged() as lines:
        node = await serve({"kafka_port": 0})
        for _ in range(30):
            async with connect(node) as peer:
                peer.send(request(key, version, 1, b"\0" + struct.pack(">h", 0), "streams-app"))
                assert await peer.rest() == b""
    (line,) = lines()
    assert (line["event"], line["client_id"], line["address"]) == ("kafka_request_refused", "streams-app", "127.0.0.1")
    asked: dict[str, Any] = dict(line)
    assert (asked["api"], asked["version"], asked["offered"]) == (api, version, offered)


async def test_a_body_that_cannot_be_read_is_of_the_client_that_sent_it(serve: Serve) -> None:
    async with logged() as lines:
        node = await serve({"kafka_port": 0})
        async with connect(node) as peer:
            await peer.ask(request(12, 0, 1, heartbeat("g", "m")[14:], "one"))
            await peer.ask(request(18, 0, 1, b"", "two"))
            peer.send(request(12, 0, 1, b"\x7f\xff", "one"))
            assert await peer.rest() == b""
    (line,) = lines()
    assert (line["client_id"], line["api"]) == ("one", "Heartbeat")
