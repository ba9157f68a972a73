"""Internal topics of a streams group are made by heartbeats, in the name of the member, with the settings it gives."""

from __future__ import annotations

from typing import Any

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsStatus
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.streams.topology import StreamsTopicInfo
from tests.coordinator.core.driver import DrivenNode, topic
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, WORDS, info, word_count

MISSING = StreamsStatus.MISSING_INTERNAL_TOPICS


class StreamsNode(DrivenNode):
    """A node with a source topic of three partitions. Targets are computed at once."""

    def __init__(self, **settings: Any) -> None:
        at_once = {"group_streams_assignment_interval_ms": 0, "group_streams_initial_rebalance_delay_ms": 0}
        super().__init__(**at_once | settings)
        self.ask(CreateTopicsRequest(topics=(topic(LINES, 3),)), 7, principal="User:setup")
        self.epoch = 0

    def join(self, changelog: StreamsTopicInfo, member_id: str = "m") -> Any:
        return self.heartbeat(
            0,
            member_id,
            rebalance_timeout_ms=60_000,
            topology=word_count(changelog),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=f"process of {member_id}",
        )

    def heartbeat(self, epoch: int, member_id: str = "m", **given: Any) -> Any:
        request = StreamsGroupHeartbeatRequest(
            group_id="app", member_id=member_id, member_epoch=epoch, endpoint_information_epoch=0, **given
        )
        response = self.ask(request, 1)
        self.epoch = response.member_epoch
        return response

    def again(self) -> Any:
        """The member's next heartbeat."""
        return self.heartbeat(self.epoch)

    def partitions(self, name: str) -> int:
        return self.node._topics.partition_count(name)


def detail(response: Any) -> str:
    assert response.error_code is ErrorCode.NONE
    return next((each.status_detail for each in response.status if each.status_code == MISSING), "")


def test_the_first_heartbeat_makes_the_topics_and_the_second_gets_tasks() -> None:
    node = StreamsNode()
    first = node.join(info(COUNTS, cleanup_policy="compact"))
    assert [each.status_code for each in first.status] == [MISSING]
    assert detail(first) == f"Internal topics are missing: {COUNTS}, {WORDS}."
    assert (node.partitions(COUNTS), node.partitions(WORDS)) == (3, 3)
    assert node.node._topics.by_name[COUNTS].configs == {"cleanup.policy": "compact"}
    second = node.again()
    assert (second.status, [each.partitions for each in second.active_tasks]) == ((), [(0, 1, 2), (0, 1, 2)])


def test_what_cannot_be_made_is_named_and_not_tried_again_for_two_heartbeat_intervals() -> None:
    node = StreamsNode()
    node.join(info(COUNTS, replicas=7))
    assert (node.partitions(COUNTS), node.partitions(WORDS)) == (0, 3)
    assert f"Not created: {COUNTS} (" in detail(node.again())
    node.elapse(10_000)
    assert detail(node.again()) == f"Internal topics are missing: {COUNTS}.", (
        "forgotten, and so the topic is tried again"
    )
    assert f"Not created: {COUNTS} (" in detail(node.again())


def test_a_member_that_may_not_create_topics_is_a_member_all_the_same() -> None:
    node = StreamsNode(emulator_deny=("User:ANONYMOUS:CREATE:topic=app-*",))
    response = node.join(info(COUNTS))
    assert f"The principal may not create {COUNTS}, {WORDS}." in detail(response)
    assert (node.partitions(COUNTS), node.partitions(WORDS)) == (0, 0)
