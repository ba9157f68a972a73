"""How the words of a transcript become requests: one function a request, which takes what the client remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.types import TopicPartition
from rejoin.transcript.remembered import Remembered

OUTSIDE = "admin"
"""The client that is in no group."""


@dataclass
class Client(Remembered):
    """A member as the transcript knows it: what it remembers of its answers."""

    name: str
    protocol_type: str = "consumer"
    options: dict[str, str] = field(default_factory=dict)
    next_beat: int | None = None
    last_beat: str = ""

    @property
    def instance(self) -> str | None:
        return self.options.get("instance")


# --- reading words


def options(words: list[str]) -> dict[str, str]:
    """The ``key=value`` words."""
    return dict(word.split("=", 1) for word in words if "=" in word and ":" not in word.split("=", 1)[0])


def phrase(text: str | None) -> str | None:
    """Words that stand for a sentence: underscores are spaces, and two are one."""
    return text.replace("__", "\0").replace("_", " ").replace("\0", "_") if text else None


class Mark(NamedTuple):
    """What a ``topic:partition=offset/length`` word says of a partition; ``metadata`` has that length."""

    partition: int
    offset: int
    metadata: str


def by_topic(words: list[str]) -> dict[str, list[Mark]]:
    """The words with a colon, by topic. ``topic:partition`` alone is offset 0, no length is no metadata."""
    found: dict[str, list[Mark]] = {}
    for word in words:
        place, _, value = word.partition("=")
        topic, colon, partition = place.partition(":")
        offset, _, length = value.partition("/")
        if colon:
            found.setdefault(topic, []).append(Mark(int(partition), int(offset or 0), "x" * int(length or 0)))
    return found


def protocols(text: str) -> tuple[JoinGroupRequestProtocol, ...]:
    """``range:t+u,sticky:t``: names with the topics subscribed to; without topics the metadata is unreadable.

    ``none`` is an empty list. A number behind the topics, ``range:t/2``, is in the user data.
    """
    if text == "none":
        return ()
    listed = []
    for entry in text.split(","):
        name, _, topics = entry.partition(":")
        topics, _, number = topics.partition("/")
        user_data = number.encode() or None
        subscription = Subscription(topics=tuple(topics.split("+")), user_data=user_data)
        metadata = encode_subscription(subscription) if topics else b""
        listed.append(JoinGroupRequestProtocol(name=name, metadata=metadata))
    return tuple(listed)


def assignment(text: str) -> bytes:
    """``t:0,1+u:2``: partitions by topic; ``-`` is an assignment of nothing."""
    parts = [] if text == "-" else [part.split(":") for part in text.split("+")]
    partitions = [TopicPartition(topic, int(index)) for topic, indexes in parts for index in indexes.split(",")]
    return encode_assignment(Assignment(partitions=tuple(partitions), user_data=None))


# --- members


def join(group_id: str, client: Client, words: list[str]) -> tuple[JoinGroupRequest, int]:
    """Options stay with the client, but for the id and the reason."""
    once = options(words)
    client.options |= {key: value for key, value in once.items() if key not in ("id", "reason")}
    given = client.options
    version = int(given.get("v", "9"))
    client.protocol_type = given.get("type", "consumer")
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=int(given.get("session", "10000")),
        rebalance_timeout_ms=int(given.get("rebalance", "60000")) if version else -1,
        member_id=once.get("id", client.member_id),
        group_instance_id=client.instance,
        protocol_type=client.protocol_type,
        protocols=protocols(given.get("protocols", "range:t")),
        reason=phrase(once.get("reason")),
    )
    return request, version


def sync(group_id: str, client: Client, words: list[str], clients: dict[str, Client]) -> tuple[SyncGroupRequest, int]:
    """What stands behind ``give`` is the assignment, by name of a client or by ``id:MEMBER``."""
    shares = words[words.index("give") + 1 :] if "give" in words else []
    given = options(words[: len(words) - len(shares)])
    version = int(given.get("v", "5"))
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=int(given.get("generation", client.generation)),
        member_id=given.get("id", client.member_id),
        group_instance_id=given.get("instance", client.instance),
        protocol_type=given.get("type", client.protocol_type) if version >= 5 else None,
        protocol_name=given.get("protocol", client.protocol or "range") if version >= 5 else None,
        assignments=tuple(
            SyncGroupRequestAssignment(
                member_id=who.removeprefix("id:") if who.startswith("id:") else clients[who].member_id,
                assignment=assignment(share),
            )
            for who, share in (word.split("=", 1) for word in shares)
        ),
    )
    return request, version


def beat(group_id: str, client: Client, words: list[str]) -> tuple[HeartbeatRequest, int]:
    given = options(words)
    request = HeartbeatRequest(
        group_id=group_id,
        generation_id=int(given.get("generation", client.generation)),
        member_id=given.get("id", client.member_id),
        group_instance_id=given.get("instance", client.instance),
    )
    return request, 4


def leave(group_id: str, client: Client, words: list[str]) -> tuple[LeaveGroupRequest, int]:
    given = options(words)
    version = int(given.get("v", "5"))
    member_id = given.get("id", client.member_id)
    if version < 3:
        return LeaveGroupRequest(group_id=group_id, member_id=member_id), version
    leaving = MemberIdentity(
        member_id=member_id,
        group_instance_id=given.get("instance", client.instance),
        reason=phrase(given.get("reason")),
    )
    return LeaveGroupRequest(group_id=group_id, members=(leaving,)), version


def leave_together(group_id: str, words: list[str], clients: dict[str, Client]) -> tuple[LeaveGroupRequest, int]:
    """Several at once: names of clients, ``id:MEMBER`` and ``instance:INSTANCE``."""
    identities = []
    for word in words:
        kind, colon, value = word.partition(":")
        if not colon:
            identities.append(MemberIdentity(member_id=clients[word].member_id))
        elif kind == "instance":
            identities.append(MemberIdentity(member_id="", group_instance_id=value))
        else:
            identities.append(MemberIdentity(member_id=value))
    return LeaveGroupRequest(group_id=group_id, members=tuple(identities)), 5


# --- offsets


def commit(group_id: str, client: Client, words: list[str]) -> tuple[OffsetCommitRequest, int]:
    given = options(words)
    version = int(given.get("v", "9"))
    outside = client.name == OUTSIDE
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=int(given.get("generation", -1 if outside else client.generation)),
        member_id=given.get("id", "" if outside else client.member_id),
        group_instance_id=given.get("instance", client.instance),
        retention_time_ms=int(given.get("retention", "-1")),
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=mark.partition,
                        committed_offset=mark.offset,
                        commit_timestamp=int(given.get("timestamp", "-1")),
                        committed_metadata=mark.metadata,
                    )
                    for mark in marks
                ),
            )
            for topic, marks in by_topic(words).items()
        ),
    )
    return request, version


def txn_commit(group_id: str, client: Client, words: list[str]) -> tuple[TxnOffsetCommitRequest, int]:
    given = options(words)
    request = TxnOffsetCommitRequest(
        transactional_id="transfer",
        group_id=group_id,
        producer_id=int(given.get("producer", "7")),
        producer_epoch=0,
        generation_id=int(given.get("generation", client.generation)),
        member_id=given.get("id", client.member_id),
        group_instance_id=given.get("instance", client.instance),
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=mark.partition, committed_offset=mark.offset, committed_metadata=mark.metadata
                    )
                    for mark in marks
                ),
            )
            for topic, marks in by_topic(words).items()
        ),
    )
    return request, int(given.get("v", "5"))


def end_transaction(producer_id: int, committed: bool, offsets_partition: int) -> tuple[WriteTxnMarkersRequest, int]:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=0,
        transaction_result=committed,
        topics=(WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=(offsets_partition,)),),
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=(marker,)), 1


def fetch(group_id: str, words: list[str]) -> tuple[OffsetFetchRequest, int]:
    wanted = tuple(
        OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(mark.partition for mark in marks))
        for topic, marks in by_topic(words).items()
    )
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None if "all" in words else wanted)
    return OffsetFetchRequest(groups=(group,), require_stable="stable" in words), 9


def forget(group_id: str, words: list[str]) -> tuple[OffsetDeleteRequest, int]:
    wanted = tuple(
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=tuple(OffsetDeleteRequestPartition(partition_index=mark.partition) for mark in marks),
        )
        for topic, marks in by_topic(words).items()
    )
    return OffsetDeleteRequest(group_id=group_id, topics=wanted), 0
