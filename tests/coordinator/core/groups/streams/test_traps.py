"""Behaviour of Kafka 4.4 that surprises applications, and that is kept here."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus, StreamsTopology
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.streams.tasks import TaskIds
from rejoin.protocol.streams.topology import StreamsKeyValue, UserEndpoint
from tests.coordinator.core.groups.streams.test_internal_topics import StreamsNode
from tests.coordinator.core.groups.streams.word_count import LINES, subtopology

ONE_PART: Final = StreamsTopology(epoch=0, subtopologies=(subtopology(0, source_topics=(LINES,)),))
NONE: Final[dict[str, Any]] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
ENDPOINT: Final = UserEndpoint(host="localhost", port=8080)


class Application(StreamsNode):
    """An application with one task for each of three partitions."""

    def starts(self, member_id: str, topology: StreamsTopology = ONE_PART, **given: Any) -> Any:
        return self.heartbeat(
            0,
            member_id,
            rebalance_timeout_ms=60_000,
            topology=topology,
            process_id=f"process of {member_id}",
            **NONE | given,
        )

    def shares(self, instance: str | None = None) -> Any:
        """Two members share the tasks: ``a``, with its instance id, and ``b``. Returns the last reply to ``a``."""
        first = self.starts("a", instance_id=instance)
        self.elapse(20_000)
        joined = self.starts("b")
        second = self.heartbeat(first.member_epoch, "a", instance_id=instance)
        done = self.heartbeat(
            second.member_epoch, "a", instance_id=instance, **NONE | {"active_tasks": second.active_tasks}
        )
        taken = self.heartbeat(joined.member_epoch, "b", **NONE)
        assert (partitions(second), partitions(taken)) == ((0, 1), (2,))
        return done


def partitions(answer: Any) -> tuple[int, ...] | None:
    """The active tasks of a reply; none where it names no tasks."""
    assert answer.error_code is ErrorCode.NONE
    if answer.active_tasks is None:
        return None
    return tuple(each for tasks in answer.active_tasks for each in tasks.partitions)


def statuses(answer: Any) -> list[int]:
    return [each.status_code for each in answer.status]


# --- a reply that is lost


@pytest.mark.parametrize("by", ["rejoining", "a target that moves"])
def test_tasks_of_a_lost_reply_are_named_again_only_by(by: str) -> None:
    node = Application()
    lost = node.starts("a")
    assert partitions(lost) == (0, 1, 2)
    # The member has seen nothing of it, and goes on with what it has.
    for _ in range(3):
        again = node.heartbeat(lost.member_epoch, "a", **NONE)
        assert (again.member_epoch, partitions(again)) == (lost.member_epoch, None)
    if by == "rejoining":
        assert partitions(node.starts("a")) == (0, 1, 2)
    else:
        node.starts("b")
        assert partitions(node.heartbeat(lost.member_epoch, "a", **NONE)) == (0, 1)


def test_a_member_with_its_previous_epoch_gets_the_new_one_without_tasks() -> None:
    node = Application()
    before = node.shares()
    has = NONE | {"active_tasks": (TaskIds(subtopology_id="0", partitions=(0, 1)),)}
    node.heartbeat(-1, "b")
    lost = node.heartbeat(before.member_epoch, "a", **has)
    assert partitions(lost) == (0, 1, 2)
    again = node.heartbeat(before.member_epoch, "a", **has)
    assert (again.member_epoch, partitions(again)) == (lost.member_epoch, None)
    assert lost.member_epoch > before.member_epoch


# --- the cache of targets


def test_a_member_that_comes_back_before_the_next_target_gets_its_old_tasks() -> None:
    node = Application(group_streams_assignment_interval_ms=15_000)
    epoch = node.shares().member_epoch
    node.heartbeat(-1, "a")
    back = node.starts("a")
    assert (back.member_epoch, partitions(back)) == (epoch, (0, 1))
    assert statuses(back) == [StreamsStatus.ASSIGNMENT_DELAYED]


def test_it_gets_none_where_no_warm_up_tasks_are_wanted() -> None:
    node = Application(group_streams_assignment_interval_ms=15_000, group_streams_num_warmup_replicas=0)
    node.shares()
    node.heartbeat(-1, "a")
    assert partitions(node.starts("a")) == ()


def test_an_intruder_that_is_refused_takes_the_target_of_a_static_member() -> None:
    node = Application()
    first = node.starts("a", instance_id="i")
    node.starts("b")
    assert node.starts("intruder", instance_id="i").error_code is ErrorCode.UNRELEASED_INSTANCE_ID
    robbed = node.heartbeat(first.member_epoch, "a", instance_id="i")
    assert partitions(robbed) == (), "it is to give up all its tasks, also those that are its own"
    node.heartbeat(robbed.member_epoch, "a", instance_id="i", **NONE)
    node.heartbeat(3, "b", **NONE)
    healed = node.heartbeat(3, "a", instance_id="i", **NONE)
    assert (healed.member_epoch, partitions(healed)) == (4, (0, 1))


# --- endpoints


def test_an_endpoint_and_a_missing_source_topic_end_in_an_unknown_error() -> None:
    node = Application()
    missing = StreamsTopology(epoch=0, subtopologies=(subtopology(0, source_topics=("nowhere",)),))
    assert node.starts("a", missing, user_endpoint=ENDPOINT).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    waiting = node.starts("a", missing)
    assert statuses(waiting) == [StreamsStatus.MISSING_SOURCE_TOPICS], "without an endpoint it is asked to wait"


def test_so_does_a_source_topic_that_goes_away() -> None:
    node = Application()
    answer = node.starts("a", user_endpoint=ENDPOINT)
    assert partitions(answer) == (0, 1, 2)
    node.ask(DeleteTopicsRequest(topic_names=(LINES,), timeout_ms=1), 5)
    assert node.heartbeat(answer.member_epoch, "a").error_code is ErrorCode.UNKNOWN_SERVER_ERROR


# --- present without effect


def test_warm_ups_offloading_and_tags_change_no_assignment() -> None:
    node = Application(
        group_streams_num_warmup_replicas=20,
        group_streams_acceptable_recovery_lag=0,
        group_streams_assignor_offload_enable=True,
        group_streams_rack_aware_assignment_tags="zone",
    )
    tags = (StreamsKeyValue(key="zone", value="north"),)
    first = node.starts("a", client_tags=tags, rack_id="r")
    second = node.starts("b")
    assert (partitions(first), first.warmup_tasks) == ((0, 1, 2), ())
    assert statuses(second) == [StreamsStatus.MISSING_CLIENT_TAGS]
    assert partitions(node.heartbeat(first.member_epoch, "a")) == (0, 1), "as without them"


def test_a_higher_topology_epoch_is_refused_as_another_topology() -> None:
    node = Application()
    node.starts("a")
    newer = StreamsTopology(epoch=1, subtopologies=ONE_PART.subtopologies)
    assert node.starts("b", newer).error_code is ErrorCode.INVALID_REQUEST


def test_the_state_that_lists_show_is_no_filter_of_them() -> None:
    node = Application()
    missing = StreamsTopology(epoch=0, subtopologies=(subtopology(0, source_topics=("nowhere",)),))
    node.starts("a", missing)
    found = {
        state: node.ask(ListGroupsRequest(states_filter=(state,), types_filter=()), 5).groups
        for state in ("NotReady", "not_ready")
    }
    assert not found["NotReady"]
    assert [each.group_state for each in found["not_ready"]] == ["NotReady"]
