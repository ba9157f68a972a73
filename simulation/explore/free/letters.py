"""The alphabet of free clients: requests that a client may send, by name, made of what earlier answers gave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rejoin.protocol.embedded.consumer_protocol import (
    Assignment,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.simulation.explore.free.client import FreeClient

UNKNOWN: Final = "unknown"
"""A member id that no member has."""
SHARED_INSTANCE: Final = "shared"
"""The instance id that all clients may join with."""
PROTOCOL: Final = "range"
FIRST_LEAVE_OF_SEVERAL: Final = 3
"""The first version of LeaveGroup with a list of members."""
AGAIN: Final = "again"
"""The letter of a duplicate."""


class Sent(NamedTuple):
    """A request, with the version that it is sent in."""

    request: Request
    version: int

    def in_version(self, version: int) -> Sent:
        """The request as another version carries it."""
        request = self.request
        if isinstance(request, LeaveGroupRequest) and version < FIRST_LEAVE_OF_SEVERAL:
            member_id = request.member_id or request.members[0].member_id
            request = LeaveGroupRequest(group_id=request.group_id, member_id=member_id)
        return Sent(type(request).from_json(request.to_json(version)), version)


Letter: TypeAlias = Callable[["FreeClient"], Sent | None]
"""Makes a request, or none while the client lacks what the request is made of."""


def _join(
    client: FreeClient, member_id: str, *, version: int = 9, instance: str | None = None, user_data: str = ""
) -> Sent:
    metadata = Subscription(topics=client.topics, user_data=(client.name + user_data).encode())
    request = JoinGroupRequest(
        group_id=client.group_id,
        session_timeout_ms=client.session_timeout_ms,
        rebalance_timeout_ms=client.rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name=PROTOCOL, metadata=encode_subscription(metadata)),),
    )
    return Sent(request, version)


def _join_own(client: FreeClient, user_data: str = "") -> Sent | None:
    if not client.member_id:
        return None
    return _join(client, client.member_id, instance=client.instance_id, user_data=user_data)


def _sync(
    client: FreeClient, member_id: str, generation: int, assignments: tuple[SyncGroupRequestAssignment, ...] = ()
) -> Sent:
    request = SyncGroupRequest(
        group_id=client.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=client.instance_id,
        protocol_type="consumer",
        protocol_name=PROTOCOL,
        assignments=assignments,
    )
    return Sent(request, 5)


def _lead(client: FreeClient) -> Sent | None:
    """Assign partition 0 to the first client among the members, 1 to the second: one member of each gets it."""
    if not client.members:
        return None
    names = sorted({_client_of(metadata) for _, metadata in client.members})
    left = dict(zip(names, range(len(names)), strict=True))
    given = []
    for member_id, metadata in client.members:
        number = left.pop(_client_of(metadata), None)
        partitions = () if number is None else (TopicPartition(client.topics[0], number),)
        assignment = encode_assignment(Assignment(partitions=partitions))
        given.append(SyncGroupRequestAssignment(member_id=member_id, assignment=assignment))
    return _sync(client, client.member_id, client.generation, tuple(given))


def _client_of(metadata: bytes) -> bytes:
    return (decode_subscription(metadata).user_data or b"").rstrip(b"'")


def _heartbeat(client: FreeClient, member_id: str, generation: int) -> Sent:
    request = HeartbeatRequest(
        group_id=client.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=client.instance_id,
    )
    return Sent(request, 4)


def _leave(client: FreeClient, member_id: str, instance: str | None = None) -> Sent:
    member = MemberIdentity(member_id=member_id, group_instance_id=instance)
    return Sent(LeaveGroupRequest(group_id=client.group_id, members=(member,)), 5)


def _commit(client: FreeClient, member_id: str, generation: int, instance: str | None) -> Sent:
    entry = OffsetCommitRequestPartition(partition_index=0, committed_offset=client.number, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=client.group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=(OffsetCommitRequestTopic(name=client.topics[0], partitions=(entry,)),),
    )
    return Sent(request, 9)


def _fetch(client: FreeClient, member_id: str | None, epoch: int) -> Sent:
    topic = OffsetFetchRequestTopics(name=client.topics[0], partition_indexes=(0,))
    group = OffsetFetchRequestGroup(group_id=client.group_id, member_id=member_id, member_epoch=epoch, topics=(topic,))
    return Sent(OffsetFetchRequest(groups=(group,)), 9)


def _beat(
    client: FreeClient, epoch: int, *, owns: bool | None = None, member_id: str = "", instance: str | None = None
) -> Sent:
    """A heartbeat of a consumer group. ``owns``: all that was assigned, or nothing; none: what was said before."""
    joins = epoch == 0
    owned = client.assigned if owns else ()
    request = ConsumerGroupHeartbeatRequest(
        group_id=client.group_id,
        member_id=member_id or client.chosen_id,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=client.rebalance_timeout_ms if joins else -1,
        subscribed_topic_names=client.topics if joins else None,
        topic_partitions=None if owns is None and not joins else owned,
    )
    return Sent(request, 1)


def _if_member(client: FreeClient, sent: Callable[[], Sent]) -> Sent | None:
    return sent() if client.member_id else None


def _if_beating(client: FreeClient, sent: Callable[[], Sent]) -> Sent | None:
    return sent() if client.epoch > 0 else None


CLASSIC: Final[dict[str, Letter]] = {
    "join": lambda who: _join(who, ""),
    "join v3": lambda who: _join(who, "", version=3),
    "join own": _join_own,
    "join own, changed": lambda who: _join_own(who, "'"),
    "join unknown": lambda who: _join(who, UNKNOWN),
    "join static": lambda who: _join(who, "", instance=who.name),
    "join static, shared": lambda who: _join(who, "", instance=SHARED_INSTANCE),
    "sync as leader": _lead,
    "sync": lambda who: _if_member(who, lambda: _sync(who, who.member_id, who.generation)),
    "sync, old": lambda who: _if_member(who, lambda: _sync(who, who.member_id, who.generation - 1)),
    "sync unknown": lambda who: _sync(who, UNKNOWN, who.generation),
    "heartbeat": lambda who: _if_member(who, lambda: _heartbeat(who, who.member_id, who.generation)),
    "heartbeat, old": lambda who: _if_member(who, lambda: _heartbeat(who, who.member_id, who.generation - 1)),
    "heartbeat unknown": lambda who: _heartbeat(who, UNKNOWN, who.generation),
    "leave": lambda who: _if_member(who, lambda: _leave(who, who.member_id)),
    "leave unknown": lambda who: _leave(who, UNKNOWN),
    "leave static": lambda who: _leave(who, "", who.instance_id) if who.instance_id else None,
    "commit": lambda who: _if_member(who, lambda: _commit(who, who.member_id, who.generation, who.instance_id)),
    "commit, old": lambda who: _if_member(
        who, lambda: _commit(who, who.member_id, who.generation - 1, who.instance_id)
    ),
    "commit unknown": lambda who: _commit(who, UNKNOWN, max(0, who.generation), None),
    "commit from outside": lambda who: _commit(who, "", -1, None),
    "fetch": lambda who: _fetch(who, None, -1),
}
"""Letters of the classic protocol. *Old* is the generation before that which the client was answered last."""

CONSUMER: Final[dict[str, Letter]] = {
    "beat 0": lambda who: _beat(who, 0),
    "beat 0, static": lambda who: _beat(who, 0, instance=who.name),
    "beat 0, shared": lambda who: _beat(who, 0, instance=SHARED_INSTANCE),
    "beat": lambda who: _if_beating(who, lambda: _beat(who, who.epoch, instance=who.instance_id)),
    "beat, owns": lambda who: _if_beating(who, lambda: _beat(who, who.epoch, owns=True)),
    "beat, owns nothing": lambda who: _if_beating(who, lambda: _beat(who, who.epoch, owns=False)),
    "beat, old": lambda who: _if_beating(who, lambda: _beat(who, who.epoch - 1) if who.epoch > 1 else _beat(who, 7)),
    "beat, old, owns": lambda who: (
        _if_beating(who, lambda: _beat(who, who.epoch - 1, owns=True)) if who.epoch > 1 else None
    ),
    "beat unknown": lambda who: _beat(who, max(1, who.epoch), member_id=UNKNOWN),
    "beat -1": lambda who: _beat(who, -1, instance=who.instance_id),
    "beat -2": lambda who: _beat(who, -2, instance=who.instance_id or who.name),
    "commit at epoch": lambda who: _if_beating(who, lambda: _commit(who, who.chosen_id, who.epoch, None)),
    "commit at old epoch": lambda who: _if_beating(who, lambda: _commit(who, who.chosen_id, who.epoch - 1, None)),
    "fetch at epoch": lambda who: _if_beating(who, lambda: _fetch(who, who.chosen_id, who.epoch)),
    "fetch at old epoch": lambda who: _if_beating(who, lambda: _fetch(who, who.chosen_id, who.epoch - 1)),
}
"""Letters of the consumer protocol. Epochs and partitions are those that the client was answered last."""

LETTERS: Final[dict[str, Letter]] = {
    **CLASSIC,
    **CONSUMER,
    AGAIN: lambda who: who.last,
}
"""All letters. *Again* is the client's last request once more, on another connection."""
