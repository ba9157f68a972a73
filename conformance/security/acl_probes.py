"""Requests that an authorizer allows or refuses: one or several for each API, with one answer at once."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rejoin.protocol.types import ZERO_UUID

NAMES: Final = ("pay", "pay-in", "other")
"""Of topics, groups and transactional ids; the topic ``other`` does not exist."""

_SHARE_STATE: Final = {"topicId": f"{'A' * 21}Q", "partitions": [{"partition": 0, "leaderEpoch": 0}]}


class Probe(NamedTuple):
    """A request in Kafka's JSON."""

    api: str
    version: int
    body: dict[str, Any]


def probes(name: str) -> list[Probe]:
    """Requests about what has this name."""
    return [
        *_of_groups(name),
        *_of_offsets(name),
        *_of_topics(name),
        *_of_stored_topics(name),
        *_of_transactions(name),
        *_of_cluster(name),
    ]


def _of_groups(name: str) -> list[Probe]:
    group = {"groupId": name}
    member = {**group, "memberId": "m"}
    both = {"groupIds": [name], "includeAuthorizedOperations": True}
    heartbeat = {**member, "memberEpoch": 7, "subscribedTopicNames": ["pay", "other"]}
    return [
        Probe("Heartbeat", 4, {**member, "generationId": 1, "groupInstanceId": None}),
        Probe("LeaveGroup", 5, {**group, "members": [{"memberId": "m", "groupInstanceId": None, "reason": None}]}),
        Probe(
            "SyncGroup",
            5,
            {**member, "generationId": 1, "protocolType": "consumer", "protocolName": "range", "assignments": []},
        ),
        Probe("DescribeGroups", 6, {"groups": [name], "includeAuthorizedOperations": True}),
        Probe("ListGroups", 5, {"statesFilter": [], "typesFilter": []}),
        Probe("DeleteGroups", 2, {"groupsNames": [name]}),
        Probe("ConsumerGroupHeartbeat", 1, {**heartbeat, "rebalanceTimeoutMs": 60_000, "topicPartitions": []}),
        Probe("ConsumerGroupDescribe", 1, both),
        Probe("ShareGroupHeartbeat", 1, heartbeat),
        Probe("ShareGroupDescribe", 1, both),
        Probe("StreamsGroupDescribe", 0, both),
        Probe(
            "StreamsGroupHeartbeat",
            0,
            {
                **member,
                "memberEpoch": 7,
                "endpointInformationEpoch": -1,
                "activeTasks": [],
                "standbyTasks": [],
                "warmupTasks": [],
            },
        ),
        Probe("FindCoordinator", 5, {"keyType": 0, "coordinatorKeys": [name]}),
        Probe("FindCoordinator", 5, {"keyType": 1, "coordinatorKeys": [name]}),
    ]


def _of_offsets(name: str) -> list[Probe]:
    topics = [
        {"name": topic, "partitions": [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}]}
        for topic in ("pay", "other")
    ]
    who = {"groupId": name, "memberId": "", "groupInstanceId": None}
    asked = [{"name": topic, "partitionIndexes": [0]} for topic in ("pay", "other")]
    share = [{"topicName": topic, "partitions": [0]} for topic in ("pay", "other")]
    return [
        Probe("OffsetCommit", 9, {**who, "generationIdOrMemberEpoch": -1, "topics": topics}),
        Probe("OffsetFetch", 9, {"groups": [{"groupId": name, "topics": asked}], "requireStable": True}),
        Probe("OffsetFetch", 9, {"groups": [{"groupId": name, "topics": None}], "requireStable": True}),
        Probe(
            "OffsetDelete",
            0,
            {
                "groupId": name,
                "topics": [{"name": topic, "partitions": [{"partitionIndex": 0}]} for topic in ("pay", "other")],
            },
        ),
        Probe("DescribeShareGroupOffsets", 0, {"groups": [{"groupId": name, "topics": share}]}),
        Probe(
            "AlterShareGroupOffsets",
            0,
            {
                "groupId": name,
                "topics": [
                    {"topicName": topic, "partitions": [{"partitionIndex": 0, "startOffset": 0}]}
                    for topic in ("pay", "other")
                ],
            },
        ),
        Probe(
            "DeleteShareGroupOffsets",
            0,
            {"groupId": name, "topics": [{"topicName": topic} for topic in ("pay", "other")]},
        ),
    ]


def _of_topics(name: str) -> list[Probe]:
    return [
        Probe("Metadata", 12, metadata(name)),
        Probe("Metadata", 12, {**metadata(name), "topics": None}),
        Probe("DescribeTopicPartitions", 0, {"topics": [{"name": name}], "responsePartitionLimit": 10, "cursor": None}),
        Probe("Produce", 12, _produce(name)),
        Probe("Fetch", 12, _fetch(name)),
        Probe(
            "ListOffsets",
            7,
            {
                "replicaId": -1,
                "isolationLevel": 0,
                "topics": [
                    {
                        "name": name,
                        "partitions": [{"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -1}],
                    }
                ],
            },
        ),
        Probe(
            "OffsetForLeaderEpoch",
            4,
            {
                "replicaId": -1,
                "topics": [
                    {"topic": name, "partitions": [{"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": 0}]}
                ],
            },
        ),
    ]


def _of_stored_topics(name: str) -> list[Probe]:
    resource = {"resourceType": 2, "resourceName": name}
    entry = {"name": "retention.ms", "value": "1000"}
    return [
        Probe(
            "DeleteRecords",
            2,
            {"topics": [{"name": name, "partitions": [{"partitionIndex": 0, "offset": 0}]}], "timeoutMs": 1_000},
        ),
        Probe("DescribeProducers", 0, {"topics": [{"name": name, "partitionIndexes": [0]}]}),
        Probe("CreateTopics", 7, _creation(f"{name}-new")),
        Probe("DeleteTopics", 6, {"topics": [{"name": f"{name}-new", "topicId": ZERO_UUID}], "timeoutMs": 1_000}),
        Probe(
            "CreatePartitions",
            3,
            {
                "topics": [{"name": name, "count": 2, "assignments": None}],
                "timeoutMs": 1_000,
                "validateOnly": True,
            },
        ),
        *(
            Probe("DescribeConfigs", 4, {"resources": [{**each, "configurationKeys": ["retention.ms"]}]})
            for each in (resource, {**resource, "resourceType": 32}, {"resourceType": 4, "resourceName": "1"})
        ),
        Probe("AlterConfigs", 2, {"resources": [{**resource, "configs": [entry]}], "validateOnly": True}),
        Probe(
            "IncrementalAlterConfigs",
            1,
            {"resources": [{**resource, "configs": [{**entry, "configOperation": 0}]}], "validateOnly": True},
        ),
        Probe("DescribeLogDirs", 4, {"topics": [{"topic": name, "partitions": [0]}]}),
    ]


def metadata(name: str, *, creates: bool = False) -> dict[str, Any]:
    """A request for one topic, which may make it."""
    return {
        "topics": [{"topicId": ZERO_UUID, "name": name}],
        "allowAutoTopicCreation": creates,
        "includeTopicAuthorizedOperations": True,
    }


def _produce(name: str) -> dict[str, Any]:
    return {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1_000,
        "topicData": [{"name": name, "partitionData": [{"index": 0, "records": ""}]}],
    }


def _fetch(name: str) -> dict[str, Any]:
    partition = {
        "partition": 0,
        "currentLeaderEpoch": -1,
        "fetchOffset": 0,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": 1_000,
    }
    return {
        "replicaId": -1,
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1_000,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topic": name, "partitions": [partition]}],
        "forgottenTopicsData": [],
        "rackId": "",
    }


def _creation(name: str) -> dict[str, Any]:
    topic = {"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    return {"topics": [topic], "timeoutMs": 1_000, "validateOnly": True}


def _of_transactions(name: str) -> list[Probe]:
    who = {"transactionalId": name, "producerId": 4_242, "producerEpoch": 0}
    topics = [{"name": topic, "partitions": [0]} for topic in ("pay", "other")]
    committed = [
        {
            "name": topic,
            "partitions": [
                {"partitionIndex": 0, "committedOffset": 5, "committedLeaderEpoch": -1, "committedMetadata": None}
            ],
        }
        for topic in ("pay", "other")
    ]
    nothing = {"transactionTimeoutMs": 1_000, "producerId": -1, "producerEpoch": -1}
    return [
        Probe("InitProducerId", 5, {**nothing, "transactionalId": None}),
        Probe("InitProducerId", 5, {**nothing, "transactionalId": name, "producerId": 4_242, "producerEpoch": 5}),
        Probe("AddPartitionsToTxn", 3, {**_version_3(who), "v3AndBelowTopics": topics}),
        Probe("AddOffsetsToTxn", 4, {**who, "groupId": name}),
        Probe("EndTxn", 4, {**who, "committed": True}),
        Probe(
            "TxnOffsetCommit",
            4,
            {
                **who,
                "groupId": name,
                "generationIdOrMemberEpoch": -1,
                "memberId": "",
                "groupInstanceId": None,
                "topics": committed,
            },
        ),
        Probe("DescribeTransactions", 0, {"transactionalIds": [name]}),
        Probe("ListTransactions", 1, {"stateFilters": [], "producerIdFilters": [], "durationFilter": -1}),
    ]


def _version_3(who: dict[str, Any]) -> dict[str, Any]:
    return {f"v3AndBelow{key[0].upper()}{key[1:]}": value for key, value in who.items()}


def _of_cluster(name: str) -> list[Probe]:
    update = {"feature": "group.version", "maxVersionLevel": 1, "upgradeType": 1}
    return [
        Probe(
            "DescribeCluster",
            1,
            {"includeClusterAuthorizedOperations": True, "endpointType": 1},
        ),
        Probe("UpdateFeatures", 1, {"timeoutMs": 1_000, "featureUpdates": [update], "validateOnly": True}),
        Probe("ReadShareGroupState", 0, {"groupId": name, "topics": [_SHARE_STATE]}),
        Probe("DescribeAcls", 3, every_acl(principalFilter=f"User:{name}")),
    ]


def every_acl(**changed: Any) -> dict[str, Any]:
    """A filter of ACLs, which selects all but for what is named."""
    return {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
        **changed,
    }
