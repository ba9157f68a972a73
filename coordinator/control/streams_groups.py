"""Streams groups: their tasks, and waiting for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, cast

from pydantic import Field

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import ConditionNotReached, NotPossible, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, GroupWaiter, StateName, Timeout, looks
from rejoin.coordinator.core.views import GroupView, StreamsGroupView, StreamsMemberView, TaskView
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rejoin.protocol.registry import STREAMS_GROUP_HEARTBEAT

_MOST_SHOWN: Final = 20
_LEAVES: Final = -1


class StreamsGroupQuery(Body):
    """A streams group."""

    group: str = Field(description="the group's id")


class ShutdownRequest(StreamsGroupQuery):
    """The end of an application, which its members learn with their next heartbeats."""

    requester: str = Field(default="test", min_length=1, description="a name for who asks; none of a member")


class StreamsGroupCondition(Body):
    """Conditions to wait for; fields are AND-ed."""

    group: str = Field(description="the group's id")
    state: StateName = Field(default=None, description="Empty, NotReady, Assigning, Reconciling or Stable")
    ready: bool | None = Field(
        default=None, description="whether the topics of the topology are there, with fitting numbers of partitions"
    )
    members: int | None = Field(default=None, ge=0, description="exactly this many members")
    tasks: int | None = Field(default=None, ge=0, description="exactly this many tasks that a member runs")
    standbys: int | None = Field(default=None, ge=0, description="exactly this many standbys, over all members")
    member: str | None = Field(
        default=None, description="count the tasks of this member alone, by its id, client id or process id"
    )
    epoch: int | None = Field(default=None, ge=0, description="this group epoch or a later one")
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS

    def is_met_by(self, view: StreamsGroupView | None) -> bool:
        """Whether the group is as wanted."""
        if view is None:
            return False
        tasks, standbys = self.counts(view)
        return (
            self.state in (None, view.state)
            and self.ready in (None, view.not_ready is None)
            and self.members in (None, len(view.members))
            and self.tasks in (None, tasks)
            and self.standbys in (None, standbys)
            and (self.epoch is None or view.group_epoch >= self.epoch)
        )

    def counts(self, view: StreamsGroupView) -> tuple[int, int]:
        """Active tasks and standbys, of all members or of the one that is meant."""
        meant = [each for each in _streams_members(view) if self.member in (None, *_names(each))]
        return sum(_count(each.assignment) for each in meant), sum(_count(each.standby_tasks) for each in meant)

    def unmet(self) -> str:
        """Words for what was wanted."""
        parts = [] if self.state is None else [self.state]
        parts += [] if self.ready is None else ["a topology that can run" if self.ready else "topics missing"]
        counts = ((self.members, "members"), (self.tasks, "tasks"), (self.standbys, "standbys"))
        parts += [f"{count} {word}" for count, word in counts if count is not None]
        parts += [] if self.epoch is None else [f"epoch {self.epoch} or later"]
        of = "" if self.member is None else f" at {self.member!r}"
        return (", ".join(parts) or "members") + of


def _streams_members(view: StreamsGroupView) -> list[StreamsMemberView]:
    assert all(isinstance(each, StreamsMemberView) for each in view.members), "a streams group has such members"
    return cast(list[StreamsMemberView], view.members)


def _names(member: StreamsMemberView) -> tuple[str, ...]:
    return (member.member_id, member.client_id, member.process_id)


def _count(tasks: Mapping[str, Sequence[int]] | None) -> int:
    return sum(map(len, (tasks or {}).values()))


class StreamsGroupActions:
    """Reads tasks past all requests, waits for them, and ends applications."""

    def __init__(
        self,
        runtime: ControlledRuntime,
        clock: VirtualClock,
        waiter: GroupWaiter,
        ask: Callable[[Request, int], Awaitable[Response]],
    ) -> None:
        self._runtime, self._clock, self._waiter, self._ask = runtime, clock, waiter, ask

    def state(self, which: StreamsGroupQuery) -> StreamsGroupView | None:
        """A group with its tasks, or none. Raises :class:`NotPossible` for a group of another kind."""
        self._clock.catch_up()
        return self._view(which.group)

    async def wait(self, wanted: StreamsGroupCondition) -> StreamsGroupView:
        """The group, once it is as wanted. Raises :class:`ConditionNotReached`."""
        summarize = self._runtime.node.summarize_group
        ended = await self._waiter.until(
            lambda: wanted.is_met_by(as_streams_group(wanted.group, summarize(wanted.group))), wanted.timeout_ms
        )
        view = self._view(wanted.group)
        if not ended:
            assert view is not None, "only a group that exists meets conditions"
            return view
        known = self._runtime.node.group_ids()[:_MOST_SHOWN]
        raise streams_not_reached(wanted, ended, view, looks(wanted.group, view, self._clock.now(), known))

    async def shut_down(self, wanted: ShutdownRequest) -> StreamsGroupView:
        """Ask for the end of the application: answers to members say so until the group is empty."""
        self._clock.catch_up()
        before = self._view(wanted.group)
        if before is None:
            raise unknown("group", wanted.group, self._runtime.node.group_ids())
        if not before.members:
            raise NotPossible("no-members", f"group {wanted.group!r} has no members that could shut down")
        if wanted.requester in _ids(before):
            detail = f"{wanted.requester!r} is a member of {wanted.group!r}, so its heartbeats are its own"
            raise NotPossible("is-member", detail)
        # Kafka: the wish of a member that leaves counts before it is looked for.
        request = StreamsGroupHeartbeatRequest(
            group_id=wanted.group,
            member_id=wanted.requester,
            member_epoch=_LEAVES,
            endpoint_information_epoch=0,
            shutdown_application=True,
        )
        answer = cast(StreamsGroupHeartbeatResponse, await self._ask(request, STREAMS_GROUP_HEARTBEAT.max_version))
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            raise NotPossible("not-shut-down", f"group {wanted.group!r}: {answer.error_code.name}")
        after = self._view(wanted.group)
        assert after is not None, "a wish to shut down deletes no group"
        return after

    def _view(self, group_id: str) -> StreamsGroupView | None:
        return as_streams_group(group_id, self._runtime.node.describe_group(group_id))


def as_streams_group(group_id: str, view: GroupView | None) -> StreamsGroupView | None:
    """A group that is a streams group, or none. Raises :class:`NotPossible` for one of another kind."""
    if view is None or isinstance(view, StreamsGroupView):
        return view
    raise NotPossible("not-streams", f"group {group_id!r} is no streams group{_kind(view)}")


def streams_not_reached(
    wanted: StreamsGroupCondition, when: str, view: StreamsGroupView | None, seen: str
) -> ConditionNotReached:
    """The error for a streams group that is not as wanted: how the wait ended, and how the group is then."""
    detail = f"streams group {wanted.group!r} did not have {wanted.unmet()} {when}; {seen}{_described(view)}"
    shown = None if view is None else view.model_dump(mode="json", by_alias=False)
    return ConditionNotReached(detail, {"group": shown})


def _ids(view: StreamsGroupView) -> set[str]:
    return {each.member_id for each in view.members}


def _kind(view: GroupView) -> str:
    return f"; its protocol type is {view.protocol_type!r}" if view.protocol_type else ""


def _described(view: StreamsGroupView | None) -> str:
    """Tasks in words, and why there are none."""
    if view is None:
        return ""
    reason = f"; not ready: {view.not_ready}" if view.not_ready else ""
    tasks = [_task(each) for each in view.tasks[:_MOST_SHOWN]]
    return f"{reason}; tasks: {', '.join(tasks) or 'none'}"


def _task(task: TaskView) -> str:
    owner = task.active or (f"{task.revoking}, to give up" if task.revoking else "nowhere")
    standby = f", standby {' '.join(task.standby)}" if task.standby else ""
    return f"{task.subtopology_id}_{task.partition} ({owner}{standby})"
