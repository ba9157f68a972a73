"""A thread of an application in a streams group: what it sends, the order of revoke and assign, and what ends it."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import Any, Final

import pytest

from rejoin.client.core.effects import Send
from rejoin.client.core.errors import (
    ApplicationShutdownError,
    CodedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    MissingSourceTopicError,
    TopologyError,
)
from rejoin.client.core.group.consumer.state import MembershipState
from rejoin.client.core.group.streams.state import StreamsApplication, StreamsMembership
from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.client.core.inputs import Answered, Failure, ShutdownAsked, TasksMeasured
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsStatus,
)
from rejoin.protocol.types import TopicPartition
from tests import paths
from tests.client.core.heartbeats import INTERVAL_MS
from tests.client.core.streams.heartbeats import WORD_COUNT, StreamsBench, tasks

HEARTBEAT: Final = "StreamsGroupHeartbeat"
LONG: Final = 10_000_000


def joining(application: StreamsApplication = WORD_COUNT, **settings: Any) -> StreamsBench:
    """A thread in an open poll that has sent its first heartbeat."""
    settings.setdefault("max_poll_interval_ms", 60_000)
    bench = StreamsBench(
        application,
        group_protocol="consumer",
        enable_auto_commit=False,
        topics=dict.fromkeys(application.source_topics, 3),
        **settings,
    )
    bench.subscribe(*application.source_topics)
    bench.poll(LONG)
    bench.find_coordinator()
    return bench


def joined(*active: str, standby: tuple[str, ...] = (), **settings: Any) -> StreamsBench:
    """A stable thread with these tasks, which has acknowledged them; the poll stays open."""
    bench = joining(**settings)
    bench.answer(HEARTBEAT, epoch=2, active=active, standby=standby)
    bench.answer(HEARTBEAT, epoch=2)
    bench.take()
    return bench


def beat(bench: StreamsBench, error: E = E.NONE, **fields: Any) -> list[str]:
    """The next heartbeat is answered; what the thread did, without that heartbeat."""
    if not bench.is_open(HEARTBEAT):
        bench.advance(INTERVAL_MS)
    bench.take()
    bench.answer(HEARTBEAT, error, **fields)
    return bench.take()


def test_it_joins_with_topology_and_process_and_then_names_what_it_owns() -> None:
    bench = joining()
    assert bench.take()[1:] == ["streams heartbeat 0 topology=2 process=process timeout=60000 owns"]
    assert beat(bench, epoch=1, active=()) == ["on_partitions_assigned []", "streams heartbeat 1 owns"]
    assert beat(bench, epoch=1) == []
    bench.advance(INTERVAL_MS - 1)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["streams heartbeat 1"]
    assert beat(bench, epoch=3, active=("0_0", "1_0"), standby=("1_1",), endpoints=1) == [
        "on_partitions_assigned [lines-0 words-0] active=[0_0 1_0] standby=[1_1]",
        "streams heartbeat 3 endpoints=1 owns active=[0_0 1_0] standby=[1_1]",
    ]
    assert bench.core.assignment() == [TopicPartition("lines", 0), TopicPartition("words", 0)]


def test_active_tasks_are_revoked_before_the_rest_is_assigned_and_standby_tasks_have_no_call() -> None:
    bench = joined("0_0", "1_0", standby=("1_1",))
    assert beat(bench, epoch=2, active=("0_0", "1_1"), standby=("1_0",)) == [
        "on_partitions_revoked [words-0] active=[1_0]",
        "on_partitions_assigned [words-1] active=[0_0 1_1] standby=[1_0]",
        "streams heartbeat 2 owns active=[0_0 1_1] standby=[1_0]",
    ]


def test_a_change_of_standby_tasks_alone_revokes_nothing() -> None:
    bench = joined("0_0", standby=("1_0",))
    assert beat(bench, epoch=3, active=("0_0",), standby=("1_1",)) == [
        "on_partitions_assigned [] active=[0_0] standby=[1_1]",
        "streams heartbeat 3 owns active=[0_0] standby=[1_1]",
    ]


def test_a_task_that_is_active_and_standby_is_named_as_active_only() -> None:
    bench = joined("1_0")
    assert beat(bench, epoch=3, active=("1_0",), standby=("1_0", "1_1"))[-1] == (
        "streams heartbeat 3 owns active=[1_0] standby=[1_1]"
    )


def test_a_group_that_is_not_ready_is_handed_over_as_such_with_the_same_tasks() -> None:
    bench = joined("0_0")
    delayed = {StreamsStatus.ASSIGNMENT_DELAYED: "soon"}
    assert beat(bench, epoch=2, statuses=delayed) == ["on_partitions_assigned [] active=[0_0] not ready", BEAT_AGAIN]
    assert beat(bench, epoch=2, statuses=delayed) == []
    assert beat(bench, epoch=2) == ["on_partitions_assigned [] active=[0_0]", BEAT_AGAIN]


BEAT_AGAIN: Final = "streams heartbeat 2"
"""Nothing differs from what was last sent, so that the acknowledgement has no lists."""


def test_the_listener_is_called_in_polls_only_and_heartbeats_go_on_meanwhile() -> None:
    bench = joined("0_0")
    bench.hold_listener = True
    assert beat(bench, epoch=2, active=("1_0",)) == ["on_partitions_revoked [lines-0] active=[0_0]"]
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["streams heartbeat 2"]
    bench.answer(HEARTBEAT, epoch=2)
    bench.listener_done()
    assert bench.take() == ["on_partitions_assigned [words-0] active=[1_0]"]
    bench.listener_done()
    assert bench.take() == ["streams heartbeat 2 owns active=[1_0]"]


@pytest.mark.parametrize("error", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_thread_loses_all_tasks_and_joins_again_at_once(error: E) -> None:
    bench = joined("0_0", standby=("1_0",))
    assert beat(bench, error) == [
        "on_partitions_lost [lines-0] active=[0_0] standby=[1_0]",
        "streams heartbeat 0 topology=2 process=process timeout=60000 owns",
    ]
    assert bench.core.assignment() == []
    assert beat(bench, epoch=4, active=()) == ["on_partitions_assigned []", "streams heartbeat 4 owns"]


def test_a_fenced_thread_with_standby_tasks_alone_loses_them_too() -> None:
    bench = joined(standby=("1_0",))
    assert beat(bench, E.FENCED_MEMBER_EPOCH)[0] == "on_partitions_lost [] standby=[1_0]"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (E.FENCED_INSTANCE_ID, FencedInstanceIdError),
        *(
            (each, CodedError)
            for each in (
                *(E.INVALID_REQUEST, E.GROUP_MAX_SIZE_REACHED, E.UNRELEASED_INSTANCE_ID, E.UNSUPPORTED_VERSION),
                *(E.STREAMS_INVALID_TOPOLOGY, E.STREAMS_INVALID_TOPOLOGY_EPOCH, E.STREAMS_TOPOLOGY_FENCED),
                *(E.UNKNOWN_SERVER_ERROR, E.GROUP_ID_NOT_FOUND),
            )
        ),
    ],
)
def test_every_other_error_ends_the_thread(error: E, raised: type[Exception]) -> None:
    bench = joined("0_0")
    beat(bench, error)
    assert [type(each) for each in bench.raised] == [raised]
    bench.advance(LONG)
    assert not bench.is_open(HEARTBEAT)


def test_after_an_error_and_after_a_lost_response_the_tasks_are_named_again() -> None:
    bench = joined("0_0")
    assert beat(bench, E.COORDINATOR_LOAD_IN_PROGRESS) == []
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["streams heartbeat 2 owns active=[0_0]"]
    bench.fail(HEARTBEAT, Failure.DISCONNECT)
    bench.advance(INTERVAL_MS)
    if bench.is_open("FindCoordinator"):
        bench.find_coordinator()
    assert bench.take()[-1] == "streams heartbeat 2 owns active=[0_0]"


def test_another_coordinator_is_looked_up_and_gets_a_heartbeat_at_once() -> None:
    bench = joined("0_0")
    assert beat(bench, E.NOT_COORDINATOR)[-1] == "FindCoordinator"
    bench.find_coordinator()
    assert bench.take() == ["streams heartbeat 2 owns active=[0_0]"]


def test_source_topics_may_be_missing_for_two_heartbeat_intervals() -> None:
    missing = {StreamsStatus.MISSING_SOURCE_TOPICS: "lines"}
    bench = joining()
    began = bench.now
    bench.answer(HEARTBEAT, epoch=1, active=(), statuses=missing)
    while not bench.raised and bench.now < began + 4 * INTERVAL_MS:
        if bench.is_open(HEARTBEAT):
            bench.answer(HEARTBEAT, epoch=1, statuses=missing)
        bench.advance(100)
    assert [type(each) for each in bench.raised] == [MissingSourceTopicError]
    assert bench.now - began == pytest.approx(2 * INTERVAL_MS, abs=100)


def test_source_topics_that_come_in_time_are_waited_for() -> None:
    bench = joining()
    bench.answer(HEARTBEAT, epoch=1, active=(), statuses={StreamsStatus.MISSING_SOURCE_TOPICS: "lines"})
    bench.answer(HEARTBEAT, epoch=1, statuses={StreamsStatus.MISSING_SOURCE_TOPICS: "lines"})
    for _ in range(5):
        beat(bench, epoch=1)
    assert bench.raised == []


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, TopologyError),
        (StreamsStatus.SHUTDOWN_APPLICATION, ApplicationShutdownError),
    ],
)
def test_some_conditions_end_a_thread_at_once(status: StreamsStatus, raised: type[Exception]) -> None:
    bench = joined("0_0")
    beat(bench, epoch=2, statuses={status: "why"})
    assert [type(each) for each in bench.raised] == [raised]


def test_tasks_of_an_unknown_subtopology_end_a_thread() -> None:
    bench = joined("0_0")
    beat(bench, epoch=3, active=("7_0",))
    assert [type(each) for each in bench.raised] == [TopologyError]


def test_a_thread_that_asks_for_shutdown_says_so_with_each_heartbeat() -> None:
    bench = joined("0_0")
    bench.step(ShutdownAsked())
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["streams heartbeat 2 shutdown"]


def test_offsets_of_tasks_are_sent_once_in_their_interval_and_only_if_they_differ() -> None:
    bench = joined("1_0")
    (task,) = tasks("1_0")
    sent = []
    for number in range(26):
        bench.step(TasksMeasured({task: 100 if number < 13 else 200}, {task: 300}))
        if not bench.is_open(HEARTBEAT):
            bench.advance(INTERVAL_MS)
        sent += bench.take()
        bench.answer(HEARTBEAT, epoch=2)
    with_offsets = [number for number, line in enumerate(sent) if "at=" in line]
    assert [sent[number] for number in with_offsets] == [
        "streams heartbeat 2 at=1_0@100",
        "streams heartbeat 2 at=1_0@200",
    ]
    assert with_offsets[1] - with_offsets[0] == 60_000 // INTERVAL_MS


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_closing_revokes_and_leaves_without_lists(instance: str | None, epoch: int) -> None:
    bench = joined("0_0", standby=("1_0",), group_instance_id=instance)
    bench.step_out_of_poll()
    bench.close()
    said = [line for line in bench.take() if not line.startswith("poll")]
    assert said[0] == "on_partitions_revoked [lines-0] active=[0_0] standby=[1_0]"
    assert said[1] == f"streams heartbeat {epoch}{' instance=i' if instance else ''}"


@pytest.mark.parametrize(("instance", "leaves"), [(None, False), ("i", True)])
def test_an_application_that_fails_remains_in_the_group(instance: str | None, leaves: bool) -> None:
    bench = joined("0_0", group_instance_id=instance)
    bench.step_out_of_poll()
    bench.close(leave=False)
    assert ("streams heartbeat -2 instance=i" in bench.take()) is leaves


@pytest.mark.parametrize("seed", range(8))
def test_no_order_of_responses_loses_the_target(seed: int) -> None:
    """Random targets, errors and lost responses: at the end the thread runs and has named the last target."""
    random = Random(seed)
    bench = joined("0_0")
    epoch = 2
    for _ in range(40):
        bench.hold_listener = False
        if not bench.is_open(HEARTBEAT):
            if bench.is_open("FindCoordinator"):
                bench.find_coordinator()
            bench.advance(random.choice([100, INTERVAL_MS]))
            continue
        chosen = random.random()
        if chosen < 0.15:
            bench.fail(HEARTBEAT)
        elif chosen < 0.3:
            refused = [E.FENCED_MEMBER_EPOCH, E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS]
            bench.answer(HEARTBEAT, random.choice(refused))
        else:
            epoch += 1
            free = [f"{part}_{index}" for part in "01" for index in range(2)]
            random.shuffle(free)
            cut = random.randrange(4)
            bench.answer(HEARTBEAT, epoch=epoch, active=free[:cut], standby=free[cut:])
    for _ in range(12):
        if bench.is_open("FindCoordinator"):
            bench.find_coordinator()
        if bench.is_open(HEARTBEAT):
            bench.answer(HEARTBEAT, epoch=epoch, active=("0_1", "1_1"), standby=("1_0",))
        bench.advance(INTERVAL_MS)
    bench.take()
    assert bench.raised == []
    assert bench.core.assignment() == [TopicPartition("lines", 1), TopicPartition("words", 1)]
    member = bench.core._state.membership
    assert isinstance(member, StreamsMembership)
    assert member.state is MembershipState.STABLE
    assert member.sent_tasks.tasks == member.tasks_current.tasks


# -- requests of a real application


def recorded(run: str, client: str) -> list[dict[str, Any]]:
    """Heartbeats of one thread of kafka-streams 4.4, in order."""
    with gzip.open(paths.GOLDEN / "streams-groups" / "application.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        row
        for row in rows
        if row["run"] == run and row["client"].startswith(client) and row["api"] == "STREAMS_GROUP_HEARTBEAT"
    ]


def comparable(request: Any) -> Any:
    """A request without what is random, and without the order of Java's hash sets."""
    if isinstance(request, dict):
        return {
            key: sorted(value) if key == "partitions" and isinstance(value, list) else comparable(value)
            for key, value in request.items()
            if key not in {"memberId", "groupId"}
        }
    return [comparable(each) for each in request] if isinstance(request, list) else request


@pytest.mark.parametrize(("run", "client"), [("stock", "one"), ("stock", "two"), ("no-lines", "plain")])
def test_requests_are_those_of_kafka_streams(run: str, client: str) -> None:
    rows = recorded(run, client)
    first = StreamsGroupHeartbeatRequest.from_json(json.dumps(rows[0]["request"]).encode())
    assert first.topology is not None
    application = StreamsApplication(first.process_id or "", first.topology, first.user_endpoint)
    bench = joining(application, max_poll_interval_ms=first.rebalance_timeout_ms)
    measured: dict[str, dict[TaskId, int]] = {"taskOffsets": {}, "taskEndOffsets": {}}
    for number, row in enumerate(rows):
        if row["request"]["memberEpoch"] < 0:
            bench.step_out_of_poll()
            bench.close()
        elif not bench.is_open(HEARTBEAT):
            bench.advance(INTERVAL_MS)
        sent: Send = bench.find(HEARTBEAT)
        assert comparable(json.loads(sent.request.to_json(1))) == comparable(row["request"])
        bench.open.remove(sent)
        for kind in measured.keys() if number + 1 < len(rows) else ():
            for each in rows[number + 1]["request"][kind] or ():
                measured[kind][TaskId(each["subtopologyId"], each["partition"])] = each["offset"]
        bench.step(TasksMeasured(measured["taskOffsets"], measured["taskEndOffsets"]))
        response = StreamsGroupHeartbeatResponse.from_json(json.dumps(row["response"]).encode())
        bench.step(Answered(sent.request_id, response))
