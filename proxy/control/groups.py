"""Groups as the cluster has them: asked over connections of the proxy's own, past the fault rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
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
from rejoin.coordinator.core.views import ConsumerGroupView, ConsumerMemberView, GroupView, MemberView, OffsetView
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rejoin.protocol.messages.share.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from rejoin.protocol.messages.streams.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from rejoin.proxy.control.recording import ExchangeRecorder

T = TypeVar("T")

POLL_SECONDS: Final = 0.1
"""How often the cluster is asked."""
_LONGEST_ASK_MS: Final = 5_000
UNKNOWN: Final = -1
"""A number that the answers do not have."""

_OTHER_KINDS: Final[tuple[tuple[type[Any], type[Any]], ...]] = (
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    (ShareGroupDescribeRequest, ShareGroupDescribeResponse),
    (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse),
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
                return described.error_code, _classic(described)
            for request, kind in _OTHER_KINDS:
                asked = request(group_ids=(group_id,), include_authorized_operations=False)
                try:
                    other = (await self._ask(asked, kind, to=to)).groups[0]
                except UnsupportedVersionError:
                    continue
                if other.error_code not in _OF_ANOTHER_KIND and other.group_state != "Dead":
                    return other.error_code, _with_epochs(other)
            return ErrorCode.NONE, None

        return await self._at_coordinator(group_id, ask)


class ClusterGroups:
    """Waits for groups of a cluster. Generations of classic groups are those that clients have got, as are waits."""

    def __init__(self, servers: Sequence[str], security: Security, recording: ExchangeRecorder) -> None:
        self._transport = KafkaTransport(servers, security=security)
        self._recording = recording

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def describe(self, group_id: str, timeout_ms: int = _LONGEST_ASK_MS) -> GroupView | None:
        """The group as its coordinator shows it, or none. Raises KafkaError."""
        view = await GroupReader(self._transport, timeout_ms).view(group_id)
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

        view, ended, problem = await _polled(read, wanted.is_met_by, wanted.timeout_ms)
        if ended:
            raise not_reached(wanted, ended, view, problem or looks(wanted.group, view, UNKNOWN))
        return view

    async def committed(self, group_id: str, timeout_ms: int = _LONGEST_ASK_MS) -> list[OffsetView]:
        """The committed offsets of a group. Raises KafkaError."""
        found = await Admin(self._transport, timeout_ms).committed_with_epochs(group_id)
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

        found, ended, problem = await _polled(read, are_met, wanted.timeout_ms)
        if ended:
            raise not_committed(wanted, ended, found or (), f"; {problem}" if problem else "")
        return found or []


async def _polled(
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


def _classic(described: DescribedGroup) -> GroupView:
    members = [
        MemberView(
            **_member(member, member.group_instance_id),
            protocols=[described.protocol_data] if described.protocol_data else [],
            topics=None,
            assignment=_assignment(member),
        )
        for member in described.members
    ]
    return GroupView(
        **_group(described, members),
        generation=UNKNOWN,
        protocol_type=described.protocol_type or None,
        protocol=described.protocol_data or None,
    )


def _with_epochs(described: Any) -> ConsumerGroupView:
    """A group of one of the newer protocols; tasks of streams groups are partitions by subtopology."""
    members = [
        ConsumerMemberView(
            **_member(member, getattr(member, "instance_id", None)),
            protocols=[],
            topics=list(getattr(member, "subscribed_topic_names", ())),
            assignment=_partitions(member.assignment),
            member_epoch=member.member_epoch,
            previous_member_epoch=UNKNOWN,
            member_state="",
            pending_revocation={},
            target=_partitions(getattr(member, "target_assignment", None)),
            subscribed_regex=getattr(member, "subscribed_topic_regex", None),
            is_classic=getattr(member, "member_type", UNKNOWN) == 0 or getattr(member, "is_classic", False),
        )
        for member in described.members
    ]
    return ConsumerGroupView(
        **_group(described, members),
        generation=described.group_epoch,
        protocol_type=None,
        protocol=getattr(described, "assignor_name", None),
        group_epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
    )


def _member(described: Any, instance: str | None) -> dict[str, Any]:
    return {
        "member_id": described.member_id,
        "group_instance_id": instance,
        "client_id": described.client_id,
        "client_host": described.client_host,
        "session_timeout_ms": UNKNOWN,
        "rebalance_timeout_ms": UNKNOWN,
        "is_leader": False,
        "is_new": False,
        "awaiting_join": False,
        "awaiting_sync": False,
        "session_expires_at": None,
    }


def _group(described: Any, members: Sequence[MemberView]) -> dict[str, Any]:
    return {
        "group_id": described.group_id,
        "partition": UNKNOWN,
        "state": described.group_state,
        "previous_state": "",
        "state_since": UNKNOWN,
        "leader": None,
        "members": list(members),
        "pending_members": [],
        "pending_sync": [],
        "subscribed_topics": None,
        "new_member_added": False,
        "rebalance_cause": None,
        "rebalances": UNKNOWN,
        "deadlines": {},
    }


def _assignment(member: DescribedGroupMember) -> dict[str, list[int]] | None:
    if not member.member_assignment:
        return {}
    try:
        found = decode_assignment(member.member_assignment).partitions
    except ValueError:
        return None
    return _by_name((each.topic, each.partition) for each in found)


def _partitions(assignment: Any) -> dict[str, list[int]]:
    if assignment is None:
        return {}
    tasks = getattr(assignment, "active_tasks", None)
    if tasks is not None:
        return {each.subtopology_id: list(each.partitions) for each in tasks}
    return {each.topic_name: list(each.partitions) for each in assignment.topic_partitions}


def _by_name(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
