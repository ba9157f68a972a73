"""Share groups: the records that they have in flight."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import NotFound, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.core.views import ShareStateView


class SharePartitionQuery(Body):
    """A share-partition: a partition, as a share group sees it."""

    group: str = Field(description="the group's id")
    topic: str = Field(description="the topic's name")
    partition: int = Field(ge=0)


class ShareGroups:
    """Reads share-partitions past all requests."""

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

    def _check_partition(self, which: SharePartitionQuery) -> None:
        partitions = {each.topic: each.partitions for each in self._runtime.node.describe_topics(self._clock.now())}
        if which.topic not in partitions:
            raise unknown("topic", which.topic, list(partitions))
        if which.partition >= partitions[which.topic]:
            detail = (
                f"topic {which.topic!r} has no partition {which.partition}; expected 0 to {partitions[which.topic] - 1}"
            )
            raise NotFound("unknown-partition", detail)
