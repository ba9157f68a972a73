"""Streams groups of a test: who runs which task of a Kafka Streams application."""

from __future__ import annotations

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.streams_groups import ShutdownRequest, StreamsGroupCondition, StreamsGroupQuery
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS
from rejoin.coordinator.core.views import StreamsGroupView
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class StreamsGroupMethods(ControlledCoordinator):
    """The methods for streams groups."""

    async def streams_state(self, group_id: str) -> StreamsGroupView | None:
        """A streams group as its coordinator sees it, or none. Each of its ``tasks`` has the ids of its members."""

        def read(control: Control) -> StreamsGroupView | None:
            return control.streams_groups.state(StreamsGroupQuery(group=group_id))

        return await self._ask(read)

    async def wait_for_streams_group(
        self,
        group_id: str,
        state: str | None = None,
        ready: bool | None = None,
        members: int | None = None,
        tasks: int | None = None,
        standbys: int | None = None,
        member: str | None = None,
        epoch: int | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> StreamsGroupView:
        """Wait for a state, so many members, tasks that a member runs, and standbys.

        With ``member``, an id, client id or process id, its tasks alone count. Without conditions, wait until the group
        exists. Raises NotReached with the tasks as they are.
        """

        async def wait(control: Control) -> StreamsGroupView:
            wanted = StreamsGroupCondition(
                group=group_id,
                state=state,
                ready=ready,
                members=members,
                tasks=tasks,
                standbys=standbys,
                member=member,
                epoch=epoch,
                timeout_ms=timeout_ms,
            )
            return await control.streams_groups.wait(wanted)

        return await self.do(wait)

    async def shut_down_application(self, group_id: str, requester: str = "test") -> StreamsGroupView:
        """Ask for the end of an application: every heartbeat is answered with that from now on.

        The requester is no member; clients name it in their logs. Returns the group.
        """

        async def shut_down(control: Control) -> StreamsGroupView:
            return await control.streams_groups.shut_down(ShutdownRequest(group=group_id, requester=requester))

        return await self.do(shut_down)
