"""Share and streams groups as the cluster describes them, and waiting for them.

The records that a share group has in flight are the brokers' own: no request of Kafka's answers them.
"""

from __future__ import annotations

from typing import Final, NoReturn

from rejoin.client.admin.share_groups import ShareGroupAdmin
from rejoin.client.core.errors import CodedError, KafkaError
from rejoin.coordinator.control.errors import NotPossible
from rejoin.coordinator.control.share_groups import ShareGroupCondition, SharePartitionQuery, share_not_reached
from rejoin.coordinator.control.streams_groups import (
    StreamsGroupCondition,
    StreamsGroupQuery,
    as_streams_group,
    streams_not_reached,
)
from rejoin.coordinator.control.waiting import looks
from rejoin.coordinator.core.views import GroupView, ShareStateView, StreamsGroupView
from rejoin.proxy.control.descriptions import UNKNOWN
from rejoin.proxy.control.groups import ASK_MS, ClusterGroups, polled

IN_FLIGHT: Final = (
    "the records that a share group has in flight are its brokers' own, and a real cluster answers no request for "
    "them; wait for members, or count ShareFetch and ShareAcknowledge with requests and rules that observe"
)
LOCKS: Final = "a real cluster lets no test end a lock or release a record, and its share coordinators are its own"
SHUTDOWN: Final = "a proxy sends nothing in the name of an application: close the instances of a real cluster's clients"


def not_answered(group_id: str, error: KafkaError) -> NotPossible:
    """The problem where the cluster does not describe a group."""
    reason = error.error.name if isinstance(error, CodedError) else str(error)
    return NotPossible("not-answered", f"the cluster does not describe group {group_id!r}: {reason}")


class ShareGroupsOfCluster:
    """The share groups of a cluster."""

    def __init__(self, groups: ClusterGroups) -> None:
        self._groups = groups

    async def state(self, which: SharePartitionQuery) -> ShareStateView | None:
        """A share-partition with its start offset, none where the group has none there. Raises :class:`NotPossible`."""
        try:
            found = await self._states(which.group, which.topic, ASK_MS)
        except KafkaError as error:
            raise not_answered(which.group, error) from None
        return next((each for each in found if each.partition == which.partition), None)

    async def wait(self, wanted: ShareGroupCondition) -> list[ShareStateView]:
        """The share-partitions, once the group is as wanted. Raises :class:`ConditionNotReached`."""
        if wanted.acquired is not None or wanted.available is not None:
            raise NotPossible("real-cluster", IN_FLIGHT)

        async def read(timeout_ms: int) -> GroupView | None:
            return await self._groups.describe(wanted.group, timeout_ms)

        def is_met(view: GroupView | None) -> bool:
            members = 0 if view is None else len(view.members)
            return view is not None if wanted.members is None else wanted.members == members

        view, ended, problem = await polled(read, is_met, wanted.timeout_ms)
        if ended:
            raise share_not_reached(wanted, ended, (), problem or looks(wanted.group, view, UNKNOWN))
        try:
            return await self._states(wanted.group, wanted.topic, ASK_MS)
        except CodedError:
            # A group that is not of this kind, or one without a start offset.
            return []

    async def _states(self, group_id: str, topic: str | None, timeout_ms: int) -> list[ShareStateView]:
        found = await ShareGroupAdmin(self._groups.transport, timeout_ms).start_offsets(group_id)
        return [
            ShareStateView(
                group_id=group_id,
                topic=each.topic,
                partition=each.partition,
                state="",
                start_offset=UNKNOWN if start.offset is None else start.offset,
                end_offset=UNKNOWN,
                state_epoch=UNKNOWN,
                leader_epoch=UNKNOWN if start.leader_epoch is None else start.leader_epoch,
                delivery_complete_count=UNKNOWN,
                records=[],
            )
            for each, start in found.items()
            if topic in (None, each.topic)
        ]

    def expire_lock(self, _: object) -> NoReturn:
        """Refuse."""
        raise NotPossible("real-cluster", LOCKS)

    release = fail_persister = expire_lock


class StreamsGroupsOfCluster:
    """The streams groups of a cluster."""

    def __init__(self, groups: ClusterGroups) -> None:
        self._groups = groups

    async def state(self, which: StreamsGroupQuery) -> StreamsGroupView | None:
        """A group with its tasks, or none. Raises :class:`NotPossible`, for a group of another kind too."""
        try:
            return as_streams_group(which.group, await self._groups.describe(which.group))
        except KafkaError as error:
            raise not_answered(which.group, error) from None

    async def wait(self, wanted: StreamsGroupCondition) -> StreamsGroupView:
        """The group, once it is as wanted. Raises :class:`ConditionNotReached`."""

        async def read(timeout_ms: int) -> StreamsGroupView | None:
            return as_streams_group(wanted.group, await self._groups.describe(wanted.group, timeout_ms))

        view, ended, problem = await polled(read, wanted.is_met_by, wanted.timeout_ms)
        if ended or view is None:
            raise streams_not_reached(wanted, ended, view, problem or looks(wanted.group, view, UNKNOWN))
        return view

    def shut_down(self, _: object) -> NoReturn:
        """Refuse."""
        raise NotPossible("real-cluster", SHUTDOWN)
