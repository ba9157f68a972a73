"""Groups as the cluster has them: asked over connections of the proxy's own, past the fault rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Final, TypeVar, cast

from rejoin.client.admin.admin import Admin
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError, KafkaError, UnsupportedVersionError
from rejoin.client.transports.kafka.broker import Security
from rejoin.client.transports.kafka.transport import KafkaTransport
from rejoin.coordinator.control.waiting import (
    GroupCondition,
    OffsetsCondition,
    looks,
    missing,
    not_committed,
    not_reached,
)
from rejoin.coordinator.core.views import ConsumerGroupView, GroupView, MemberView, OffsetView
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.share.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from rejoin.protocol.messages.streams.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from rejoin.proxy.control.descriptions import UNKNOWN, classic_view, share_view, streams_view, view_with_epochs
from rejoin.proxy.control.recording import ExchangeRecorder

T = TypeVar("T")

POLL_SECONDS: Final = 0.1
"""How often the cluster is asked."""
ASK_MS: Final = 5_000
"""How long the cluster has to answer a question."""

_OTHER_KINDS: Final[tuple[tuple[type[Any], type[Any], Callable[[Any], GroupView]], ...]] = (
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, view_with_epochs),
    (ShareGroupDescribeRequest, ShareGroupDescribeResponse, share_view),
    (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, streams_view),
)
_OF_ANOTHER_KIND: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REQUEST}
)


class GroupReader(Admin):
    """An admin client that describes groups of every kind in one form."""

    async def view(self, group_id: str) -> GroupView | None:
        """The group, or none. Raises KafkaError where the cluster does not say."""

        async def ask(to: Endpoint) -> tuple[ErrorCode, GroupView | None]:
            response = await self._ask(DescribeGroupsRequest(groups=(group_id,)), DescribeGroupsResponse, to=to)
            described = response.groups[0]
            if described.error_code is not ErrorCode.GROUP_ID_NOT_FOUND and described.group_state != "Dead":
                return described.error_code, classic_view(described)
            for request, kind, view_of in _OTHER_KINDS:
                asked = request(group_ids=(group_id,), include_authorized_operations=False)
                try:
                    other = (await self._ask(asked, kind, to=to)).groups[0]
                except UnsupportedVersionError:
                    continue
                if other.error_code not in _OF_ANOTHER_KIND and other.group_state != "Dead":
                    return other.error_code, view_of(other)
            return ErrorCode.NONE, None

        return await self._at_coordinator(group_id, ask)


class ClusterGroups:
    """Waits for groups of a cluster. Generations of classic groups are those that clients have got, as are waits."""

    def __init__(self, servers: Sequence[str], security: Security, recording: ExchangeRecorder) -> None:
        self.transport = KafkaTransport(servers, security=security)
        self._recording = recording

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()

    async def describe(self, group_id: str, timeout_ms: int = ASK_MS) -> GroupView | None:
        """The group as its coordinator shows it, or none. Raises KafkaError."""
        view = await GroupReader(self.transport, timeout_ms).view(group_id)
        if view is None or isinstance(view, ConsumerGroupView):
            return view
        generation = self._recording.generations.get(group_id, UNKNOWN)
        return view.model_copy(update={"generation": generation, "members": self._with_waits(view)})

    def _with_waits(self, view: GroupView) -> list[MemberView]:
        """The members, with what waits at the coordinator; a JoinGroup without a member id is of none of them."""
        parked = {
            (type(each).__name__, getattr(each, "member_id", "")) for each in self._recording.parked(view.group_id)
        }
        return [
            member.model_copy(
                update={
                    "awaiting_join": ("JoinGroupRequest", member.member_id) in parked,
                    "awaiting_sync": ("SyncGroupRequest", member.member_id) in parked,
                }
            )
            for member in view.members
        ]

    async def wait(self, wanted: GroupCondition) -> GroupView | None:
        """The group, once it is as wanted. Raises :class:`ConditionNotReached` with how it was then."""

        async def read(timeout_ms: int) -> GroupView | None:
            return await self.describe(wanted.group, timeout_ms)

        view, ended, problem = await polled(read, wanted.is_met_by, wanted.timeout_ms)
        if ended:
            raise not_reached(wanted, ended, view, problem or looks(wanted.group, view, UNKNOWN))
        return view

    async def committed(self, group_id: str, timeout_ms: int = ASK_MS) -> list[OffsetView]:
        """The committed offsets of a group. Raises KafkaError."""
        found = await Admin(self.transport, timeout_ms).committed_with_epochs(group_id)
        return [
            OffsetView(
                topic=key.topic,
                partition=key.partition,
                offset=each.offset,
                leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                committed_at=UNKNOWN,
                log_end_offset=None,
                lag=None,
                lag_ms=None,
                transactional_pending=False,
            )
            for key, each in found.items()
        ]

    async def wait_for_committed(self, wanted: OffsetsCondition) -> list[OffsetView]:
        """The group's committed offsets, once they are as wanted. Raises :class:`ConditionNotReached`."""

        async def read(timeout_ms: int) -> list[OffsetView]:
            return await self.committed(wanted.group, timeout_ms)

        def are_met(offsets: list[OffsetView] | None) -> bool:
            return not missing(wanted, offsets or ())

        found, ended, problem = await polled(read, are_met, wanted.timeout_ms)
        if ended:
            raise not_committed(wanted, ended, found or (), f"; {problem}" if problem else "")
        return found or []


async def polled(
    read: Callable[[int], Awaitable[T]], is_met: Callable[[T], bool], timeout_ms: int
) -> tuple[T | None, str, str]:
    """The value read once it is as wanted; or else the last one, how the wait ended, and why nothing newer is known."""
    until = monotonic() + timeout_ms / 1_000
    found: T | None = None
    problem = "the cluster has not answered"
    while True:
        left_ms = max(round((until - monotonic()) * 1_000), round(POLL_SECONDS * 1_000))
        try:
            async with asyncio.timeout(left_ms / 1_000):
                found = await read(left_ms)
            problem = ""
        except TimeoutError:
            pass
        except KafkaError as error:
            problem = f"asking the cluster ended with {error.error.name if isinstance(error, CodedError) else error}"
        if not problem and is_met(cast(T, found)):
            return found, "", ""
        if monotonic() + POLL_SECONDS > until:
            return found, f"within {timeout_ms} ms", problem
        await asyncio.sleep(POLL_SECONDS)
