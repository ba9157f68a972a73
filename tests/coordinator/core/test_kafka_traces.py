"""250 random sequences that Kafka's own coordinator played replay here with the same replies, state and timers."""

from __future__ import annotations

import gzip
import json
from collections import deque
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Elapsed,
    Elected,
    Token,
)
from rejoin.coordinator.core.node import Node
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import GroupRecord, offsets_partition
from tests import paths
from tests.coordinator.core.driver import Driver
from tests.suite.cases import for_each

TRACES = paths.GOLDEN / "coordinator.jsonl.gz"
PARTITION = offsets_partition(partition_for("g", 50))
UNREADABLE = b"\x00"


def traces() -> list[dict[str, Any]]:
    with gzip.open(TRACES, "rt") as lines:
        return [json.loads(line) for line in lines]


class Replay(Driver):
    """One sequence, step by step: what comes out, and how the group looks."""

    def __init__(self, trace: dict[str, Any]) -> None:
        settings = Settings(
            group_initial_rebalance_delay_ms=trace["initial_rebalance_delay_ms"],
            group_max_size=trace["group_max_size"],
            group_min_session_timeout_ms=0,
            emulator_member_order="hashmap",
            offsets_retention_check_interval_ms=10**12,
            transaction_partition_verification_enable=False,
        )
        self.new_ids: deque[str] = deque()
        super().__init__(Node(settings, self._new_id))
        self.requests = 0
        self.syncs = 0
        self.append_mode = "ok"
        self.append_error = ErrorCode.NONE
        self.out: list[dict[str, Any]] = []
        self.group_records = 0
        self.step(ClusterSeen((Broker(1, "localhost", 9095),), {PARTITION: 1}))
        self.step(Elected(PARTITION, 0))
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
        self.new_ids.append("00000000-0000-0000-0000-000000000000")
        self.receive("topic", CreateTopicsRequest(topics=(topic,)), 7)

    def _new_id(self) -> str:
        return self.new_ids.popleft()

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Append):
            groups = sum(isinstance(record, GroupRecord) for record in effect.records)
            self.group_records += groups
            self.logs.defers_appends = bool(groups) and self.append_mode == "hold"
            self.logs.error = self.append_error if groups and self.append_mode == "fail" else None
        super().carry_out(effect)

    def on_reply(self, token: Token, response: Response) -> None:
        match response:
            case JoinGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR):
                self.out.append({"kind": "reply", "error": -1})
            case JoinGroupResponse() as answer:
                self.out.append(
                    {
                        "kind": "join_reply",
                        "request": token,
                        "error": int(answer.error_code),
                        "generation": answer.generation_id,
                        "protocol_type": answer.protocol_type,
                        "protocol_name": answer.protocol_name,
                        "leader": answer.leader,
                        "skip_assignment": answer.skip_assignment,
                        "member_id": answer.member_id,
                        "members": [
                            {"member_id": member.member_id, "group_instance_id": member.group_instance_id}
                            for member in answer.members
                        ],
                    }
                )
            case SyncGroupResponse() as answer:
                self.out.append(
                    {
                        "kind": "sync_reply",
                        "request": token,
                        "error": int(answer.error_code),
                        "protocol_type": answer.protocol_type,
                        "protocol_name": answer.protocol_name,
                        "assignment": answer.assignment.decode(),
                    }
                )
            case LeaveGroupResponse() as answer if self.node.group("g") is None:
                # The traces have what the group manager throws, which the layer above turns into a result per member.
                assert {member.error_code for member in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}
                self.out.append({"kind": "reply", "error": 25})
            case LeaveGroupResponse() as answer:
                members = [{"member_id": m.member_id, "error": int(m.error_code)} for m in answer.members]
                self.out.append({"kind": "leave_reply", "error": int(answer.error_code), "members": members})
            case OffsetCommitResponse() | TxnOffsetCommitResponse() as answer:
                self.out.append({"kind": "reply", "error": int(answer.topics[0].partitions[0].error_code)})
            case HeartbeatResponse() as answer:
                self.out.append({"kind": "reply", "error": int(answer.error_code)})
            case answer:
                assert token == "topic", f"the traces have no {answer}"

    def do(self, step: dict[str, Any]) -> None:
        self.out = []
        self.group_records = 0
        what = step["do"]
        if step["new_member_id"] is not None:
            prefix = what["group_instance_id"] or "client"
            self.new_ids.append(step["new_member_id"].removeprefix(f"{prefix}-"))
        getattr(self, f"do_{what['op']}")(what)
        self.new_ids.clear()

    def do_sleep(self, what: dict[str, Any]) -> None:
        self.now += what["ms"]
        self.step(Elapsed())

    def do_join(self, what: dict[str, Any]) -> None:
        protocols = tuple(
            JoinGroupRequestProtocol(
                name=protocol["name"],
                metadata=UNREADABLE
                if protocol["topics"] is None
                else encode_subscription(Subscription(topics=tuple(protocol["topics"]))),
            )
            for protocol in what["protocols"]
        )
        request = JoinGroupRequest(
            group_id="g",
            member_id=what["member_id"],
            group_instance_id=what["group_instance_id"],
            session_timeout_ms=what["session_timeout_ms"],
            rebalance_timeout_ms=what["rebalance_timeout_ms"],
            protocol_type=what["protocol_type"],
            protocols=protocols,
        )
        number = self.requests
        self.requests += 1
        self.receive(number, request, max(what["version"], 1))

    def do_sync(self, what: dict[str, Any]) -> None:
        number = self.requests
        self.requests += 1
        request = SyncGroupRequest(
            group_id="g",
            generation_id=what["generation"],
            member_id=what["member_id"],
            group_instance_id=what["group_instance_id"],
            protocol_type=what["protocol_type"],
            protocol_name=what["protocol_name"],
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=f"A{number}{member_id[:3]}".encode())
                for member_id in what["assigned_members"]
            ),
        )
        self.receive(number, request, 4)

    def do_heartbeat(self, what: dict[str, Any]) -> None:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=what["generation"],
            member_id=what["member_id"],
            group_instance_id=what["group_instance_id"],
        )
        self.receive("heartbeat", request, 4)

    def do_leave(self, what: dict[str, Any]) -> None:
        members = tuple(
            MemberIdentity(member_id=member["member_id"], group_instance_id=member["group_instance_id"])
            for member in what["members"]
        )
        self.receive("leave", LeaveGroupRequest(group_id="g", members=members), 5)

    def do_offset_commit(self, what: dict[str, Any]) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=what["generation"],
            member_id=what["member_id"],
            group_instance_id=what["group_instance_id"],
            topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )
        self.receive("commit", request, what["version"])

    def do_txn_offset_commit(self, what: dict[str, Any]) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            generation_id_or_member_epoch=what["generation"],
            member_id=what["member_id"],
            group_instance_id=what["group_instance_id"],
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )
        self.receive("commit", request, 3)

    def do_append_mode(self, what: dict[str, Any]) -> None:
        self.append_mode = what["mode"]
        self.append_error = ErrorCode[what["error"] or "NONE"]

    def do_append_done(self, what: dict[str, Any]) -> None:
        if self.logs.pending_appends:
            self.logs.end_append(ErrorCode[what["error"] or "NONE"])

    def shown_group(self) -> dict[str, Any] | None:
        group, snapshot = self.node.describe_group("g"), self.node.group("g")
        if group is None or snapshot is None:
            return None
        return {
            "state": group.state,
            "previous_state": group.previous_state,
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "leader": group.leader,
            "new_member_added": group.new_member_added,
            "subscribed_topics": group.subscribed_topics,
            "pending_join": len(group.pending_members),
            "pending_sync": sorted(group.pending_sync),
            "members": [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "session_timeout": member.session_timeout_ms,
                    "rebalance_timeout": member.rebalance_timeout_ms,
                    "is_new": member.is_new,
                    "awaiting_join": member.awaiting_join,
                    "awaiting_sync": member.awaiting_sync,
                    "assignment": snapshot.members[member.member_id].assignment.decode(),
                    "protocols": member.protocols,
                }
                for member in group.members
            ],
        }

    def timers(self) -> dict[str, int]:
        names = {"session": "heartbeat-g-{}", "join": "join-g", "sync": "sync-g"}
        return {
            names[timer.timer].format(timer.member_id): timer.at - self.now
            for timer in self.node.timers()
            if timer.timer in names
        }


def normal(out: list[dict[str, Any]]) -> list[str]:
    """The replies of a step, in any order; answers that only differ in how no protocol name is written are alike."""
    replies = []
    for reply in out:
        if reply["kind"] in ("timer", "group_records"):
            continue
        shown = {key: value or None for key, value in reply.items()} | {"kind": reply["kind"]}
        replies.append(json.dumps(shown, sort_keys=True))
    return sorted(replies)


def answered(trace: dict[str, Any]) -> set[int]:
    """The requests that Kafka answers at some time. It leaves those waiting that a newer one of the member replaced."""
    return {out["request"] for step in trace["steps"] for out in step["out"] if "request" in out}


def without_leaks(out: list[dict[str, Any]], answered_by_kafka: set[int]) -> list[dict[str, Any]]:
    """Our replies but for those that Kafka never sends: a request is never left waiting here."""
    extra = [reply for reply in out if "request" in reply and reply["request"] not in answered_by_kafka]
    assert all(reply["error"] in (25, 27) for reply in extra), "only replaced and removed ones are answered in addition"
    return [reply for reply in out if reply not in extra]


@for_each("trace", traces(), ids=lambda trace: str(trace["id"]), parts=2)
def test_replays_as_on_kafka(trace: dict[str, Any]) -> None:
    replay = Replay(trace)
    answered_by_kafka = answered(trace)
    for number, step in enumerate(trace["steps"]):
        replay.do(step)
        where = f"{trace['id']} step {number}: {step['do']}"
        assert normal(without_leaks(replay.out, answered_by_kafka)) == normal(step["out"]), where
        assert replay.shown_group() == step["group"], where
        assert replay.timers() == step["timers"], where
        written = [entry["n"] for entry in step["out"] if entry["kind"] == "group_records"]
        written += [entry["group_records"] for entry in step["out"] if entry["kind"] == "timer"]
        if written:
            assert replay.group_records == sum(written), where
