"""Share groups of a test: the records that they have in flight."""

from __future__ import annotations

from typing import Literal

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.share_groups import LockKey, PersisterFailure, ShareGroupCondition, SharePartitionQuery
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS
from rejoin.coordinator.core.views import ShareStateView
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class ShareGroupMethods(ControlledCoordinator):
    """The methods for share groups."""

    async def share_state(self, group_id: str, topic: str, partition: int) -> ShareStateView | None:
        """The records that a share group has in flight in a partition, or none before a member fetches from it.

        Neighbours in one state are one of its ``records``, with delivery count, holder and the rest of the lock in ms.
        """

        def read(control: Control) -> ShareStateView | None:
            return control.share_groups.state(SharePartitionQuery(group=group_id, topic=topic, partition=partition))

        return await self._ask(read)

    async def expire_lock(self, group_id: str, topic: str, partition: int, offset: int) -> ShareStateView:
        """Let the lock of a record run out now, as if its member needed too long.

        The lock of a batch in one state ends for all of its records. Returns the share-partition after that.
        """

        def expire(control: Control) -> ShareStateView:
            which = LockKey(group=group_id, topic=topic, partition=partition, offset=offset)
            return control.share_groups.expire_lock(which)

        return await self._ask(expire)

    async def release_record(self, group_id: str, topic: str, partition: int, offset: int) -> ShareStateView:
        """Release a record for the member that holds it, which keeps its session.

        Returns the share-partition after that.
        """

        def release(control: Control) -> ShareStateView:
            which = LockKey(group=group_id, topic=topic, partition=partition, offset=offset)
            return control.share_groups.release(which)

        return await self._ask(release)

    async def wait_for_share_group(
        self,
        group_id: str,
        members: int | None = None,
        acquired: int | None = None,
        available: int | None = None,
        topic: str | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> list[ShareStateView]:
        """Wait for so many members, records that they hold, and records that wait for their next delivery.

        Without conditions, wait until the group exists. Returns the share-partitions that have records in flight, of
        one topic if it is given. Raises NotReached with what is in flight.
        """

        async def wait(control: Control) -> list[ShareStateView]:
            wanted = ShareGroupCondition(
                group=group_id,
                members=members,
                acquired=acquired,
                available=available,
                topic=topic,
                timeout_ms=timeout_ms,
            )
            return await control.share_groups.wait(wanted)

        return await self.do(wait)

    async def fail_persister(
        self,
        group_id: str,
        operation: Literal["initialize", "read", "write", "delete", "summary"] = "write",
        *,
        error: str | int | None = None,
        count: int = 1,
    ) -> None:
        """Let so many requests to the share coordinator fail with this error, or without an answer.

        A ``count`` of -1 is for all from now on, 0 for no more. Each broker counts its own, those to itself too.
        """

        def fail(control: Control) -> None:
            fields = {"group": group_id, "operation": operation, "error": error, "count": count}
            control.share_groups.fail_persister(PersisterFailure.model_validate(fields))

        await self._ask(fail)
