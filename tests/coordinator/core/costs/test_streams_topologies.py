"""Topologies that no application has: refused with Kafka's codes, at a cost of their entries; other groups go on."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from rejoin.coordinator.control.streams_groups import StreamsGroupCondition
from rejoin.coordinator.core.groups.streams.topology import configuring
from rejoin.coordinator.core.groups.streams.topology.configuring import MOST_TASKS
from rejoin.coordinator.core.views import StreamsGroupView
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.limits import MAX_ENTRIES
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsStatus,
    StreamsTopology,
)
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.registry import STREAMS_GROUP_HEARTBEAT
from rejoin.protocol.streams.topology import (
    CopartitionGroup,
    StreamsKeyValue,
    StreamsTopicInfo,
    Subtopology,
    UserEndpoint,
)
from rejoin.protocol.wire.codec import codec_of, read_request_header
from tests.benchmarks.calls import steps_of
from tests.coordinator.core.costs.test_cost_of_requests import entries_of
from tests.coordinator.core.driver import topic
from tests.coordinator.core.groups.streams.test_internal_topics import StreamsNode
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, info, subtopology

INVALID: Final = ErrorCode.STREAMS_INVALID_TOPOLOGY
STEPS_OF_AN_ENTRY: Final = 400
MEMORY_OF_AN_ENTRY: Final = 6_000
SIZE: Final = 600


def sized(name: str, partitions: int) -> StreamsTopicInfo:
    return StreamsTopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=())


def places(*sources: int) -> CopartitionGroup:
    return CopartitionGroup(source_topics=sources, source_topic_regex=(), repartition_source_topics=())


def cycle(size: int) -> list[Subtopology]:
    return [
        subtopology(
            each, repartition_source_topics=(info(f"r{each}"),), repartition_sink_topics=(f"r{(each + 1) % size}",)
        )
        for each in range(size)
    ]


def many_tasks(of_each: int, count: int) -> list[Subtopology]:
    """Subtopologies whose repartition topics are to have so many partitions."""
    return [
        subtopology(each, source_topics=(LINES,), repartition_source_topics=(sized(f"r{each}", of_each),))
        for each in range(count)
    ]


REFUSED: Final[Mapping[str, tuple[ErrorCode, Callable[[int], list[Subtopology]]]]] = {
    "a cycle": (INVALID, cycle),
    "a repartition topic of two billion partitions": (INVALID, lambda _: many_tasks(2**31 - 1, 1)),
    "more tasks than a group may have": (INVALID, lambda size: many_tasks(MOST_TASKS // size + 1, size)),
    "topics without a name": (INVALID, lambda size: [subtopology(0, source_topics=("",) * size)]),
    "subtopologies without a source": (INVALID, lambda size: [subtopology(each) for each in range(size)]),
    "changelogs with partitions": (
        INVALID,
        lambda size: [subtopology(0, source_topics=(LINES,), state_changelog_topics=(sized("c", 1),) * size)],
    ),
    "Kafka's own topic": (INVALID, lambda _: [subtopology(0, source_topics=("__consumer_offsets",))]),
    "a regular expression that backtracks": (
        ErrorCode.INVALID_REQUEST,
        lambda size: [subtopology(0, source_topics=("a" * 200,), source_topic_regex=("(a+)+$",) * size)],
    ),
    "subtopologies of one id": (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        lambda size: [subtopology(0, source_topics=(LINES,))] * size,
    ),
    "co-partition groups of topics that are not there": (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        lambda size: [subtopology(0, source_topics=(LINES,), copartition_groups=(places(0, 1, 32_767),) * size)],
    ),
    "a setting given twice": (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        lambda size: [
            subtopology(
                0,
                source_topics=(LINES,),
                state_changelog_topics=(
                    StreamsTopicInfo(
                        name=COUNTS,
                        partitions=0,
                        replication_factor=0,
                        topic_configs=(StreamsKeyValue(key="k", value="v"),) * size,
                    ),
                ),
            )
        ],
    ),
}

ACCEPTED: Final[Mapping[str, Callable[[int], list[Subtopology]]]] = {
    "many subtopologies": lambda size: [subtopology(each, source_topics=(LINES,)) for each in range(size)],
    "one topic again and again": lambda size: [subtopology(0, source_topics=(LINES,) * size)],
    "large co-partition groups": lambda size: [
        subtopology(0, source_topics=(LINES,) * 20, copartition_groups=(places(*range(20)),) * (size // 20))
    ],
    "changelogs that cannot all be made": lambda size: [
        subtopology(
            0,
            repartition_source_topics=(sized("r", 20),),
            state_changelog_topics=tuple(info(f"c{each}") for each in range(size)),
        )
    ],
    "settings that no topic has": lambda size: [
        subtopology(
            0,
            source_topics=(LINES,),
            state_changelog_topics=(info("c", 0, **{f"k{each}": "v" for each in range(size)}),),
        )
    ],
}


def joining(subtopologies: list[Subtopology], group_id: str = "absurd") -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        member_epoch=0,
        endpoint_information_epoch=-1,
        rebalance_timeout_ms=60_000,
        topology=StreamsTopology(epoch=0, subtopologies=tuple(subtopologies)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        user_endpoint=UserEndpoint(host="localhost", port=1),
    )


def node_with_a_group() -> StreamsNode:
    """An application that runs beside."""
    node = StreamsNode()
    node.join(info(COUNTS))
    node.again()
    return node


def costs_of(node: StreamsNode, request: StreamsGroupHeartbeatRequest) -> Any:
    """The answer to a request that costs no more than its entries."""
    answers = []
    entries = entries_of(request) + 100
    tracemalloc.start()
    try:
        steps = steps_of(lambda: answers.append(node.ask(request, 1)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert steps <= STEPS_OF_AN_ENTRY * entries, (steps, entries)
    assert peak <= MEMORY_OF_AN_ENTRY * entries, (peak, entries)
    return answers[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_topics_can_make_run_is_refused_and_leaves_nothing(name: str) -> None:
    error, make = REFUSED[name]
    node = node_with_a_group()
    log, topics = list(node.log), dict(node.node._topics.by_name)
    assert costs_of(node, joining(make(SIZE))).error_code is error
    assert (node.log, node.node._topics.by_name, node.node.group_ids()) == (log, topics, ["app"])
    assert node.again().error_code is ErrorCode.NONE
    assert node.log == log, "the group beside it goes on as before"


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_large_topology_costs_its_entries_in_the_first_heartbeat_and_the_next(name: str) -> None:
    node = node_with_a_group()
    request = joining(ACCEPTED[name](SIZE))
    answer = costs_of(node, request)
    assert answer.error_code is ErrorCode.NONE
    assert all(each.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS for each in answer.status)
    assert all(len(each.status_detail) < 1_000 for each in answer.status)
    costs_of(node, request)
    assert node.again().active_tasks is None, "the group beside it goes on as before"


def test_a_topic_that_grows_beyond_the_bound_of_tasks_ends_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    node = StreamsNode()
    node.join(info(COUNTS))
    epoch = node.again().member_epoch
    monkeypatch.setattr(configuring, "MOST_TASKS", 5)
    (group,) = node.shard().groups.values()
    group.memory.configured = None  # type: ignore[attr-defined]
    assert node.heartbeat(epoch).error_code is INVALID
    monkeypatch.setattr(configuring, "MOST_TASKS", 6)
    assert node.heartbeat(epoch).error_code is ErrorCode.NONE, "six tasks are as many as there may be"


def test_a_topic_named_again_and_again_is_behind_an_endpoint_once() -> None:
    node = node_with_a_group()
    answer = node.ask(joining([subtopology(0, source_topics=(LINES,) * SIZE)]), 1)
    (behind,) = answer.partitions_by_user_endpoint
    assert [(each.topic, each.partitions) for each in behind.active_partitions] == [(LINES, (0, 1, 2))]


def test_a_new_topic_costs_the_same_beside_an_application_of_many_topics() -> None:
    def cost(size: int) -> int:
        node = StreamsNode()
        node.ask(joining([subtopology(0, source_topics=tuple(f"t{each}" for each in range(size)))]), 1)
        return steps_of(lambda: node.ask(CreateTopicsRequest(topics=(topic("other", 1),)), 7))

    assert cost(5_000) < cost(5) + 500


def test_a_summary_costs_the_members_and_not_the_tasks() -> None:
    node = StreamsNode()
    node.ask(CreateTopicsRequest(topics=(topic("large", 3_000),)), 7)
    node.ask(joining([subtopology(0, source_topics=("large",))]), 1)
    view, summary = node.node.describe_group("absurd"), node.node.summarize_group("absurd")
    assert isinstance(view, StreamsGroupView)
    assert isinstance(summary, StreamsGroupView)
    left_out = {"tasks", "subtopologies", "internal_topics", "subscribed_topics"}
    assert view.model_dump(exclude=left_out) == summary.model_dump(exclude=left_out)
    assert (len(view.tasks), summary.tasks) == (3_000, [])
    condition = StreamsGroupCondition(group="absurd", tasks=3_000)
    assert condition.is_met_by(view)
    assert condition.is_met_by(summary)
    assert steps_of(lambda: node.node.summarize_group("absurd")) < 1_000


def test_a_request_of_a_hundred_thousand_subtopologies_is_not_read() -> None:
    codec = codec_of(STREAMS_GROUP_HEARTBEAT.key, 1)
    assert codec is not None
    few, many = (
        codec.request_frame(1, "", joining([subtopology(0, source_topics=(LINES,))] * count))[4:]
        for count in (MAX_ENTRIES // 3, 100_000)
    )
    assert codec.read_request(few, read_request_header(few).body_at)
    with pytest.raises(ValueError, match="entries"):
        codec.read_request(many, read_request_header(many).body_at)
