"""The coordinator of a test, and everything that a test can do with it, as ``async`` methods.

The methods may be awaited on any event loop: where it is not the coordinator's own, they hop over to it and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rejoin.coordinator.control.admin_actions import GroupConfigs, MemberKey, PartitionKey, SnapshotKey
from rejoin.coordinator.control.advertising import AdvertisedAddress
from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, GroupCondition
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.pending_reply import NoReply
from rejoin.coordinator.testing.access.methods import AccessMethods
from rejoin.coordinator.testing.arguments import check_call, check_type
from rejoin.coordinator.testing.brokers import BrokerMethods
from rejoin.coordinator.testing.calls import watch_calls
from rejoin.coordinator.testing.evidence import EvidenceMethods
from rejoin.coordinator.testing.faults import FaultMethods
from rejoin.coordinator.testing.groups.share_groups import ShareGroupMethods
from rejoin.coordinator.testing.groups.streams_groups import StreamsGroupMethods
from rejoin.coordinator.testing.results import ClockAdvance, NoAnswer, hides_traceback
from rejoin.coordinator.testing.topics import TopicMethods
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


@watch_calls
class GroupCoordinator(
    AccessMethods, BrokerMethods, EvidenceMethods, FaultMethods, ShareGroupMethods, StreamsGroupMethods, TopicMethods
):
    """A running coordinator. Its ``async`` methods must be awaited: a call that is not is an error at the end."""

    # --- asking

    async def call(
        self, request: Request, version: int | None = None, client_id: str = "test", broker: int | None = None
    ) -> Response:
        """One of Kafka's requests, through the fault rules but without HTTP. Raises NoAnswer where it gets none.

        Of several brokers, the one that is named gets it, or else the one that leads what the request is about.
        """
        check_call(request, version, client_id, broker)
        api = BY_REQUEST[type(request)]
        wanted = api.default_version if version is None else version
        if not api.supports(wanted):
            raise ValueError(f"{api.name} has versions {api.min_version} to {api.max_version}, not {wanted}")
        request.check_version(wanted)

        async def ask(control: Control) -> Response:
            try:
                pending = control.submit(request, Context(wanted, client_id), broker)
                answer = await pending.answer()
                if pending.delivery is not None and pending.delivery.is_cut:
                    raise NoReply
            except NoReply:
                raise NoAnswer(f"{api.name} of {client_id!r} got no answer") from None
            if answer is None:
                raise NoAnswer(f"the coordinator failed over a {api.name}")
            return answer

        return await self.do(ask)

    async def group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator sees it, or none."""
        check_type("group_id", group_id, str)
        return await self._ask(lambda control: control.describe_group(group_id))

    async def wait_for_group(
        self,
        group_id: str,
        state: str | None = None,
        members: int | None = None,
        assigned: int | None = None,
        generation: int | None = None,
        waiting: int | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> GroupView | None:
        """Wait for a group in this state, and return it; without conditions, wait until it exists.

        Raises NotReached with the last state of the group. Returns None if state="Dead" is met by a group that does not
        exist; no other condition is.
        """

        async def wait(control: Control) -> GroupView | None:
            wanted = GroupCondition(
                group=group_id,
                state=state,
                members=members,
                assigned=assigned,
                generation=generation,
                waiting=waiting,
                timeout_ms=timeout_ms,
            )
            return await control.groups.wait(wanted)

        return await self.do(wait)

    # --- the clock

    async def advance(self, millis: int, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass. ``settle_ms`` is real time for clients to react, whenever something fired."""
        return await self._advance(advance_ms=millis, settle_ms=settle_ms)

    async def advance_to_next(self, at_most_ms: int = 86_400_000) -> ClockAdvance:
        """Let time pass until a timer fires."""
        return await self._advance(until="next", at_most_ms=at_most_ms)

    async def advance_until_idle(self, at_most_ms: int = 86_400_000, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass until no timer is left but the look at old offsets."""
        return await self._advance(until="idle", at_most_ms=at_most_ms, settle_ms=settle_ms)

    async def _advance(self, **how: Any) -> ClockAdvance:
        async def advance(control: Control) -> ClockAdvance:
            return ClockAdvance.read(await control.clock_driver.advance(Advance(**how)))

        return await self.do(advance)

    # --- what an administrator or a failure does

    async def expire(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Let a member's session run out now; returns its id."""

        def expire(control: Control) -> str:
            which = MemberKey(group=group_id, member=member, instance=instance, client_id=client_id)
            return str(control.actions.expire(which)["member"])

        return await self._ask(expire)

    async def kick(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Remove a member as an administrator does; returns its id."""

        async def kick(control: Control) -> str:
            which = MemberKey(group=group_id, member=member, instance=instance, client_id=client_id)
            return str((await control.actions.kick(which))["member"])

        return await self.do(kick)

    async def set_group(self, group_id: str, configs: Mapping[str, str | int | bool | None]) -> None:
        """Change settings of a group, by Kafka's names; None sets the broker's default again.

        The group need not exist yet. Raises OperationRefused for what no group can have.
        """

        async def set_group(control: Control) -> None:
            await control.actions.set_group(GroupConfigs(group=group_id, configs=dict(configs)))

        await self.do(set_group)

    async def resign(self, group: str | None = None, partition: int | None = None) -> int:
        """Lose an offsets partition, named by its number or by a group in it; returns its number."""

        def resign(control: Control) -> int:
            return int(control.actions.resign(PartitionKey(partition=partition, group=group))["partition"])

        return await self._ask(resign)

    async def elect(self, group: str | None = None, partition: int | None = None) -> int:
        """Lead an offsets partition, loaded anew from the offsets log; returns its number."""

        def elect(control: Control) -> int:
            return int(control.actions.elect(PartitionKey(partition=partition, group=group))["partition"])

        return await self._ask(elect)

    async def advertise(self, host: str, port: int, listener: str | None = None) -> str:
        """Send clients of a listener to another address; returns the addresses of all listeners, for clients."""

        def advertise(control: Control) -> str:
            return str(
                control.advertise(AdvertisedAddress(host=host, port=port, listener=listener))["bootstrap_servers"]
            )

        return await self._ask(advertise)

    async def snapshot(self) -> str:
        """Keep the whole state; returns the name to restore it by."""
        return await self._ask(lambda control: str(control.actions.snapshot()["snapshot"]))

    async def restore(self, snapshot: str) -> None:
        """Go back to a snapshot, in time too."""
        await self._ask(lambda control: control.actions.restore(SnapshotKey(snapshot=snapshot)))

    async def reset(self) -> None:
        """Begin anew: no groups, no offsets, no rules; topics as at the start."""

        async def reset(control: Control) -> None:
            await control.actions.reset()

        await self.do(reset)
