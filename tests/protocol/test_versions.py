"""What each version of a message carries: fields that came, went, must be there or may be null; how bytes travel."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, WrongVersion
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember
from rejoin.protocol.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.registry import APIS, BY_KEY, BY_NAME, BY_PATH, DEFINED

JOIN: dict[str, Any] = {
    "groupId": "g",
    "sessionTimeoutMs": 10_000,
    "memberId": "",
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": ""}],
}
SYNC: dict[str, Any] = {"groupId": "g", "generationId": 1, "memberId": "m", "assignments": []}
BEAT: dict[str, Any] = {"groupId": "g", "generationId": 1, "memberId": "m"}
PARTITION: dict[str, Any] = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
COMMIT: dict[str, Any] = {"groupId": "g", "memberId": "", "topics": [{"name": "t", "partitions": [PARTITION]}]}
TXN: dict[str, Any] = {
    "transactionalId": "x",
    "groupId": "g",
    "producerId": 7,
    "producerEpoch": 0,
    "topics": [],
}
IDENTITY: dict[str, Any] = {"memberId": "m", "groupInstanceId": None}


def commit_with(**of_partition: Any) -> dict[str, Any]:
    return COMMIT | {"topics": [{"name": "t", "partitions": [PARTITION | of_partition]}]}


CARRIED: list[tuple[type[Request], dict[str, Any], str, int, int]] = [
    # message, a request with the field, the field as the refusal names it, first and last version that carries it
    (JoinGroupRequest, JOIN | {"rebalanceTimeoutMs": 1}, "rebalanceTimeoutMs", 1, 9),
    (JoinGroupRequest, JOIN | {"groupInstanceId": "i"}, "groupInstanceId", 5, 9),
    (JoinGroupRequest, JOIN | {"reason": "why"}, "reason", 8, 9),
    (SyncGroupRequest, SYNC | {"groupInstanceId": "i"}, "groupInstanceId", 3, 5),
    (SyncGroupRequest, SYNC | {"protocolType": "consumer"}, "protocolType", 5, 5),
    (SyncGroupRequest, SYNC | {"protocolName": "range"}, "protocolName", 5, 5),
    (HeartbeatRequest, BEAT | {"groupInstanceId": "i"}, "groupInstanceId", 3, 4),
    (LeaveGroupRequest, {"groupId": "g", "memberId": "m"}, "memberId", 0, 2),
    (LeaveGroupRequest, {"groupId": "g", "members": [IDENTITY]}, "members", 3, 5),
    (LeaveGroupRequest, {"groupId": "g", "members": [IDENTITY | {"reason": "why"}]}, "members.0.reason", 5, 5),
    (OffsetCommitRequest, COMMIT | {"generationIdOrMemberEpoch": 1}, "generationIdOrMemberEpoch", 1, 9),
    (OffsetCommitRequest, COMMIT | {"groupInstanceId": "i"}, "groupInstanceId", 7, 9),
    (OffsetCommitRequest, COMMIT | {"retentionTimeMs": 1}, "retentionTimeMs", 2, 4),
    (OffsetCommitRequest, commit_with(commitTimestamp=1), "topics.0.partitions.0.commitTimestamp", 1, 1),
    (OffsetCommitRequest, commit_with(committedLeaderEpoch=1), "topics.0.partitions.0.committedLeaderEpoch", 6, 9),
    (TxnOffsetCommitRequest, TXN | {"generationIdOrMemberEpoch": 1}, "generationIdOrMemberEpoch", 3, 6),
    (TxnOffsetCommitRequest, TXN | {"memberId": "m"}, "memberId", 3, 6),
    (TxnOffsetCommitRequest, TXN | {"groupInstanceId": "i"}, "groupInstanceId", 3, 6),
    (FindCoordinatorRequest, {"key": "g"}, "key", 0, 3),
    (FindCoordinatorRequest, {"coordinatorKeys": ["g"]}, "coordinatorKeys", 4, 6),
    (ListGroupsRequest, {"statesFilter": ["Stable"], "typesFilter": []}, "statesFilter", 4, 5),
    (OffsetFetchRequest, {"groupId": "g", "topics": [], "requireStable": True}, "requireStable", 7, 7),
]


@pytest.mark.parametrize(
    ("message", "body", "field", "first", "last"),
    CARRIED,
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_a_field_is_refused_where_it_is_not_carried(
    message: type[Request], body: dict[str, Any], field: str, first: int, last: int
) -> None:
    api = BY_NAME[message.__name__.removesuffix("Request")]
    text = json.dumps(body)
    for version in range(api.min_version, api.max_version + 1):
        if first <= version <= last:
            message.parse(text, version)
        else:
            with pytest.raises(WrongVersion) as refusal:
                message.parse(text, version)
            assert refusal.value.field in (field, *needed_elsewhere(message))


def needed_elsewhere(message: type[Request]) -> tuple[str, ...]:
    """What other versions of the message must have; its absence may be noticed first."""
    needed = {
        LeaveGroupRequest: ("memberId", "members"),
        FindCoordinatorRequest: ("key", "coordinatorKeys"),
        OffsetFetchRequest: ("groups", "groupId", "topics"),
        OffsetCommitRequest: ("topics.0.topicId", "topics.0.name"),
        ListGroupsRequest: ("typesFilter",),
    }
    return needed.get(message, ())


NEEDED: list[tuple[type[Request], dict[str, Any], str, int]] = [
    # message, a request without the field, the field, a version that must have it
    (LeaveGroupRequest, {"groupId": "g"}, "memberId", 2),
    (LeaveGroupRequest, {"groupId": "g"}, "members", 3),
    (FindCoordinatorRequest, {}, "key", 3),
    (FindCoordinatorRequest, {}, "coordinatorKeys", 4),
    (OffsetFetchRequest, {"topics": []}, "groupId", 7),
    (OffsetFetchRequest, {"groupId": "g"}, "topics", 0),
    (OffsetFetchRequest, {}, "groups", 8),
    (OffsetCommitRequest, {"groupId": "g", "topics": []}, "memberId", 1),
    (ListGroupsRequest, {}, "statesFilter", 4),
    (ListGroupsRequest, {"statesFilter": []}, "typesFilter", 5),
]


@pytest.mark.parametrize(
    ("message", "body", "field", "version"), NEEDED, ids=lambda value: value if isinstance(value, str) else None
)
def test_a_field_without_a_default_must_be_there(
    message: type[Request], body: dict[str, Any], field: str, version: int
) -> None:
    with pytest.raises(WrongVersion) as refusal:
        message.parse(json.dumps(body), version)
    assert refusal.value.field == field
    assert "must have it" in refusal.value.problem


@pytest.mark.parametrize(
    ("message", "body", "field", "first"),
    [
        (OffsetFetchRequest, {"groupId": "g", "topics": None}, "topics", 2),
        (MetadataRequest, {"topics": None}, "topics", 1),
    ],
)
def test_null_is_refused_below_the_version_that_allows_it(
    message: type[Request], body: dict[str, Any], field: str, first: int
) -> None:
    message.parse(json.dumps(body), first)
    with pytest.raises(WrongVersion) as refusal:
        message.parse(json.dumps(body), first - 1)
    assert refusal.value.field == field


@pytest.mark.parametrize("field", ["groupId", "memberId", "protocolType", "protocols", "sessionTimeoutMs"])
def test_null_is_refused_where_no_version_allows_it(field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        JoinGroupRequest.parse(json.dumps(JOIN | {field: None}), 9)
    assert refusal.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize("field", ["topic_id", "group_id", "GroupId", "groupid", "extra"])
def test_an_unknown_field_is_refused(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        HeartbeatRequest.parse(json.dumps(BEAT | {field: "x"}), 4)


@pytest.mark.parametrize("generation", [2**31, -(2**31) - 1, 1.0, "1", True])
def test_numbers_are_of_their_width_and_nothing_else(generation: object) -> None:
    with pytest.raises(ValidationError):
        HeartbeatRequest.parse(json.dumps(BEAT | {"generationId": generation}), 4)


@pytest.mark.parametrize("generation", [2**31 - 1, -(2**31)])
def test_numbers_may_use_their_width(generation: int) -> None:
    assert HeartbeatRequest.parse(json.dumps(BEAT | {"generationId": generation}), 4).generation_id == generation


def fields(response: Response, version: int) -> set[str]:
    return set(json.loads(response.to_json(version)))


ANSWERED: list[tuple[Response, str, int, int]] = [
    # answer, field, first and last version that has it
    (JoinGroupResponse(), "throttleTimeMs", 2, 9),
    (JoinGroupResponse(), "protocolType", 7, 9),
    (JoinGroupResponse(), "skipAssignment", 9, 9),
    (SyncGroupResponse(), "throttleTimeMs", 1, 5),
    (SyncGroupResponse(), "protocolType", 5, 5),
    (SyncGroupResponse(), "protocolName", 5, 5),
    (HeartbeatResponse(), "throttleTimeMs", 1, 4),
    (LeaveGroupResponse(), "throttleTimeMs", 1, 5),
    (LeaveGroupResponse(), "members", 3, 5),
    (OffsetFetchResponse(), "errorCode", 2, 7),
    (OffsetFetchResponse(), "topics", 0, 7),
    (OffsetFetchResponse(), "groups", 8, 10),
]


@pytest.mark.parametrize(("answer", "field", "first", "last"), ANSWERED, ids=lambda value: type(value).__name__)
def test_an_answer_has_the_fields_of_its_version(answer: Response, field: str, first: int, last: int) -> None:
    api = BY_NAME[type(answer).__name__.removesuffix("Response")]
    for version in range(api.min_version, api.max_version + 1):
        assert (field in fields(answer, version)) == (first <= version <= last)


def test_parts_of_an_answer_have_the_fields_of_its_version() -> None:
    joined = JoinGroupResponse(members=(JoinGroupResponseMember(member_id="m", group_instance_id="i"),))
    assert "groupInstanceId" not in json.loads(joined.to_json(4))["members"][0]
    assert json.loads(joined.to_json(5))["members"][0]["groupInstanceId"] == "i"
    listed = ListGroupsResponse(groups=(ListedGroup(group_id="g", group_state="Stable", group_type="classic"),))
    assert set(json.loads(listed.to_json(3))["groups"][0]) == {"groupId", "protocolType"}
    assert set(json.loads(listed.to_json(4))["groups"][0]) == {"groupId", "protocolType", "groupState"}
    assert set(json.loads(listed.to_json(5))["groups"][0]) == {"groupId", "protocolType", "groupState", "groupType"}


def test_bytes_travel_as_base64_of_the_standard_alphabet() -> None:
    """Not the one for addresses, whose ``-`` and ``_`` stand for ``+`` and ``/``; and with padding."""
    data = bytes.fromhex("fbfffe00")
    request = JoinGroupRequest.parse(json.dumps(JOIN | {"protocols": [{"name": "x", "metadata": "+//+AA=="}]}), 9)
    assert request.protocols == (JoinGroupRequestProtocol(name="x", metadata=data),)
    assert b'"assignment":"+//+AA=="' in SyncGroupResponse(assignment=data).to_json(5)


@pytest.mark.parametrize("text", ["-__-AA==", "+//+AA", "+//+AA=", "+//+ AA==", "+//+AA==\n", "*", "A"])
def test_other_base64_is_refused(text: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        JoinGroupRequest.parse(json.dumps(JOIN | {"protocols": [{"name": "x", "metadata": text}]}), 9)
    assert refusal.value.errors()[0]["loc"] == ("protocols", 0, "metadata")


def test_error_codes_travel_as_numbers() -> None:
    assert b'"errorCode":-1' in HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR).to_json(4)
    left = LeaveGroupResponseMember(error_code=ErrorCode.FENCED_INSTANCE_ID)
    assert b'"errorCode":82' in LeaveGroupResponse(members=(left,)).to_json(5)


def test_record_batches_are_base64_in_json() -> None:
    partition = {"index": 0, "records": "+//+AA=="}
    body = {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": [partition]}]}
    request = ProduceRequest.parse(json.dumps(body), 9)
    assert request.topic_data[0].partition_data[0].records == b"\xfb\xff\xfe\x00"
    assert json.loads(request.to_json(9))["topicData"] == body["topicData"]
    whole = memoryview(b"xx\xfb\xff\xfe\x00")
    answered = FetchablePartitionResponse(records=whole[2:])
    assert b'"records":"+//+AA=="' in answered.to_json(12)


def test_record_batches_that_are_no_base64_are_refused() -> None:
    partition = {"index": 0, "records": "*"}
    body = {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": [partition]}]}
    with pytest.raises(ValidationError) as refusal:
        ProduceRequest.parse(json.dumps(body), 9)
    assert refusal.value.errors()[0]["loc"] == ("topicData", 0, "partitionData", 0, "records")


@pytest.mark.parametrize("api", DEFINED.values(), ids=lambda api: api.name)
def test_every_answer_can_be_read_back_in_every_version(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        written = api.response().to_json(version)
        assert api.response.from_json(written).to_json(version) == written


def test_the_table_of_apis_has_each_once() -> None:
    assert len(BY_KEY) == len(BY_NAME) == len(BY_PATH) == len(APIS)
    assert [api.key for api in APIS] == sorted(BY_KEY)


VERSIONS = {
    "OffsetCommit": (8, 0, 10),
    "OffsetFetch": (9, 0, 10),
    "FindCoordinator": (10, 0, 6),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "ListGroups": (16, 0, 5),
    "TxnOffsetCommit": (28, 0, 6),
    "DeleteGroups": (42, 0, 3),
    "OffsetDelete": (47, 0, 0),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_group_requests_have_kafkas_numbers_and_versions(name: str) -> None:
    api = BY_NAME[name]
    assert (api.key, api.min_version, api.max_version) == VERSIONS[name]
