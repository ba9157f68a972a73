"""Every error code that these requests can answer with, and for each a story that gets it over real HTTP.

A story runs against a fresh node and returns the last answer; the code must be somewhere in it.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness, create_topics, join, sync

Story = Callable[[Harness], Awaitable[Any]]

DENIALS = (
    "User:*:ALL:group=secret-*",
    "User:*:ALL:topic=secret-*",
    "User:*:ALL:transactional-id=secret-*",
    "User:mallory:CLUSTER_ACTION:cluster=kafka-cluster",
)
OPAQUE = base64.b64encode(b"x").decode()
STORIES: list[tuple[ErrorCode, Story]] = []


def gets(*codes: ErrorCode) -> Callable[[Story], Story]:
    """Put a story into the table."""

    def register(story: Story) -> Story:
        STORIES.extend((code, story) for code in codes)
        return story

    return register


def codes_in(answer: Any) -> Iterator[int]:
    """Every error code of an answer, wherever it stands."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name == "errorCode":
                yield value
            else:
                yield from codes_in(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from codes_in(value)


@pytest.fixture
async def node(serve: Serve) -> Harness:
    return await serve(emulator_deny=DENIALS, group_max_size=2, offset_metadata_max_bytes=10)


# --- the coordinator is not there, or not yet, or not any more


def partition_of(group: str) -> TopicPartition:
    return offsets_partition(partition_for(group, 50))


@gets(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
async def a_join_while_the_partition_loads(node: Harness) -> Any:
    node.log.hold_reads = True
    node.app.runtime.elect(partition_of("g"))
    heartbeat = await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": "m"})
    assert heartbeat["errorCode"] == 0, "heartbeats are fine meanwhile"
    return await node.call("JoinGroup", join("g"))


@gets(ErrorCode.REBALANCE_IN_PROGRESS)
async def a_sync_while_the_partition_loads(node: Harness) -> Any:
    node.log.hold_reads = True
    node.app.runtime.elect(partition_of("g"))
    return await node.call("SyncGroup", sync("g", "m", 1, {}))


@gets(ErrorCode.NOT_COORDINATOR)
async def a_heartbeat_after_the_partition_was_given_up(node: Harness) -> Any:
    member_id = await node.stable("g")
    node.app.runtime.resign(partition_of("g"))
    return await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": member_id})


@gets(ErrorCode.NOT_COORDINATOR)
async def a_join_that_is_parked_when_the_partition_is_given_up(node: Harness) -> Any:
    joining = await node.parked("JoinGroup", join("g", await node.member_id("g")))
    node.app.runtime.resign(partition_of("g"))
    return await joining


@gets(ErrorCode.NOT_COORDINATOR)
async def a_commit_that_the_log_refuses_for_a_newer_epoch(node: Harness) -> Any:
    return await _commit_with_failing_log(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)


@gets(ErrorCode.COORDINATOR_NOT_AVAILABLE)
async def nobody_leads_the_partition(node: Harness) -> Any:
    node.app.runtime.resign(partition_of("g"))
    return await node.call("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]})


@gets(ErrorCode.COORDINATOR_NOT_AVAILABLE)
async def a_commit_that_too_few_replicas_took(node: Harness) -> Any:
    return await _commit_with_failing_log(node, ErrorCode.NOT_ENOUGH_REPLICAS)


@gets(ErrorCode.UNKNOWN_SERVER_ERROR)
async def a_commit_too_large_for_the_log(node: Harness) -> Any:
    return await _commit_with_failing_log(node, ErrorCode.MESSAGE_TOO_LARGE)


async def _commit_with_failing_log(node: Harness, error: ErrorCode) -> Any:
    await node.topic("orders", 1)
    node.log.fail_appends = error
    return await node.call("OffsetCommit", commit("g"))


@gets(ErrorCode.UNKNOWN_SERVER_ERROR)
async def an_id_that_was_handed_out_comes_back_with_an_instance_id(node: Harness) -> Any:
    member_id = await node.member_id("g")
    return await node.call("JoinGroup", join("g", member_id, groupInstanceId="i"))


# --- groups and members


@gets(ErrorCode.ILLEGAL_GENERATION)
async def a_heartbeat_of_another_generation(node: Harness) -> Any:
    member_id = await node.stable("g")
    return await node.call("Heartbeat", {"groupId": "g", "generationId": 7, "memberId": member_id})


@gets(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
async def a_join_without_protocols(node: Harness) -> Any:
    return await node.call("JoinGroup", join("g", protocols=[]))


@gets(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
async def a_join_with_none_of_the_groups_protocols(node: Harness) -> Any:
    await node.stable("g")
    return await node.call("JoinGroup", join("g", protocols=[{"name": "mine", "metadata": OPAQUE}]))


@gets(ErrorCode.INVALID_GROUP_ID)
async def a_join_to_a_group_without_a_name(node: Harness) -> Any:
    return await node.call("JoinGroup", join(""))


@gets(ErrorCode.UNKNOWN_MEMBER_ID)
async def a_heartbeat_of_an_unknown_member(node: Harness) -> Any:
    await node.stable("g")
    return await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": "unknown"})


@gets(ErrorCode.UNKNOWN_MEMBER_ID)
async def a_member_whose_session_ended(node: Harness) -> Any:
    member_id = await node.stable("g")
    node.clock.advance(45_000)
    return await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": member_id})


@gets(ErrorCode.INVALID_SESSION_TIMEOUT)
async def a_join_with_a_session_too_short(node: Harness) -> Any:
    return await node.call("JoinGroup", join("g", sessionTimeoutMs=5_999))


@gets(ErrorCode.REBALANCE_IN_PROGRESS)
async def a_heartbeat_while_others_join(node: Harness) -> Any:
    member_id = await node.stable("g")
    joining = await node.parked("JoinGroup", join("g", await node.member_id("g")))
    answer = await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": member_id})
    node.clock.advance(300_000)
    await joining
    return answer


@gets(ErrorCode.MEMBER_ID_REQUIRED)
async def a_first_join(node: Harness) -> Any:
    answer = await node.call("JoinGroup", join("g"))
    assert answer["memberId"]
    return answer


@gets(ErrorCode.GROUP_MAX_SIZE_REACHED)
async def one_member_too_many(node: Harness) -> Any:
    ids = [await node.member_id("g") for _ in range(2)]
    joining = [await node.parked("JoinGroup", join("g", member_id)) for member_id in ids]
    answer = await node.call("JoinGroup", join("g"), version=3)
    node.clock.advance(10_000)
    assert [(await each)["errorCode"] for each in joining] == [0, 0]
    return answer


@gets(ErrorCode.FENCED_INSTANCE_ID)
async def an_instance_id_that_another_member_owns(node: Harness) -> Any:
    joining = await node.parked("JoinGroup", join("g", groupInstanceId="i"))
    node.clock.advance(3_000)
    await joining
    body = {"groupId": "g", "generationId": 1, "memberId": "another", "groupInstanceId": "i"}
    return await node.call("Heartbeat", body)


@gets(ErrorCode.NON_EMPTY_GROUP)
async def deleting_a_group_with_members(node: Harness) -> Any:
    await node.stable("g")
    return await node.call("DeleteGroups", {"groupsNames": ["g"]})


@gets(ErrorCode.GROUP_ID_NOT_FOUND)
async def deleting_a_group_that_is_not_there(node: Harness) -> Any:
    return await node.call("DeleteGroups", {"groupsNames": ["g"]})


# --- offsets


def commit(group: str, topic: str = "orders", **fields: Any) -> dict[str, Any]:
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": fields.pop("metadata", None)}
    return {"groupId": group, "memberId": "", "topics": [{"name": topic, "partitions": [partition]}], **fields}


def transaction(group: str, **fields: Any) -> dict[str, Any]:
    body = commit(group)
    return {**body, "transactionalId": "t", "producerId": 9, "producerEpoch": 0, **fields}


def fetch(group: str, **fields: Any) -> dict[str, Any]:
    topics = [{"name": "orders", "partitionIndexes": [0]}]
    return {"groups": [{"groupId": group, "topics": topics}], **fields}


@gets(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
async def a_commit_for_a_topic_that_is_not_there(node: Harness) -> Any:
    return await node.call("OffsetCommit", commit("g"))


@gets(ErrorCode.OFFSET_METADATA_TOO_LARGE)
async def a_commit_with_long_metadata(node: Harness) -> Any:
    await node.topic("orders", 1)
    return await node.call("OffsetCommit", commit("g", metadata="x" * 11))


@gets(ErrorCode.ILLEGAL_GENERATION)
async def a_commit_with_a_generation_to_no_group_up_to_v8(node: Harness) -> Any:
    await node.topic("orders", 1)
    return await node.call("OffsetCommit", commit("g", generationIdOrMemberEpoch=3), version=8)


@gets(ErrorCode.GROUP_ID_NOT_FOUND)
async def a_commit_with_a_generation_to_no_group_from_v9(node: Harness) -> Any:
    await node.topic("orders", 1)
    return await node.call("OffsetCommit", commit("g", generationIdOrMemberEpoch=3), version=9)


@gets(ErrorCode.REBALANCE_IN_PROGRESS)
async def a_commit_before_the_leader_has_assigned(node: Harness) -> Any:
    await node.topic("orders", 1)
    member_id = await node.member_id("g")
    joining = await node.parked("JoinGroup", join("g", member_id))
    node.clock.advance(3_000)
    await joining
    return await node.call("OffsetCommit", commit("g", generationIdOrMemberEpoch=1, memberId=member_id))


@gets(ErrorCode.NON_EMPTY_GROUP)
async def deleting_offsets_of_an_active_group_of_another_type(node: Harness) -> Any:
    await node.topic("orders", 1)
    joining = await node.parked("JoinGroup", join("g", protocolType="connect"), version=3)
    node.clock.advance(3_000)
    await joining
    return await node.call("OffsetDelete", offset_delete("g"))


def offset_delete(group: str) -> dict[str, Any]:
    return {"groupId": group, "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]}


@gets(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
async def deleting_offsets_of_a_topic_that_is_being_read(node: Harness) -> Any:
    await node.topic("orders", 1)
    await node.stable("g")
    return await node.call("OffsetDelete", offset_delete("g"))


@gets(ErrorCode.UNSTABLE_OFFSET_COMMIT)
async def fetching_stable_offsets_during_a_transaction(node: Harness) -> Any:
    await node.topic("orders", 1)
    given = await node.call("InitProducerId", {"transactionalId": "t", "transactionTimeoutMs": 60_000})
    producer = {"producerId": given["producerId"], "producerEpoch": given["producerEpoch"]}
    assert set(codes_in(await node.call("TxnOffsetCommit", transaction("g", **producer), 5))) == {0}
    unstable = await node.call("OffsetFetch", fetch("g", requireStable=True))
    ended = await node.call("EndTxn", {"transactionalId": "t", **producer, "committed": True})
    assert ended["errorCode"] == 0
    stable = await node.call("OffsetFetch", fetch("g", requireStable=True))
    assert set(codes_in(stable)) == {0}
    assert stable["groups"][0]["topics"][0]["partitions"][0]["committedOffset"] == 5
    return unstable


@gets(ErrorCode.NOT_LEADER_OR_FOLLOWER)
async def a_marker_for_a_partition_that_was_given_up(node: Harness) -> Any:
    node.app.runtime.resign(offsets_partition(3))
    marked = [{"name": "__consumer_offsets", "partitionIndexes": [3]}]
    marker = {"producerId": 9, "producerEpoch": 0, "transactionResult": True, "topics": marked, "coordinatorEpoch": 0}
    return await node.call("WriteTxnMarkers", {"markers": [marker]})


# --- denials


@gets(ErrorCode.GROUP_AUTHORIZATION_FAILED)
async def joining_a_group_that_is_denied(node: Harness) -> Any:
    return await node.call("JoinGroup", join("secret-group"))


@gets(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
async def committing_to_a_topic_that_is_denied(node: Harness) -> Any:
    return await node.call("OffsetCommit", commit("g", topic="secret-orders"))


@gets(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
async def a_transaction_whose_id_is_denied(node: Harness) -> Any:
    return await node.call("TxnOffsetCommit", transaction("g", transactionalId="secret-t"), 5)


@gets(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
async def markers_by_an_unauthorized_client(node: Harness) -> Any:
    marked = [{"name": "__consumer_offsets", "partitionIndexes": [3]}]
    marker = {"producerId": 9, "producerEpoch": 0, "transactionResult": True, "topics": marked, "coordinatorEpoch": 0}
    return await node.call("WriteTxnMarkers", {"markers": [marker]}, Kafka_Principal="User:mallory")


# --- topics and looking up


@gets(ErrorCode.INVALID_REQUEST)
async def a_coordinator_of_an_unknown_kind(node: Harness) -> Any:
    return await node.call("FindCoordinator", {"keyType": 7, "coordinatorKeys": ["g"]})


@gets(ErrorCode.INVALID_REQUEST)
async def a_topic_twice_in_a_request(node: Harness) -> Any:
    return await node.call("CreateTopics", {"topics": create_topics("orders", 1)["topics"] * 2})


@gets(ErrorCode.TOPIC_ALREADY_EXISTS)
async def a_topic_that_is_there_already(node: Harness) -> Any:
    await node.topic("orders", 1)
    return await node.call("CreateTopics", create_topics("orders", 1))


@gets(ErrorCode.INVALID_TOPIC_EXCEPTION)
async def a_topic_with_a_name_that_cannot_be(node: Harness) -> Any:
    return await node.call("CreateTopics", create_topics("no spaces", 1))


@gets(ErrorCode.INVALID_PARTITIONS)
async def a_topic_without_partitions(node: Harness) -> Any:
    return await node.call("CreateTopics", create_topics("orders", 0))


@gets(ErrorCode.INVALID_PARTITIONS)
async def a_topic_that_shall_shrink(node: Harness) -> Any:
    await node.topic("orders", 3)
    body = {"topics": [{"name": "orders", "count": 2, "assignments": None}], "timeoutMs": 0, "validateOnly": False}
    return await node.call("CreatePartitions", body)


@gets(ErrorCode.INVALID_REPLICATION_FACTOR)
async def a_topic_with_more_replicas_than_nodes(node: Harness) -> Any:
    return await node.call("CreateTopics", create_topics("orders", 1, replicationFactor=3))


@gets(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
async def a_topic_with_a_gap_in_its_assignments(node: Harness) -> Any:
    assignments = [{"partitionIndex": 1, "brokerIds": [1]}]
    return await node.call("CreateTopics", create_topics("orders", -1, assignments=assignments))


@gets(ErrorCode.INVALID_CONFIG)
async def a_topic_with_a_rate_that_is_no_number(node: Harness) -> Any:
    configs = [{"name": "emulator.records.per.second", "value": "lots"}]
    return await node.call("CreateTopics", create_topics("orders", 1, configs=configs))


@gets(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
async def a_topic_that_one_may_not_create(node: Harness) -> Any:
    return await node.call("CreateTopics", create_topics("secret-orders", 1))


@gets(ErrorCode.UNKNOWN_TOPIC_ID)
async def metadata_for_an_unused_id(node: Harness) -> Any:
    body = {"topics": [{"topicId": "B" * 22, "name": None}], "includeTopicAuthorizedOperations": False}
    return await node.call("Metadata", body)


@gets(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
async def deleting_a_topic_that_is_not_there(node: Harness) -> Any:
    return await node.call("DeleteTopics", {"topics": [{"name": "orders", "topicId": "A" * 22}], "timeoutMs": 0})


@gets(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
async def the_end_of_a_partition_that_is_not_there(node: Harness) -> Any:
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]
    return await node.call("ListOffsets", {"replicaId": -1, "isolationLevel": 0, "topics": topics, "timeoutMs": 0})


# --- the table at work

GROUP_CODES = {-1, 3, 12, 14, 15, 16, 22, 23, 24, 25, 26, 27, 29, 30, 42, 53, 68, 69, 79, 81, 82, 86, 88}
TOPIC_CODES = {17, 31, 36, 37, 38, 39, 40, 100}
EXPECTED = {ErrorCode(number) for number in GROUP_CODES | TOPIC_CODES}


@pytest.mark.parametrize(("code", "story"), STORIES, ids=lambda value: getattr(value, "__name__", None) or value.name)
async def test_a_story_ends_with_its_code(node: Harness, code: ErrorCode, story: Story) -> None:
    answer = await story(node)
    assert int(code) in set(codes_in(answer)), answer
    assert node.app.metrics.events["core_failed"] == 0


def test_every_code_has_a_story() -> None:
    assert {code for code, _ in STORIES} >= EXPECTED
