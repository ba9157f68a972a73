"""Requests about records, transactions, settings and the cluster: one or several for each API."""

from __future__ import annotations

import base64
from typing import Any, Final

from conformance.participants.producer import batch
from conformance.security.acl_probes import Probe
from conformance.security.acls.group_probes import topic_id
from rejoin.protocol.types import ZERO_UUID

PRODUCER_ID: Final = 4_242
TYPES: Final = (2, 4, 8, 16, 32, 0, 99)
"""Kinds of resources that have settings; the last two do not exist."""


def cluster_probes(name: str) -> list[Probe]:
    """Requests about the topic, the transactional id or the resource of this name."""
    return [*_records(name), *_transactions(name), *_settings(name), *_replicas(name), *_members(name)]


def _records(name: str) -> list[Probe]:
    partition = {
        "partition": 0,
        "currentLeaderEpoch": -1,
        "fetchOffset": 0,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": 1_000,
    }
    fetch = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": 1_000, "forgottenTopicsData": []}
    ids = [{"topicId": topic_id(each), "partitions": [partition]} for each in (name, "other")]
    asked = {"topics": [{"topicId": topic_id(name), "name": None}], "includeTopicAuthorizedOperations": True}
    return [
        Probe("Fetch", 17, {**fetch, "topics": ids}),
        Probe("Produce", 13, _produce({"topicId": topic_id(name)}, "")),
        Probe("Produce", 13, _produce({"topicId": topic_id(name)}, _records_of(-1, 0))),
        Probe("Produce", 12, _produce({"name": name}, _records_of(PRODUCER_ID, 16), name)),
        Probe("Produce", 13, _produce({"topicId": topic_id(name)}, _records_of(PRODUCER_ID, 16), name)),
        Probe("Produce", 11, _produce({"name": name}, _records_of(PRODUCER_ID, 16))),
        Probe("Produce", 11, _produce({"name": name}, _records_of(-1, 0), name)),
        Probe("Metadata", 12, {**asked, "allowAutoTopicCreation": False}),
        Probe("DeleteTopics", 6, {"topics": [{"name": None, "topicId": topic_id("other")}], "timeoutMs": 1_000}),
    ]


def _records_of(producer_id: int, attributes: int) -> str:
    sequence = 0 if producer_id >= 0 else -1
    epoch = 0 if producer_id >= 0 else -1
    data = batch(producer_id, epoch, sequence, ["dg=="], attributes=attributes, baseTimestamp=-1, maxTimestamp=-1)
    return base64.b64encode(data).decode()


def _produce(topic: dict[str, Any], records: str, transactional_id: str | None = None) -> dict[str, Any]:
    partitions = {"partitionData": [{"index": 0, "records": records}]}
    wanted = {"transactionalId": transactional_id, "acks": -1, "timeoutMs": 1_000}
    return {**wanted, "topicData": [{**topic, **partitions}]}


def _transactions(name: str) -> list[Probe]:
    marker = {"producerId": PRODUCER_ID, "producerEpoch": 0, "transactionResult": True, "coordinatorEpoch": 0}
    topics = [{"name": each, "partitionIndexes": [0]} for each in ("pay", "other")]
    added = {
        "transactionalId": name,
        "producerId": PRODUCER_ID,
        "producerEpoch": 0,
        "verifyOnly": True,
        "topics": [{"name": each, "partitions": [0]} for each in ("pay", "other")],
    }
    return [
        Probe("WriteTxnMarkers", 1, {"markers": [{**marker, "topics": topics}]}),
        Probe("WriteTxnMarkers", 2, {"markers": [{**marker, "topics": topics[:1], "transactionVersion": 1}]}),
        Probe("AddPartitionsToTxn", 5, {"transactions": [added]}),
        Probe(
            "ListTransactions",
            2,
            {
                "stateFilters": [],
                "producerIdFilters": [],
                "durationFilter": -1,
                "transactionalIdPattern": f"{name}.*",
            },
        ),
    ]


def _settings(name: str) -> list[Probe]:
    found = [
        Probe("ListConfigResources", 0, {}),
        Probe("ListConfigResources", 1, {"resourceTypes": [4, 8, 16]}),
        Probe("ListConfigResources", 1, {"resourceTypes": [99]}),
    ]
    values = {
        2: ("retention.ms", "1000"),
        4: ("max.connections", "1000"),
        8: ("kafka.server.KafkaApis", "INFO"),
        16: ("interval.ms", "1000"),
        32: ("consumer.session.timeout.ms", "45000"),
    }
    for kind in TYPES:
        key, value = values.get(kind, ("a", "1"))
        resource = {"resourceType": kind, "resourceName": {4: "1", 8: "1"}.get(kind, name)}
        entry = {"name": key, "value": value}
        found += [
            Probe("AlterConfigs", 2, {"resources": [{**resource, "configs": [entry]}], "validateOnly": True}),
            Probe(
                "IncrementalAlterConfigs",
                1,
                {"resources": [{**resource, "configs": [{**entry, "configOperation": 0}]}], "validateOnly": True},
            ),
            Probe("DescribeConfigs", 4, {"resources": [{**resource, "configurationKeys": [key]}]}),
        ]
    return found


def _replicas(name: str) -> list[Probe]:
    partitions = [{"topic": name, "partitions": [0]}]
    moved = [{"name": name, "partitions": [{"partitionIndex": 0, "replicas": None}]}]
    return [
        Probe("ElectLeaders", 2, {"electionType": 0, "topicPartitions": partitions, "timeoutMs": 5_000}),
        Probe("ElectLeaders", 2, {"electionType": 1, "topicPartitions": [], "timeoutMs": 5_000}),
        Probe("AlterPartitionReassignments", 0, {"timeoutMs": 5_000, "topics": moved}),
        Probe("ListPartitionReassignments", 0, {"timeoutMs": 5_000, "topics": None}),
        Probe(
            "ListPartitionReassignments",
            0,
            {"timeoutMs": 5_000, "topics": [{"name": name, "partitionIndexes": [0]}]},
        ),
        Probe(
            "AlterReplicaLogDirs", 2, {"dirs": [{"path": "/nowhere", "topics": [{"name": name, "partitions": [0]}]}]}
        ),
        Probe("DescribeLogDirs", 4, {"topics": []}),
        Probe(
            "DescribeQuorum",
            2,
            {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]},
        ),
    ]


def _members(name: str) -> list[Probe]:
    entity = [{"entityType": "user", "entityName": name}]
    operation = {"key": "producer_byte_rate", "value": 1.0, "remove": False}
    match = {"entityType": "user", "matchType": 0, "match": name}
    voter = {"clusterId": "other", "voterId": 9, "voterDirectoryId": ZERO_UUID}
    return [
        Probe("UnregisterBroker", 0, {"brokerId": 99}),
        Probe("UnregisterController", 0, {"controllerId": 99}),
        Probe("AddRaftVoter", 0, {**voter, "timeoutMs": 1_000, "listeners": []}),
        Probe("RemoveRaftVoter", 0, voter),
        Probe(
            "DescribeCluster",
            2,
            {"includeClusterAuthorizedOperations": True, "endpointType": 2, "includeFencedBrokers": False},
        ),
        Probe("DescribeClientQuotas", 1, {"components": [match], "strict": True}),
        Probe("AlterClientQuotas", 1, {"entries": [{"entity": entity, "ops": [operation]}], "validateOnly": True}),
        Probe("DescribeUserScramCredentials", 0, {"users": [{"name": name}]}),
        Probe("AlterUserScramCredentials", 0, {"deletions": [{"name": name, "mechanism": 1}], "upsertions": []}),
    ]
