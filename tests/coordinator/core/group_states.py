"""Groups that are brought into each state, the requests that they get, and nodes that refuse them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsResponse
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode, commit, join, protocols

CHANGED = protocols("range", topics=("t", "u"))
FOREIGN = protocols("sticky")


@dataclass
class Scene:
    """A group in some state, of a leader, a follower and a static member, and what requests need to know of them."""

    driven: DrivenNode
    leader: str = "unknown-1"
    follower: str = "unknown-2"
    static: str = "unknown-3"
    pending: str = ""

    @property
    def generation(self) -> int:
        assert self.driven.group is not None
        return self.driven.group.generation

    def join_again(self, member_ids: list[str]) -> None:
        """The first comes with another subscription, so that there is a rebalance for each member."""
        for number, member_id in enumerate(member_ids):
            listed = protocols("range") if number else CHANGED
            self.driven.send(join(member_id=member_id, protocols=listed), 9)

    def hand_out_an_id(self) -> None:
        self.pending = self.driven.ask(join(), 9).member_id


def bring(state: str, missing: str, with_pending_id: bool) -> Scene:
    """A group in this state. ``missing`` is the member that the join phase of ``LastOne`` waits for, if it is one."""
    driven = DrivenNode()
    scene = Scene(driven)
    assert error_of(driven.ask(commit(), 9)) is ErrorCode.NONE, "something to fetch"
    if state != "Empty":
        scene.leader = driven.joins(join())
        scene.follower = driven.joins(join())
        scene.static = driven.joins(join(group_instance_id="S"))
    if state not in ("Empty", "Initial"):
        driven.elapse(6_000)
    if state not in ("Empty", "Initial", "Completing"):
        for member_id in (scene.follower, scene.static, scene.leader):
            driven.send(sync(scene, member_id), 5)
    if with_pending_id or (state == "LastOne" and not missing):
        scene.hand_out_an_id()
    if state == "Preparing":
        driven.joins(join())
    if state == "LastOne":
        members = {"leader": scene.leader, "follower": scene.follower, "static": scene.static}
        scene.join_again([member_id for role, member_id in members.items() if role != missing])
    if state == "Dead":
        assert driven.group is not None
        driven.group.state = GroupState.DEAD  # Kafka, too, meets one only in a race
    return scene


def sync(scene: Scene, member_id: str, **given: Any) -> SyncGroupRequest:
    """A SyncGroup with an assignment for every member, which counts if it is the leader's."""
    shares = (scene.leader, scene.follower, scene.static)
    usual: dict[str, Any] = {
        "group_id": GROUP,
        "generation_id": scene.generation,
        "member_id": member_id,
        "assignments": tuple(SyncGroupRequestAssignment(member_id=share, assignment=b"share") for share in shares),
    }
    if given.pop("version", 5) >= 5:
        usual |= {"protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(**(usual | given))


def heartbeat(scene: Scene, member_id: str, **given: Any) -> HeartbeatRequest:
    usual: dict[str, Any] = {"group_id": GROUP, "generation_id": scene.generation, "member_id": member_id}
    return HeartbeatRequest(**(usual | given))


def leave(version: int, member_id: str, instance: str | None = None) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id=GROUP, member_id=member_id)
    return LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=member_id, group_instance_id=instance),))


def committing(scene: Scene, member_id: str, **given: Any) -> OffsetCommitRequest:
    return commit(**({"member_id": member_id, "generation_id_or_member_epoch": scene.generation} | given))


def txn(**given: Any) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    usual: dict[str, Any] = {
        "transactional_id": "x",
        "group_id": GROUP,
        "producer_id": 7,
        "producer_epoch": 0,
        "topics": (TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    }
    return TxnOffsetCommitRequest(**(usual | given))


def fetch(version: int, group_id: str = GROUP) -> OffsetFetchRequest:
    if version < 8:
        wanted = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),)
        return OffsetFetchRequest(group_id=group_id, topics=wanted)
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=topics),))


def delete_offsets(group_id: str = GROUP) -> OffsetDeleteRequest:
    topics = (OffsetDeleteRequestTopic(name=TOPIC, partitions=(OffsetDeleteRequestPartition(partition_index=0),)),)
    return OffsetDeleteRequest(group_id=group_id, topics=topics)


def error_of(response: Any) -> ErrorCode:
    """The one error of a response, wherever it stands."""
    match response:
        case OffsetCommitResponse() | TxnOffsetCommitResponse():
            return response.topics[0].partitions[0].error_code
        case OffsetDeleteResponse(topics=(topic, *_)):
            return topic.partitions[0].error_code
        case LeaveGroupResponse(members=(member, *_)):
            return member.error_code
        case DeleteGroupsResponse():
            return response.results[0].error_code
        case DescribeGroupsResponse():
            return response.groups[0].error_code
    error: ErrorCode = response.error_code
    return error


def refusing_node(state: str) -> DrivenNode:
    """A node that cannot be asked, for one reason."""
    if state == "inactive":
        return DrivenNode(knows_cluster=False, leads=False)
    if state == "denied":
        return DrivenNode(emulator_deny=("User:*:ALL:group=*",))
    driven = DrivenNode(leads=state != "elsewhere")
    if state == "loading":
        driven.logs.defers_reads = True
        driven.elect()
    return driven
