"""A request costs no more than so much for each of its entries, and what it takes to look at the whole state once.

Requests of every API are random: lists of any length, whose names are drawn from a few that stand for much and from
some that stand for nothing. Time is counted in lines of Python and calls of C, which no load changes, from the request
to the bytes of its answer; memory in bytes at its peak. An answer that is larger than one may be is refused.

``make request-costs EXAMPLES=N`` has N requests of each version; without it there is one of two versions.
"""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress
from random import Random
from typing import Any, Final

import pytest
from pydantic import BaseModel

from rejoin.coordinator.core.groups import admin_requests
from rejoin.coordinator.service.refusals.error_codes import error_counter
from rejoin.coordinator.service.refusals.json_size import check_json_size
from rejoin.coordinator.service.refusals.refused_requests import refusals_of
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.registry import DELETE_TOPICS, DESCRIBE_GROUPS, OFFSET_FETCH, Api
from rejoin.protocol.types import WireType
from rejoin.protocol.wire.codec import Codec, codec_of
from rejoin.protocol.wire.errors import ResponseTooLarge
from tests.benchmarks.calls import steps_of
from tests.coordinator.core.costs.test_cost_of_requests import CASES, PARTITIONS, entries_of, large_state
from tests.coordinator.core.driver import TOPIC, topic
from tests.coordinator.core.partitions.real_topic import RealTopic

EXAMPLES: Final = int(os.environ.get("REJOIN_COST_EXAMPLES", "0"))

TOPICS: Final = tuple(f"{TOPIC}-{number}" for number in range(60))
GROUPS: Final = tuple(f"{TOPIC}-{number}" for number in range(12))
PENDING: Final = 150
"""Producers whose open transactions hold an offset of one group."""

STEPS_OF_STATE: Final = 60_000
"""What may be done once with everything that the node has."""
STEPS_OF_AN_ENTRY: Final = 120
MEMORY_OF_STATE: Final = 3_000_000
MEMORY_OF_AN_ENTRY: Final = 5_000
MOST_ENTRIES: Final = 300
_LENGTHS: Final = (0, 1, 1, 2, 3, MOST_ENTRIES)
_NUMBERS: Final = (0, 1, 2, PARTITIONS - 1, PARTITIONS, PARTITIONS + 10)
_MILLIS: Final = (0, 10_000)

_nodes: Final[dict[str, RealTopic]] = {}
"""A node of each kind that no request has changed so far."""


def full_node(kind: str) -> RealTopic:
    """A node with many topics and groups as well as one name that stands for much."""
    node = _nodes.pop(kind, None)
    if node is None:
        node = large_state(kind)
        node.ask(CreateTopicsRequest(topics=tuple(topic(name, 1) for name in TOPICS)), 7)
        # The first such request makes a topic, which is paid for once.
        key = SharePartitionKey(TOPIC, node.node._topics.id_of(TOPIC), 0).coordinator_key
        node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(key,)), 6)
        offsets = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="")
            for index in range(PARTITIONS)
        )
        of_topic = OffsetCommitRequestTopic(name=TOPIC, partitions=offsets)
        for group_id in GROUPS:
            node.ask(OffsetCommitRequest(group_id=group_id, member_id="", topics=(of_topic,)), 9)
        pending = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
        of_topic_0 = TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(pending,))
        for number in range(PENDING):
            commit = TxnOffsetCommitRequest(
                transactional_id=f"none-{number}",
                group_id=GROUPS[0],
                producer_id=1_000 + number,
                producer_epoch=0,
                topics=(of_topic_0,),
            )
            node.ask(commit, 2)
        offsets_of_group = node.node._groups.offsets(GROUPS[0])
        assert offsets_of_group is not None
        assert len(offsets_of_group.pending) == PENDING
    return node


def give_back(node: RealTopic, kind: str, before: tuple[int, ...]) -> None:
    """Keep a node for the next test, if nothing of it has changed."""
    if size_of(node) == before:
        _nodes[kind] = node


def size_of(node: RealTopic) -> tuple[int, ...]:
    groups = node.shard().groups
    members = groups[TOPIC].members if TOPIC in groups else ()  # type: ignore[attr-defined]
    offsets = [len(node.shard().offsets.partitions(group_id)) for group_id in groups]
    topics = node.node._topics.by_name
    partitions = sum(len(each.partitions) for each in topics.values())
    return len(groups), len(members), len(topics), partitions, *offsets, len(node.events)


def any_request(model: type[BaseModel], version: int, random: Random, topic_id: str, room: int = MOST_ENTRIES) -> Any:
    """A message of a version; ``room`` is how long its lists may be, which lists in long lists are not."""

    def value(spec: FieldSpec, room: int) -> Any:
        if spec.struct is not None:
            return any_request(spec.struct, version, random, topic_id, room)
        match spec.value_type:
            case WireType.STRING:
                return random.choice((TOPIC, TOPIC, random.choice(TOPICS), "", f"none-{random.randrange(100)}"))
            case WireType.UUID:
                return random.choice((topic_id, spec.default if isinstance(spec.default, str) else topic_id))
            case WireType.BYTES | WireType.RECORDS:
                return b""
            case WireType.BOOL:
                return random.random() < 0.5
            case WireType.FLOAT64:
                return 0.0
        if isinstance(spec.default, int) and not spec.is_array and random.random() < 0.5:
            return spec.default
        if spec.name.endswith("_ms"):
            return random.choice(_MILLIS)
        return random.choice(_NUMBERS[:3] if spec.value_type in (WireType.INT8, WireType.INT16) else _NUMBERS)

    def values(spec: FieldSpec) -> Any:
        if spec.nullable is not None and spec.nullable <= version and random.random() < 0.3:
            return None
        if not spec.is_array:
            return value(spec, room)
        length = min(room, random.choice(_LENGTHS))
        return tuple(value(spec, 3 if length > 3 else room) for _ in range(length))

    return model(**{spec.name: values(spec) for spec in fields_of(model) if spec.versions.carries(version)})


def answer_of(node: RealTopic, request: Request, codec: Codec) -> None:
    """Hand a request in, see what it wants done, and write the answer as both transports do."""
    node.requests += 1
    node.receive(node.requests, request, codec.version)
    response = node.replies.pop(node.requests, None)
    if response is None:
        return
    with suppress(ResponseTooLarge):
        codec.response_frame(1, response)
        check_json_size(response, codec.version)
        error_counter(type(response), codec.version, refusals_of(codec.api))(response, {})


def check_cost(node: RealTopic, request: Request, codec: Codec) -> None:
    entries = entries_of(request)
    tracemalloc.start()
    try:
        steps = steps_of(lambda: answer_of(node, request, codec))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert steps <= STEPS_OF_STATE + STEPS_OF_AN_ENTRY * entries, (codec.api.name, codec.version, entries)
    assert peak <= MEMORY_OF_STATE + MEMORY_OF_AN_ENTRY * entries, (codec.api.name, codec.version, entries)


def _codec(api: Api, version: int) -> Codec:
    """A codec whose functions are made, so that this does not count."""
    codec = codec_of(api.key, version)
    assert codec is not None
    assert callable(codec.write_response)
    assert callable(codec.write_response_parts)
    return codec


@pytest.mark.parametrize(("api", "kind"), CASES, ids=lambda each: getattr(each, "name", each))
def test_no_request_costs_more_than_its_entries_and_the_state(api: Api, kind: str) -> None:
    random = Random(f"{api.name} {kind}")
    node = full_node(kind)
    before, topic_id = size_of(node), node.node._topics.id_of(TOPIC)
    versions = range(api.min_version, api.max_version + 1) if EXAMPLES else {api.default_version, api.max_version}
    for version in versions:
        for _ in range(EXAMPLES or 1):
            check_cost(node, any_request(api.request, version, random, topic_id), _codec(api, version))
            if size_of(node) != before:
                node = full_node(kind)
                topic_id = node.node._topics.id_of(TOPIC)
    give_back(node, kind, before)


def test_an_api_that_multiplies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that computes a repeated name each time."""
    codec, node = _codec(DESCRIBE_GROUPS, 5), full_node("classic")
    request = DescribeGroupsRequest(groups=(TOPIC,) * MOST_ENTRIES, include_authorized_operations=False)
    check_cost(node, request, codec)
    monkeypatch.setattr(admin_requests, "computed_once", lambda keys, compute: tuple(map(compute, keys)))
    with pytest.raises(AssertionError, match="DescribeGroups"):
        check_cost(node, request, codec)


def test_the_offsets_of_deleted_topics_are_looked_for_once() -> None:
    request = DeleteTopicsRequest(topic_names=TOPICS, timeout_ms=1)
    check_cost(full_node("classic"), request, _codec(DELETE_TOPICS, 5))


def test_open_transactions_do_not_make_offsets_dearer() -> None:
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(1,) * MOST_ENTRIES),)
    group = OffsetFetchRequestGroup(group_id=GROUPS[0], topics=topics)
    check_cost(full_node("classic"), OffsetFetchRequest(groups=(group,), require_stable=True), _codec(OFFSET_FETCH, 8))
