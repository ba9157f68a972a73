"""Waiting until a group is as wanted, and saying how it was when it did not get there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import ConditionNotReached, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body, as_tuple
from rejoin.coordinator.control.node_interface import ControlledRuntime, EventFeed
from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerGroupState
from rejoin.coordinator.core.groups.streams.model.state import StreamsGroupState
from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    OffsetView,
    StreamsMemberView,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.validation import nearest

_MOST_SHOWN: Final = 20
DEFAULT_TIMEOUT_MS: Final = 10_000
LONGEST_TIMEOUT_MS: Final = 600_000

_MEANT: Final = {
    "rebalancing": GroupState.PREPARING_REBALANCE,
    "rebalance": GroupState.PREPARING_REBALANCE,
    "joining": GroupState.PREPARING_REBALANCE,
    "syncing": GroupState.COMPLETING_REBALANCE,
}
"""States by words that are written for them."""

Timeout = Annotated[int, Field(ge=0, le=LONGEST_TIMEOUT_MS, description="longest wait, in real ms")]


def _state(value: object) -> object:
    states = {state.value.lower(): state.value for state in (*GroupState, *ConsumerGroupState, *StreamsGroupState)}
    if not isinstance(value, str) or value.lower() not in states:
        meant = _MEANT.get(str(value).lower())
        hint = f"; is it {meant.value}?" if meant else nearest(str(value), states.values())
        raise ValueError(f"there is no state {value!r}{hint}")
    return states[value.lower()]


StateName = Annotated[str, BeforeValidator(_state)] | None


class GroupCondition(Body):
    """Conditions to wait for; fields are AND-ed. A group that does not exist is Dead; it meets no other state."""

    group: str = Field(description="the group's id")
    state: StateName = Field(
        default=None,
        description="Empty, PreparingRebalance, CompletingRebalance, NotReady, Assigning, Reconciling, Stable or Dead",
    )
    members: int | None = Field(default=None, ge=0, description="exactly this many members")
    assigned: int | None = Field(
        default=None, ge=0, description="exactly this many assigned partitions, over all members"
    )
    generation: int | None = Field(default=None, ge=0, description="this generation or a later one")
    waiting: int | None = Field(default=None, ge=0, description="at least this many parked JoinGroups and SyncGroups")
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS

    def is_met_by(self, view: GroupView | None) -> bool:
        """Whether the group is as wanted."""
        if view is None:
            return self.state == GroupState.DEAD.value and not (
                self.members or self.assigned or self.waiting or self.generation is not None
            )
        return (
            (self.state is None or self.state == view.state)
            and (self.members is None or self.members == len(view.members))
            and (self.assigned is None or self.assigned == _assigned(view))
            and (self.generation is None or view.generation >= self.generation)
            and (self.waiting is None or _waiting(view) >= self.waiting)
        )

    def unmet(self) -> str:
        """Present state of a group that does not meet the conditions, as the end of a sentence."""
        counts = ((self.members, "member"), (self.assigned, "assigned partition"), (self.waiting, "waiting request"))
        had = " and ".join(_counted(count, what) for count, what in counts if count is not None)
        was = [] if self.state is None else [self.state]
        was += [] if self.generation is None else [f"in generation {self.generation} or later"]
        if had and not was:
            return f"did not have {had}"
        return f"was not {' '.join([*was, f'with {had}'] if had else was) or 'there'}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _some(offsets: tuple[WantedOffset, ...]) -> tuple[WantedOffset, ...]:
    if not offsets:
        raise ValueError("expected at least one offset to wait for")
    return offsets


class WantedOffset(Body):
    """An offset that shall be committed."""

    topic: str = Field(description="the topic's name")
    partition: int = Field(ge=0)
    offset: int = Field(ge=0, description="this offset or a later one")


class OffsetsCondition(Body):
    """Committed offsets that are waited for."""

    group: str = Field(description="the group's id")
    offsets: Annotated[tuple[WantedOffset, ...], BeforeValidator(as_tuple), AfterValidator(_some)] = Field(
        description="offsets to wait for, all of them; at least one"
    )
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS


class HitCount(Body):
    """How many hits a fault shall have."""

    hits: int = Field(default=1, ge=1, description="at least this many requests; at most the rule's count")
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS


def looks(group_id: str, view: GroupView | None, now: int, known: Sequence[str] = ()) -> str:
    """A group in one sentence; of one that does not exist, the nearest of the known ones."""
    if view is None:
        return f"there is no group {group_id!r}{nearest(group_id, known) if known else ''}"
    epoch = "group epoch" if isinstance(view, ConsumerGroupView) else "generation"
    words = [f"it is {view.state} in {epoch} {view.generation}"]
    if view.members:
        parts = []
        for member in view.members:
            notes = [member.group_instance_id or "", "leads" if member.is_leader else ""]
            notes += [
                "waits in JoinGroup" if member.awaiting_join else "",
                "waits in SyncGroup" if member.awaiting_sync else "",
            ]
            owned = sum(len(partitions) for partitions in (member.assignment or {}).values())
            notes.append(f"{owned} assigned" if owned else "")
            if isinstance(member, ConsumerMemberView | StreamsMemberView):
                pending = sum(map(len, member.pending_revocation.values()))
                notes += [f"member epoch {member.member_epoch}", f"{pending} to give up" if pending else ""]
            said = ", ".join(note for note in notes if note)
            parts.append(f"{member.member_id} ({said})" if said else member.member_id)
        words.append(f"{_counted(len(view.members), 'member')}: {'; '.join(parts)}")
    else:
        words.append("no members")
    if view.pending_members:
        words.append(f"ids handed out: {' '.join(view.pending_members)}")
    if view.deadlines:
        words.append("due: " + ", ".join(f"{name} in {at - now} ms" for name, at in view.deadlines.items()))
    return "; ".join(words)


def not_reached(wanted: GroupCondition, when: str, view: GroupView | None, seen: str) -> ConditionNotReached:
    """The error for a group that is not as wanted. ``when`` is how the wait ended, ``seen`` how the group is."""
    shown: dict[str, Any] | None = None if view is None else view.model_dump(mode="json", by_alias=False)
    return ConditionNotReached(f"group {wanted.group!r} {wanted.unmet()} {when}; {seen}", {"group": shown})


def missing(wanted: OffsetsCondition, committed: Sequence[OffsetView]) -> list[WantedOffset]:
    """The offsets that are waited for still."""
    found = {(each.topic, each.partition): each.offset for each in committed}
    return [each for each in wanted.offsets if found.get((each.topic, each.partition), -1) < each.offset]


def not_committed(
    wanted: OffsetsCondition, when: str, committed: Sequence[OffsetView], hint: str = ""
) -> ConditionNotReached:
    """The error for offsets that are not committed. ``when`` is how the wait ended, ``hint`` the sentence's end."""
    left = ", ".join(
        f"{each.topic}-{each.partition} to {each.offset}" for each in missing(wanted, committed)[:_MOST_SHOWN]
    )
    seen = ", ".join(f"{each.topic}-{each.partition}={each.offset}" for each in committed[:_MOST_SHOWN])
    detail = f"group {wanted.group!r} has not committed {left} {when}; committed: {seen or 'nothing'}{hint}"
    return ConditionNotReached(
        detail, {"offsets": [each.model_dump(mode="json", by_alias=False) for each in committed]}
    )


class GroupWaiter:
    """Returns when a group is as wanted."""

    def __init__(self, runtime: ControlledRuntime, clock: VirtualClock, feed: EventFeed) -> None:
        self._runtime = runtime
        self._clock = clock
        self._feed = feed

    async def wait(self, wanted: GroupCondition) -> GroupView | None:
        """The group, once it is as wanted. Raises :class:`ConditionNotReached` with how it was then."""
        summarize = self._runtime.node.summarize_group
        ended = await self.until(lambda: wanted.is_met_by(summarize(wanted.group)), wanted.timeout_ms)
        if ended:
            raise self._not_reached(wanted, ended)
        return self._view(wanted.group)

    async def wait_for_committed(self, wanted: OffsetsCondition) -> list[OffsetView]:
        """The group's committed offsets, once they are as wanted. Raises :class:`ConditionNotReached`."""
        ended = await self.until(lambda: not missing(wanted, self._committed(wanted.group)), wanted.timeout_ms)
        committed = self._committed(wanted.group)
        if ended:
            raise not_committed(wanted, ended, committed, self._unknown(missing(wanted, committed)))
        return committed

    def _unknown(self, missing: Sequence[WantedOffset]) -> str:
        """End of the sentence where nothing can be committed, as there is no such topic or partition."""
        topics = {topic.topic: topic.partitions for topic in self._runtime.node.describe_topics(self._clock.now())}
        for each in missing:
            if each.topic == OFFSETS_TOPIC:
                continue
            if each.topic not in topics:
                return f"; {unknown('topic', each.topic, list(topics)).detail}"
            if each.partition >= topics[each.topic]:
                return f"; topic {each.topic!r} has no partition {each.partition}: it has {topics[each.topic]}"
        return ""

    def _committed(self, group_id: str) -> list[OffsetView]:
        return self._runtime.node.describe_offsets(group_id, self._clock.now())

    async def until(self, is_met: Callable[[], bool], timeout_ms: int) -> str:
        """Return when a condition is met; or else how the wait ended."""
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                while not is_met():
                    if self._feed.closed:
                        return "before the node stopped"
                    await self._feed.wait(self._feed.head)
        except TimeoutError:
            return f"within {timeout_ms} ms"
        return ""

    def _view(self, group_id: str) -> GroupView | None:
        return self._runtime.node.describe_group(group_id)

    def _not_reached(self, wanted: GroupCondition, when: str) -> ConditionNotReached:
        view = self._view(wanted.group)
        seen = looks(wanted.group, view, self._clock.now(), self._runtime.node.group_ids()[:_MOST_SHOWN])
        return not_reached(wanted, when, view, seen)


def _assigned(view: GroupView) -> int:
    return sum(len(partitions) for member in view.members for partitions in (member.assignment or {}).values())


def _waiting(view: GroupView) -> int:
    return sum(member.awaiting_join + member.awaiting_sync for member in view.members)
