"""Messages in Kafka's binary form: what reading and writing them costs, beside their JSON in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rich.table import Table

from benchmarks import printer
from rejoin.protocol.message import Struct
from rejoin.protocol.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse, FetchableTopicResponse, FetchResponse
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.registry import FETCH, HEARTBEAT, JOIN_GROUP, METADATA, PRODUCE, Api
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.wire.codec import Codec, codec_of, read_request_header

MEMBERS = 100
PARTITIONS = 100
SECONDS = 0.2
ROUNDS = 5

MEBIBYTE = 2**20


class Case(NamedTuple):
    """One thing to do in the binary form, and the same in JSON where that is what HTTP does."""

    name: str
    binary: Callable[[], object]
    json: Callable[[], object] | None = None


def codec(api: Api, version: int) -> Codec:
    found = codec_of(api.key, version)
    assert found is not None
    return found


def reading(name: str, api: Api, version: int, request: Struct) -> Case:
    ours = codec(api, version)
    data, text = ours.write_request(request), request.to_json(version)
    return Case(name, lambda: ours.read_request(data, 0), lambda: api.request.parse(text, version))


def writing(name: str, api: Api, version: int, response: Struct) -> Case:
    write = codec(api, version).write_response
    return Case(name, lambda: write(response), lambda: response.to_json(version))


def cases() -> Iterator[Case]:
    heartbeat = HeartbeatRequest(group_id="orders-app", generation_id=3, member_id="consumer-1-" + ZERO_UUID)
    yield reading("read a Heartbeat request", HEARTBEAT, 4, heartbeat)
    yield writing("write a Heartbeat response", HEARTBEAT, 4, HeartbeatResponse())
    yield Case("frame and header of a Heartbeat as well", served_heartbeat(heartbeat))
    yield reading("read a JoinGroup request", JOIN_GROUP, 9, join_group_request())
    members = tuple(
        JoinGroupResponseMember(member_id=f"consumer-{index}-{ZERO_UUID}", metadata=bytes(100))
        for index in range(MEMBERS)
    )
    joined = JoinGroupResponse(generation_id=1, protocol_name="range", leader="m", member_id="m", members=members)
    yield writing(f"write a JoinGroup response of {MEMBERS} members", JOIN_GROUP, 9, joined)
    yield writing(f"write a Metadata response of {PARTITIONS} partitions", METADATA, 12, metadata())
    yield from record_cases()


def served_heartbeat(request: HeartbeatRequest) -> Callable[[], object]:
    frame = codec(HEARTBEAT, 4).request_frame(7, "consumer-1", request)
    response = HeartbeatResponse()

    def serve() -> bytes:
        data = frame[4:]
        header = read_request_header(data)
        ours = codec_of(header.api_key, header.api_version)
        assert ours is not None
        ours.read_request(data, header.body_at)
        return ours.response_frame(header.correlation_id, response)

    return serve


def join_group_request() -> JoinGroupRequest:
    body: dict[str, Any] = {
        "group_id": "orders-app",
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": tuple({"name": name, "metadata": bytes(60)} for name in ("range", "cooperative-sticky")),
        "reason": "rejoining",
    }
    return JoinGroupRequest.model_validate(body)


def metadata() -> MetadataResponse:
    partitions = tuple(
        MetadataResponsePartition(partition_index=index, replica_nodes=(0, 1, 2), isr_nodes=(0, 1, 2))
        for index in range(PARTITIONS)
    )
    brokers = tuple(MetadataResponseBroker(node_id=index, host="localhost", port=9092) for index in range(3))
    topic = MetadataResponseTopic(name="orders", partitions=partitions)
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=0, topics=(topic,))


def record_cases() -> Iterator[Case]:
    batch = bytes(MEBIBYTE)
    partition = FetchablePartitionResponse(high_watermark=1, records=memoryview(batch))
    fetched = FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(partition,)),))
    fetch = codec(FETCH, 12)
    yield Case("write a Fetch response of 1 MiB as parts", lambda: fetch.response_parts(7, fetched))
    yield Case("a Fetch response of 1 MiB", lambda: fetch.response_frame(7, fetched))
    data = (TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=batch),)),)
    produce = codec(PRODUCE, 9)
    request = produce.write_request(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data))
    yield Case("read a Produce request of 1 MiB", lambda: produce.read_request(request, 0))
    yield Case("copy 1 MiB", lambda: bytearray(batch))


def microseconds(work: Callable[[], object]) -> float:
    """CPU time of one call, over many."""
    work()
    calls, began = 0, time.process_time()
    deadline = time.perf_counter() + SECONDS
    while not calls or time.perf_counter() < deadline:
        for _ in range(10):
            work()
        calls += 10
    return (time.process_time() - began) / calls * 1e6


def main() -> None:
    """Print a line for each case: the least CPU time of several rounds, and its share of what JSON takes."""
    found = list(cases())
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for case in found:
            for form, work in (("binary", case.binary), ("json", case.json)):
                if work is not None:
                    key = (case.name, form)
                    best[key] = min(best.get(key, float("inf")), microseconds(work))
    table = Table(title=f"Messages in Kafka's binary form and as JSON, µs of CPU, best of {ROUNDS}")
    table.add_column("", no_wrap=True)
    for column in ("binary", "JSON", "binary / JSON"):
        table.add_column(column, justify="right")
    for case in found:
        binary, json = best[case.name, "binary"], best.get((case.name, "json"))
        compared = ("", "") if json is None else (f"{json:.2f}", f"{binary / json:.2f}")
        table.add_row(case.name, f"{binary:.2f}", *compared)
    printer().print(table)


if __name__ == "__main__":
    main()
