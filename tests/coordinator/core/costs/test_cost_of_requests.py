"""The cost of a request of any API grows with the bytes that were sent, however often these name the same large thing.

The node knows one name, that of a topic with many producers, of a group with large members and many offsets, and
of a transactional id. Every list of every request repeats the name. Cost is counted in calls of functions, which no
machine's load changes.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import BaseModel

from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsTopology,
)
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.registry import BY_KEY, Api
from rejoin.protocol.types import ZERO_UUID, WireType
from tests.benchmarks.calls import calls_of
from tests.coordinator.core.driver import TOPIC, join
from tests.coordinator.core.groups.streams.word_count import subtopology
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

MEMBERS, PARTITIONS, PRODUCERS = 15, 60, 100

FEW, MANY = 2, 30
"""How often each list repeats its entry; a list within a list has the square of that."""
CALLS_OF_AN_ENTRY: Final = 150
"""What an entry may cost: the dearest takes about a hundred calls."""
CALLS_OF_A_REQUEST: Final = 2_000

CASES: Final = [
    (api, kind)
    for api in BY_KEY.values()
    for kind in ("classic", "consumer", "streams")
    if kind == "classic" or api.module.startswith(".streams" if kind == "streams" else (".groups", ".offsets"))
]


def large_state(kind: str) -> RealTopic:
    """A node where one name stands for much."""
    node = RealTopic(transaction_state_log_num_partitions=1, group_consumer_assignment_interval_ms=0)
    grown = CreatePartitionsTopic(name=TOPIC, count=PARTITIONS, assignments=None)
    node.ask(CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False), 3)
    for number in range(PRODUCERS):
        node.produce(batch("a", producer_id=number, producer_epoch=0, base_sequence=0))
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="m" * 500)
        for index in range(PARTITIONS)
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    node.send(OffsetCommitRequest(group_id=TOPIC, member_id="", topics=(topic,)), 9)
    if kind == "classic":
        for _ in range(MEMBERS):
            node.send(join(3, group_id=TOPIC, session_timeout_ms=60_000), 3)
    elif kind == "streams":
        for number in range(MEMBERS):
            assert node.ask(_thread(f"m{number}"), 1).error_code == 0
    else:
        for number in range(MEMBERS):
            topics = tuple(f"{TOPIC}-{number}-{each}" for each in range(40))
            joining: Any = {"member_epoch": 0, "rebalance_timeout_ms": 60_000, "subscribed_topic_names": topics}
            request = ConsumerGroupHeartbeatRequest(
                group_id=TOPIC, member_id=f"m{number}", topic_partitions=(), **joining
            )
            assert node.ask(request, 1).error_code == 0
    node.elapse(10_000)
    node.send(InitProducerIdRequest(transactional_id=TOPIC, transaction_timeout_ms=60_000), 4)
    return node


def _thread(member_id: str) -> StreamsGroupHeartbeatRequest:
    """A thread of an application with many subtopologies, each with a task for each partition of the topic."""
    return StreamsGroupHeartbeatRequest(
        group_id=TOPIC,
        member_id=member_id,
        member_epoch=0,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=StreamsTopology(
            epoch=0, subtopologies=tuple(subtopology(each, source_topics=(TOPIC,)) for each in range(MEMBERS))
        ),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id=member_id,
    )


def repeating(model: type[BaseModel], version: int, times: int, topic_id: str) -> Any:
    """A message that says the one name wherever it says one, and each entry of each list so often."""

    def value(spec: FieldSpec) -> Any:
        if spec.struct is not None:
            return repeating(spec.struct, version, times, topic_id)
        match spec.value_type:
            case WireType.STRING:
                return TOPIC
            case WireType.UUID:
                return topic_id
            case WireType.BYTES | WireType.RECORDS:
                return b""
            case WireType.BOOL:
                return True
            case WireType.FLOAT64:
                return 0.0
        return spec.default if isinstance(spec.default, int) and not spec.is_array else 0

    given = {
        spec.name: (value(spec),) * times if spec.is_array else value(spec)
        for spec in fields_of(model)
        if spec.versions.carries(version)
    }
    # A topic is named by its name or by its id, not by both.
    if {"topic_id", "name"} <= given.keys() and model.__name__ != "MetadataRequestTopic":
        given["topic_id"] = ZERO_UUID
    return model(**given)


def entries_of(message: BaseModel) -> int:
    """How many entries all lists of a message have."""
    found = 0
    for value in vars(message).values():
        values = value if isinstance(value, tuple) else (value,)
        found += len(value) if isinstance(value, tuple) else 0
        found += sum(entries_of(each) for each in values if isinstance(each, BaseModel))
    return found


def cost(kind: str, api: Api, version: int, times: int) -> tuple[int, int]:
    """The calls of one request, and the entries of all its lists."""
    node = large_state(kind)
    request = repeating(api.request, version, times, node.node._topics.id_of(TOPIC))
    calls = calls_of(lambda: node.effects_of(Received("token", request, Context(version))))
    return calls, entries_of(request)


@pytest.mark.parametrize(("api", "kind"), CASES, ids=lambda each: getattr(each, "name", each))
def test_each_entry_costs_the_same_however_often_a_request_repeats_it(api: Api, kind: str) -> None:
    few, fewer = cost(kind, api, api.default_version, FEW)
    many, more = cost(kind, api, api.default_version, MANY)
    assert many - few <= CALLS_OF_AN_ENTRY * (more - fewer) + CALLS_OF_A_REQUEST, (few, fewer, many, more)


@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
def test_the_state_is_large_enough_to_show_in_a_description(kind: str) -> None:
    node = large_state(kind)
    (group,) = node.shard().groups.values()
    offsets = node.node._groups.offsets(TOPIC)
    assert offsets is not None
    assert len(group.members) == MEMBERS  # type: ignore[attr-defined]
    assert (len(offsets.stored), len(node.partition().producers.entries)) == (PARTITIONS, PRODUCERS)
