"""A request of each API that does something in a Stable group of one member, and ways to get there without HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.service.helpers import create_topics, join, sync

GROUP = "g"
OF_CONSUMER_GROUPS: dict[str, dict[str, Any]] = {
    "ConsumerGroupHeartbeat": {
        "groupId": GROUP,
        "memberId": "m",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 60_000,
        "subscribedTopicNames": ["orders"],
        "topicPartitions": [],
    },
    "ConsumerGroupDescribe": {"groupIds": [GROUP], "includeAuthorizedOperations": False},
}
OF_SHARE_GROUPS: dict[str, dict[str, Any]] = {
    "ShareGroupHeartbeat": {
        "groupId": GROUP,
        "memberId": "m",
        "memberEpoch": 0,
        "subscribedTopicNames": ["orders"],
    },
    "ShareGroupDescribe": {"groupIds": [GROUP], "includeAuthorizedOperations": False},
    "AlterShareGroupOffsets": {
        "groupId": GROUP,
        "topics": [{"topicName": "orders", "partitions": [{"partitionIndex": 0, "startOffset": 0}]}],
    },
    "DeleteShareGroupOffsets": {"groupId": GROUP, "topics": [{"topicName": "orders"}]},
    "DescribeShareGroupOffsets": {
        "groups": [{"groupId": GROUP, "topics": [{"topicName": "orders", "partitions": [0]}]}],
    },
    "ShareFetch": {
        "groupId": GROUP,
        "memberId": "m",
        "shareSessionEpoch": 0,
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxRecords": 10,
        "batchSize": 10,
        "topics": [],
        "forgottenTopicsData": [],
    },
    "ShareAcknowledge": {"groupId": GROUP, "memberId": "m", "shareSessionEpoch": 1, "topics": []},
    **{
        f"{verb}ShareGroupState{what}": {
            "groupId": GROUP,
            "topics": [{"topicId": "A" * 22, "partitions": [{"partition": 0, **fields}]}],
        }
        for verb, what, fields in (
            ("Initialize", "", {"stateEpoch": 1, "startOffset": 0}),
            ("Read", "", {"leaderEpoch": 0}),
            ("Write", "", {"stateEpoch": 1, "leaderEpoch": 0, "startOffset": 0, "stateBatches": []}),
            ("Delete", "", {}),
            ("Read", "Summary", {"leaderEpoch": 0}),
        )
    },
}
OF_STREAMS_GROUPS: dict[str, dict[str, Any]] = {
    "StreamsGroupHeartbeat": {
        "groupId": GROUP,
        "memberId": "m",
        "memberEpoch": 1,
        "endpointInformationEpoch": -1,
        "activeTasks": [],
        "standbyTasks": [],
        "warmupTasks": [],
    },
    "StreamsGroupDescribe": {"groupIds": [GROUP], "includeAuthorizedOperations": False},
    "StreamsGroupTopologyDescriptionUpdate": {
        "groupId": GROUP,
        "memberId": "m",
        "topologyEpoch": 1,
        "topologyDescription": {"subtopologies": [], "globalStores": []},
    },
}
MARKER = {
    "producerId": 7,
    "producerEpoch": 0,
    "transactionResult": True,
    "topics": [{"name": "__consumer_offsets", "partitionIndexes": [3]}],
    "coordinatorEpoch": 0,
}


RESOURCE = {"resourceType": 2, "resourceName": "orders"}
TRANSACTION = {"transactionalId": "t", "producerId": 7, "producerEpoch": 0}
ABOUT_TRANSACTIONS: dict[str, Any] = {
    "AddPartitionsToTxn": {
        "transactions": [{**TRANSACTION, "verifyOnly": False, "topics": [{"name": "orders", "partitions": [0]}]}]
    },
    "AddOffsetsToTxn": {**TRANSACTION, "groupId": GROUP},
    "EndTxn": {**TRANSACTION, "committed": True},
    "DescribeTransactions": {"transactionalIds": ["t"]},
    "ListTransactions": {"stateFilters": [], "producerIdFilters": []},
}
_ALL_ACLS = {
    "resourceTypeFilter": 1,
    "resourceNameFilter": None,
    "patternTypeFilter": 1,
    "principalFilter": None,
    "hostFilter": None,
    "operation": 1,
    "permissionType": 1,
}
ABOUT_TOPICS: dict[str, Any] = {
    "ListOffsets": {
        "replicaId": -1,
        "isolationLevel": 0,
        "timeoutMs": 1_000,
        "topics": [
            {"name": "orders", "partitions": [{"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -1}]}
        ],
    },
    "DescribeConfigs": {"resources": [{**RESOURCE, "configurationKeys": None}]},
    "AlterConfigs": {"resources": [{**RESOURCE, "configs": []}], "validateOnly": False},
    "IncrementalAlterConfigs": {"resources": [{**RESOURCE, "configs": []}], "validateOnly": False},
    "DescribeLogDirs": {"topics": [{"topic": "orders", "partitions": [0]}]},
    "DescribeCluster": {"includeClusterAuthorizedOperations": False, "includeFencedBrokers": False},
    "UpdateFeatures": {"featureUpdates": [{"feature": "transaction.version", "maxVersionLevel": 1}]},
    "CreateAcls": {
        "creations": [
            {
                "resourceType": 2,
                "resourceName": "orders",
                "resourcePatternType": 3,
                "principal": "User:a",
                "host": "*",
                "operation": 3,
                "permissionType": 3,
            }
        ]
    },
    "DescribeAcls": _ALL_ACLS,
    "DeleteAcls": {"filters": [_ALL_ACLS]},
    "DescribeUserScramCredentials": {"users": [{"name": "alice"}]},
    "AlterUserScramCredentials": {
        "deletions": [],
        "upsertions": [
            {"name": "alice", "mechanism": 1, "iterations": 4_096, "salt": "c2FsdA==", "saltedPassword": "c2FsdGVk"}
        ],
    },
    "CreateDelegationToken": {
        "ownerPrincipalType": "User",
        "ownerPrincipalName": "alice",
        "renewers": [{"principalType": "User", "principalName": "bob"}],
        "maxLifetimeMs": 60_000,
    },
    "RenewDelegationToken": {"hmac": "aG1hYw==", "renewPeriodMs": 60_000},
    "ExpireDelegationToken": {"hmac": "aG1hYw==", "expiryTimePeriodMs": -1},
    "DescribeDelegationToken": {"owners": [{"principalType": "User", "principalName": "alice"}]},
    "DescribeClientQuotas": {"components": [{"entityType": "user", "matchType": 2, "match": None}], "strict": False},
    "AlterClientQuotas": {
        "entries": [
            {
                "entity": [{"entityType": "user", "entityName": "alice"}],
                "ops": [{"key": "producer_byte_rate", "value": 1_048_576.0, "remove": False}],
            }
        ],
        "validateOnly": False,
    },
    "ListConfigResources": {"resourceTypes": [16]},
    "ElectLeaders": {"electionType": 0, "topicPartitions": [{"topic": "orders", "partitions": [0]}]},
    "AlterPartitionReassignments": {
        "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}]
    },
    "ListPartitionReassignments": {"topics": [{"name": "orders", "partitionIndexes": [0]}]},
    "AlterReplicaLogDirs": {"dirs": [{"path": "/rejoin", "topics": [{"name": "orders", "partitions": [0]}]}]},
    "DescribeQuorum": {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]},
    "UnregisterBroker": {"brokerId": 9},
    "UnregisterController": {"controllerId": 9},
    "AddRaftVoter": {
        "clusterId": None,
        "timeoutMs": 1_000,
        "voterId": 9,
        "voterDirectoryId": "A" * 22,
        "listeners": [{"name": "CONTROLLER", "host": "localhost", "port": 9_093}],
    },
    "RemoveRaftVoter": {"clusterId": None, "voterId": 9, "voterDirectoryId": "A" * 22},
    "DescribeTopicPartitions": {"topics": [{"name": "orders"}]},
    "Produce": {
        "acks": -1,
        "timeoutMs": 1_000,
        "topicData": [{"topicId": "A" * 22, "partitionData": [{"index": 0, "records": ""}]}],
    },
    "DeleteRecords": {
        "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "offset": -1}]}],
        "timeoutMs": 1_000,
    },
    "InitProducerId": {"transactionalId": None, "transactionTimeoutMs": 1_000},
    "OffsetForLeaderEpoch": {"topics": [{"topic": "orders", "partitions": [{"partition": 0, "leaderEpoch": 0}]}]},
    "SaslHandshake": {"mechanism": "PLAIN"},
    "SaslAuthenticate": {"authBytes": "AGEAYg=="},
    "DescribeProducers": {"topics": [{"name": "orders", "partitionIndexes": [0]}]},
}


def sample(api: str, member_id: str) -> Request:
    """A request of the version that needs no name."""
    topic = {"name": "orders", "partitions": [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}]}
    who = {"groupId": GROUP, "memberId": member_id, "groupInstanceId": None}
    bodies: dict[str, dict[str, Any]] = {
        "Metadata": {
            "topics": [{"topicId": "A" * 22, "name": "orders"}],
            "allowAutoTopicCreation": False,
            "includeTopicAuthorizedOperations": False,
        },
        "OffsetCommit": {**who, "generationIdOrMemberEpoch": 1, "topics": [topic]},
        "OffsetFetch": {
            "groups": [{"groupId": GROUP, "topics": [{"name": "orders", "partitionIndexes": [0]}]}],
            "requireStable": False,
        },
        "FindCoordinator": {"keyType": 0, "coordinatorKeys": [GROUP]},
        "JoinGroup": join(GROUP, member_id),
        "Heartbeat": {**who, "generationId": 1},
        "LeaveGroup": {"groupId": GROUP, "members": [{"memberId": member_id, "groupInstanceId": None, "reason": None}]},
        "SyncGroup": sync(GROUP, member_id, 1, {member_id: {"orders": [0]}}),
        "DescribeGroups": {"groups": [GROUP], "includeAuthorizedOperations": False},
        "ListGroups": {"statesFilter": [], "typesFilter": []},
        "ApiVersions": {"clientSoftwareName": "test", "clientSoftwareVersion": "1"},
        "CreateTopics": create_topics("more", 1),
        "DeleteTopics": {"topics": [{"name": "orders", "topicId": "A" * 22}], "timeoutMs": 1_000},
        "WriteTxnMarkers": {"markers": [MARKER]},
        "TxnOffsetCommit": {
            **who,
            "transactionalId": "t",
            "producerId": 7,
            "producerEpoch": 0,
            "generationIdOrMemberEpoch": 1,
            "topics": [{"topicId": "A" * 22, "partitions": topic["partitions"]}],
        },
        "Fetch": {
            "maxWaitMs": 0,
            "minBytes": 1,
            "maxBytes": 1_000,
            "isolationLevel": 0,
            "topics": [],
            "forgottenTopicsData": [],
        },
        **ABOUT_TOPICS,
        **ABOUT_TRANSACTIONS,
        "CreatePartitions": {
            "topics": [{"name": "orders", "count": 5, "assignments": None}],
            "timeoutMs": 1_000,
            "validateOnly": False,
        },
        "DeleteGroups": {"groupsNames": [GROUP]},
        **OF_CONSUMER_GROUPS,
        **OF_SHARE_GROUPS,
        **OF_STREAMS_GROUPS,
        "OffsetDelete": {"groupId": GROUP, "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]},
    }
    return parse(api, bodies[api])


def parse(api: str, body: dict[str, Any], version: int | None = None) -> Request:
    """A request from its JSON."""
    found = BY_NAME[api]
    return found.request.parse(json.dumps(body), found.default_version if version is None else version)


async def joined(
    coordinator: GroupCoordinator, group: str = GROUP, client_id: str = "app", **fields: Any
) -> asyncio.Task[JoinGroupResponse]:
    """A new dynamic member whose JoinGroup waits, or has been answered already."""
    version = fields.pop("version", None)
    first = await coordinator.call(parse("JoinGroup", join(group, **fields), version), version, client_id)
    member_id = cast(JoinGroupResponse, first).member_id
    task = asyncio.ensure_future(
        coordinator.call(parse("JoinGroup", join(group, member_id, **fields), version), version, client_id)
    )
    await asyncio.sleep(0)
    return cast("asyncio.Task[JoinGroupResponse]", task)


async def stable(coordinator: GroupCoordinator, group: str = GROUP, client_id: str = "app", **fields: Any) -> str:
    """A group of one dynamic member, Stable in generation 1, with all of ``orders``; its member id."""
    joining = await joined(coordinator, group, client_id, **fields)
    await coordinator.advance(3_000)
    answer = await joining
    assert answer.generation_id == 1
    body = sync(group, answer.member_id, 1, {answer.member_id: {"orders": [0, 1, 2]}})
    assert cast(SyncGroupResponse, await coordinator.call(parse("SyncGroup", body), None, client_id)).error_code == 0
    return answer.member_id


def beat(member_id: str, generation: int = 1, group: str = GROUP) -> Request:
    return parse("Heartbeat", {"groupId": group, "generationId": generation, "memberId": member_id})
