"""Share groups: the records that they have in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import ConditionNotReached, NotFound, NotPossible, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.fault_injection.fault_rules import ErrorOrNone
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, GroupWaiter, Timeout, looks
from rejoin.coordinator.core.inputs import LockExpired, PersisterFault, RecordReleased
from rejoin.coordinator.core.share.window.values import RecordState
from rejoin.coordinator.core.views import ShareStateView

_MOST_SHOWN: Final = 20


class SharePartitionQuery(Body):
    """A share-partition: a partition, as a share group sees it."""

    group: str = Field(description="the group's id")
    topic: str = Field(description="the topic's name")
    partition: int = Field(ge=0)


class LockKey(SharePartitionQuery):
    """The lock of a record that a member of a share group holds."""

    offset: int = Field(ge=0, description="the record's offset")


class PersisterFailure(Body):
    """Requests of a broker to share coordinators, to itself too, that fail."""

    group: str = Field(description="the group's id")
    operation: Literal["initialize", "read", "write", "delete", "summary"] = Field(
        default="write", description="what share coordinators are asked: InitializeShareGroupState and so on"
    )
    error: ErrorOrNone = Field(default=None, description="answered, by name or number; null: no answer")
    count: int = Field(default=1, ge=-1, description="so many requests; -1 for all from now on, 0 for no more")


class ShareGroupCondition(Body):
    """Conditions to wait for; fields are AND-ed. Records are those in flight in the share-partitions of the group."""

    group: str = Field(description="the group's id")
    members: int | None = Field(default=None, ge=0, description="exactly this many members")
    acquired: int | None = Field(default=None, ge=0, description="exactly this many records that members hold")
    available: int | None = Field(
        default=None,
        ge=0,
        description="exactly this many records that were given back and wait for their next delivery",
    )
    topic: str | None = Field(default=None, description="count the records of this topic alone")
    timeout_ms: Timeout = DEFAULT_TIMEOUT_MS


def _count(states: Sequence[ShareStateView], state: RecordState) -> int:
    """How many records are in a state."""
    return sum(
        run.last_offset - run.first_offset + 1 for each in states for run in each.records if run.state == state.name
    )


def share_not_reached(
    wanted: ShareGroupCondition, when: str, states: Sequence[ShareStateView], seen: str
) -> ConditionNotReached:
    """The error for a share group that is not as wanted. ``when`` is how the wait ended, ``seen`` how the group is."""
    runs = [
        f"{each.topic}-{each.partition} {run.first_offset} to {run.last_offset} {run.state}"
        for each in states
        for run in each.records
    ]
    counts = ((wanted.members, "members"), (wanted.acquired, "acquired"), (wanted.available, "available"))
    had = ", ".join(f"{count} {word}" for count, word in counts if count is not None) or "members"
    detail = (
        f"share group {wanted.group!r} did not have {had} {when}; {seen};"
        f" in flight: {', '.join(runs[:_MOST_SHOWN]) or 'none'}"
    )
    return ConditionNotReached(
        detail, {"share_partitions": [each.model_dump(mode="json", by_alias=False) for each in states]}
    )


class ShareGroupActions:
    """Reads share-partitions past all requests, waits for them, and ends their locks."""

    def __init__(self, runtime: ControlledRuntime, clock: VirtualClock, waiter: GroupWaiter) -> None:
        self._runtime = runtime
        self._waiter = waiter
        self._clock = clock

    def state(self, which: SharePartitionQuery) -> ShareStateView | None:
        """A share-partition, or none before a member fetches from it. Raises :class:`NotFound`."""
        self._clock.catch_up()
        node, now = self._runtime.node, self._clock.now()
        found = node.share_state(which.group, which.topic, which.partition, now)
        if found is None:
            self._check_partition(which)
        return found

    def expire_lock(self, which: LockKey) -> ShareStateView:
        """Let the lock of a record run out now; returns the share-partition after that.

        A batch in one state has one lock. Raises :class:`NotFound` and :class:`NotPossible`.
        """
        return self._end(which, LockExpired(which.group, which.topic, which.partition, which.offset))

    def release(self, which: LockKey) -> ShareStateView:
        """Release a record for the member that holds it, whose session stays as it is; returns what is in flight then.

        Raises :class:`NotFound` and :class:`NotPossible`.
        """
        return self._end(which, RecordReleased(which.group, which.topic, which.partition, which.offset))

    def _end(self, which: LockKey, how: LockExpired | RecordReleased) -> ShareStateView:
        before = self.state(which)
        where = f"{which.topic}-{which.partition}"
        if before is None:
            detail = f"group {which.group!r} has not fetched from {where}, so it has no record there"
            raise NotPossible("not-fetched", detail)
        held = [each for each in before.records if each.first_offset <= which.offset <= each.last_offset]
        if not held or held[0].lock_ms is None:
            runs = ", ".join(
                f"{each.first_offset} to {each.last_offset} {each.state}" for each in before.records[:_MOST_SHOWN]
            )
            detail = (
                f"group {which.group!r} has no lock on record {which.offset} of {where}; in flight: {runs or 'none'}"
            )
            raise NotPossible("not-locked", detail)
        self._runtime.hand_in(how)
        after = self.state(which)
        assert after is not None, "the end of a lock leaves its share-partition in memory"
        return after

    def fail_persister(self, failure: PersisterFailure) -> None:
        """Let requests to share coordinators fail."""
        self._clock.catch_up()
        self._runtime.hand_in(PersisterFault(failure.group, failure.operation, failure.error, failure.count))

    async def wait(self, wanted: ShareGroupCondition) -> list[ShareStateView]:
        """The share-partitions of a group, once they are as wanted. Raises :class:`ConditionNotReached`."""
        if wanted.topic is not None:
            self._check_topic(wanted.topic)
        ended = await self._waiter.until(lambda: self._is_met(wanted), wanted.timeout_ms)
        states = self._states(wanted)
        if not ended:
            return states
        view = self._runtime.node.describe_group(wanted.group)
        seen = looks(wanted.group, view, self._clock.now(), self._runtime.node.group_ids()[:_MOST_SHOWN])
        raise share_not_reached(wanted, ended, states, seen)

    def _states(self, wanted: ShareGroupCondition) -> list[ShareStateView]:
        states = self._runtime.node.share_states(wanted.group, self._clock.now())
        return [each for each in states if wanted.topic in (None, each.topic)]

    def _is_met(self, wanted: ShareGroupCondition) -> bool:
        view = self._runtime.node.describe_group(wanted.group)
        if wanted.members is None and wanted.acquired is None and wanted.available is None:
            return view is not None
        states = self._states(wanted)
        members = 0 if view is None else len(view.members)
        return (
            wanted.members in (None, members)
            and wanted.acquired in (None, _count(states, RecordState.ACQUIRED))
            and wanted.available in (None, _count(states, RecordState.AVAILABLE))
        )

    def _check_topic(self, topic: str) -> None:
        topics = [each.topic for each in self._runtime.node.describe_topics(self._clock.now())]
        if topic not in topics:
            raise unknown("topic", topic, topics)

    def _check_partition(self, which: SharePartitionQuery) -> None:
        partitions = {each.topic: each.partitions for each in self._runtime.node.describe_topics(self._clock.now())}
        if which.topic not in partitions:
            raise unknown("topic", which.topic, list(partitions))
        if which.partition >= partitions[which.topic]:
            detail = (
                f"topic {which.topic!r} has no partition {which.partition}; expected 0 to {partitions[which.topic] - 1}"
            )
            raise NotFound("unknown-partition", detail)
