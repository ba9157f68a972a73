"""What the grammar writes, it reads: a request comes back from its words, in every version."""

from __future__ import annotations

import pytest

from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    OwnedTopicPartitions,
)
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
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
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.types import TopicPartition
from rejoin.transcript.grammar.base import RequestCommand, Scope
from rejoin.transcript.grammar.table import BY_REQUEST, LEAVE, topic_command
from rejoin.transcript.grammar.words import NotExpressible
from rejoin.transcript.members import MemberContext


class Directory:
    """Two members by name."""

    def __init__(self) -> None:
        self.members = {
            "a": MemberContext(name="a", member_id="a-1", generation=3, protocol="range"),
            "b": MemberContext(name="b", member_id="b-2", generation=3, protocol="range"),
        }

    def named(self, name: str) -> MemberContext:
        return self.members[name]

    def name_of(self, member_id: str) -> str | None:
        return next((name for name, member in self.members.items() if member.member_id == member_id), None)


def scope() -> Scope:
    directory = Directory()
    return Scope("g", directory.members["a"], directory, topic_ids={"t": T, "u": U})


def through_words(command: RequestCommand, request: Request, version: int) -> tuple[list[str], Request, int]:
    """The words of a request, and what they are read as by a reader with the same context."""
    words = command.write(request, version, scope())
    reader = topic_command(words) if command.verb == "topic" else command
    return words, *reader.read(words, scope())


def protocol(name: str, *topics: str, user_data: bytes | None = None) -> JoinGroupRequestProtocol:
    subscription = Subscription(topics=topics, user_data=user_data)
    return JoinGroupRequestProtocol(name=name, metadata=encode_subscription(subscription))


def assignment(*partitions: TopicPartition) -> bytes:
    return encode_assignment(Assignment(partitions=partitions, user_data=None))


RANGE = protocol("range", "t")
STICKY = protocol("sticky", "t", "u")


def join(**fields: object) -> JoinGroupRequest:
    usual = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "a-1",
        "protocol_type": "consumer",
        "protocols": (RANGE,),
    }
    return JoinGroupRequest.model_validate(usual | fields)


def sync(**fields: object) -> SyncGroupRequest:
    usual = {"group_id": "g", "generation_id": 3, "member_id": "a-1", "assignments": ()}
    return SyncGroupRequest.model_validate(usual | fields)


def commit(**fields: object) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=5, committed_metadata="xxx")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    usual = {"group_id": "g", "generation_id_or_member_epoch": 3, "member_id": "a-1", "topics": topics}
    return OffsetCommitRequest.model_validate(usual | fields)


T, U = "t".rjust(21, "0") + "A", "u".rjust(21, "0") + "A"
WANTS: dict[str, object] = {
    "member_epoch": 0,
    "subscribed_topic_names": ("t", "u"),
    "server_assignor": "range",
    "rebalance_timeout_ms": 60_000,
    "topic_partitions": (),
}
OWNED = (
    OwnedTopicPartitions(topic_id=T, partitions=(0, 2)),
    OwnedTopicPartitions(topic_id=U, partitions=(1,)),
)


def heartbeat(**fields: object) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest.model_validate({"group_id": "g", "member_id": "a-1"} | fields)


def commit_by_id() -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=5, committed_metadata="")
    return commit(topics=(OffsetCommitRequestTopic(topic_id=T, partitions=(partition,)),))


SHARES = (
    SyncGroupRequestAssignment(member_id="b-2", assignment=assignment(TopicPartition("t", 0), TopicPartition("u", 2))),
    SyncGroupRequestAssignment(member_id="old-9", assignment=assignment()),
)
TXN = TxnOffsetCommitRequestTopic(
    name="t",
    partitions=(TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata=""),),
)
WRITTEN: list[tuple[Request, int, str]] = [
    (join(), 9, ""),
    (join(session_timeout_ms=6_000, member_id=""), 9, "id= session=6000"),
    (join(protocols=(RANGE, STICKY), reason="a b_c"), 9, "protocols=range:t,sticky:t+u reason=a_b__c"),
    (join(protocols=()), 9, "protocols=none"),
    (join(protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),)), 9, "protocols=range"),
    (join(group_instance_id="i-1"), 5, "v=5 instance=i-1"),
    (join(rebalance_timeout_ms=-1), 0, "v=0"),
    (sync(protocol_type="consumer", protocol_name="range"), 5, ""),
    (sync(protocol_type="connect", protocol_name=None), 5, "protocol= type=connect"),
    (sync(generation_id=2), 3, "generation=2 v=3"),
    (
        sync(protocol_type="consumer", protocol_name="range", assignments=SHARES),
        5,
        "give b=t:0+u:2 id:old-9=-",
    ),
    (HeartbeatRequest(group_id="g", generation_id=3, member_id="a-1"), 4, ""),
    (
        HeartbeatRequest(group_id="g", generation_id=9, member_id="who", group_instance_id="i"),
        4,
        "id=who generation=9 instance=i",
    ),
    (
        LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="b-2"), MemberIdentity(member_id="x"))),
        5,
        "b id:x",
    ),
    (
        LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="", group_instance_id="i"),)),
        5,
        "instance:i",
    ),
    (commit(), 9, "t:1=5/3"),
    (commit(member_id="", generation_id_or_member_epoch=-1), 9, "t:1=5/3 id= generation=-1"),
    (commit(retention_time_ms=60_000), 2, "t:1=5/3 v=2 retention=60000"),
    (
        TxnOffsetCommitRequest(
            transactional_id="transfer",
            group_id="g",
            producer_id=8,
            producer_epoch=0,
            generation_id_or_member_epoch=3,
            member_id="a-1",
            topics=(TXN,),
        ),
        4,
        "t:0=9 producer=8",
    ),
    (
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0, 2)),)
                ),
            ),
            require_stable=True,
        ),
        9,
        "stable t:0 t:2",
    ),
    (OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),)), 9, "all"),
    (
        OffsetDeleteRequest(
            group_id="g",
            topics=(OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=4),)),),
        ),
        0,
        "t:4",
    ),
    (heartbeat(member_epoch=3), 1, "epoch=3"),
    (heartbeat(**WANTS), 1, "names=t+u assignor=range"),
    (
        heartbeat(member_epoch=0, subscribed_topic_names=(), subscribed_topic_regex="t.*", rebalance_timeout_ms=-1),
        1,
        "owns=null names=none regex=t.* timeout=-1",
    ),
    (heartbeat(member_epoch=2, topic_partitions=OWNED), 1, "owns=t:0,2+u:1 epoch=2"),
    (heartbeat(member_epoch=2, topic_partitions=(), subscribed_topic_regex=""), 1, "owns=- epoch=2 regex=none"),
    (heartbeat(member_id="", member_epoch=-2, instance_id="i", rack_id="r"), 0, "id= epoch=-2 v=0 instance=i rack=r"),
    (ConsumerGroupDescribeRequest(group_ids=("g", "h"), include_authorized_operations=False), 0, "v=0 g h"),
    (commit_by_id(), 10, "t:1=5 v=10"),
    (ListGroupsRequest(states_filter=("Stable", "Empty"), types_filter=("classic",)), 5, "Stable Empty types=classic"),
    (ListGroupsRequest(states_filter=(), types_filter=()), 5, ""),
    (DescribeGroupsRequest(groups=("g", "h"), include_authorized_operations=False), 6, "v=6 g h"),
    (DeleteGroupsRequest(groups_names=("g", "h")), 2, "g h"),
    (
        CreateTopicsRequest(
            topics=(CreatableTopic(name="t", num_partitions=3, replication_factor=1, assignments=(), configs=()),)
        ),
        7,
        "t 3",
    ),
    (
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=5, assignments=None),), timeout_ms=1_000, validate_only=False
        ),
        3,
        "t to 5",
    ),
    (
        DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id="A" * 22),), timeout_ms=1_000),
        6,
        "t gone",
    ),
]


@pytest.mark.parametrize(("request_", "version", "words"), WRITTEN, ids=lambda value: str(value)[:40])
def test_a_request_comes_back_from_its_words(request_: Request, version: int, words: str) -> None:
    command = BY_REQUEST[type(request_)]
    assert through_words(command, request_, version) == (words.split(), request_, version)


@pytest.mark.parametrize("version", [1, 3, 5])
def test_a_member_leaves_in_every_version(version: int) -> None:
    leaving = LeaveGroupRequest(group_id="g", member_id="a-1")
    if version >= 3:
        leaving = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="a-1", reason="done"),))
    words = {1: ["v=1"], 3: ["v=3", "reason=done"], 5: ["reason=done"]}[version]
    assert through_words(LEAVE, leaving, version) == (words, leaving, version)


def test_an_option_that_stays_is_written_once() -> None:
    known = scope()
    command = BY_REQUEST[JoinGroupRequest]
    assert command.write(join(session_timeout_ms=6_000), 9, known) == ["session=6000"]
    assert command.write(join(session_timeout_ms=6_000), 9, known) == []
    assert command.write(join(), 9, known) == ["session=10000"]


def test_other_metadata_for_the_same_topics_has_a_number() -> None:
    known = scope()
    command = BY_REQUEST[JoinGroupRequest]
    changed = join(protocols=(protocol("range", "t", user_data=b"owned"),))
    assert command.write(join(), 9, known) == []
    assert command.write(changed, 9, known) == ["protocols=range:t/1"]
    assert command.write(join(), 9, known) == ["protocols=range:t"]


@pytest.mark.parametrize(
    ("request_", "version", "why"),
    [
        (join(member_id="two words"), 9, "'two words' cannot be a word"),
        (commit(topics=(OffsetCommitRequestTopic(name="a b", partitions=commit().topics[0].partitions),)), 9, "'a b'"),
        (ListGroupsRequest(states_filter=(), types_filter=("classic", "consumer")), 5, "several types"),
        (LeaveGroupRequest(group_id="g", member_id="x"), 2, "an old version"),
        (
            heartbeat(topic_partitions=(OwnedTopicPartitions(topic_id="A" * 22, partitions=(0,)),), member_epoch=1),
            1,
            "no topic with the id A+ was created",
        ),
        (sync(assignments=(SyncGroupRequestAssignment(member_id="b-2", assignment=b"?"),)), 3, "cannot be read"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_no_command_stands_for_is_refused(request_: Request, version: int, why: str) -> None:
    with pytest.raises(NotExpressible, match=why):
        BY_REQUEST[type(request_)].write(request_, version, scope())
