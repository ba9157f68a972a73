"""Share groups: the records that they have in flight."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import NotFound, NotPossible, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.core.inputs import LockExpired
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


class ShareGroupActions:
    """Reads share-partitions past all requests, and ends their locks."""

    def __init__(self, runtime: ControlledRuntime, clock: VirtualClock) -> None:
        self._runtime = runtime
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
        self._runtime.hand_in(LockExpired(which.group, which.topic, which.partition, which.offset))
        after = self.state(which)
        assert after is not None, "a lock that runs out leaves its share-partition in memory"
        return after

    def _check_partition(self, which: SharePartitionQuery) -> None:
        partitions = {each.topic: each.partitions for each in self._runtime.node.describe_topics(self._clock.now())}
        if which.topic not in partitions:
            raise unknown("topic", which.topic, list(partitions))
        if which.partition >= partitions[which.topic]:
            detail = (
                f"topic {which.topic!r} has no partition {which.partition}; expected 0 to {partitions[which.topic] - 1}"
            )
            raise NotFound("unknown-partition", detail)
