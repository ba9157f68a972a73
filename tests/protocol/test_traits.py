"""What requests are about, read from what their fields name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rejoin.protocol.registry import APIS, BY_NAME
from rejoin.protocol.request_contents.traits import Traits, entities_of, traits_of
from rejoin.protocol.types import Entity, TopicPartition

ID = "A" * 22
TOPICS = [{"name": "t", "partitions": [{"partitionIndex": 1, "committedOffset": 5, "committedMetadata": None}]}]
TP = TopicPartition("t", 1)
SUBSCRIBED = "AAAAAAABAAF0/////w=="  # version 0, the topic t, no user data

SAMPLES: list[tuple[str, int, dict[str, Any], Traits]] = [
    ("Heartbeat", 4, {"groupId": "g", "generationId": 1, "memberId": "m"}, Traits({"g"}, {"m"})),
    (
        "Heartbeat",
        4,
        {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": "i"},
        Traits({"g"}, {"m"}, {"i"}),
    ),
    (
        "JoinGroup",
        9,
        {
            "groupId": "g",
            "sessionTimeoutMs": 1,
            "memberId": "m",
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIBED}, {"name": "odd", "metadata": "AA=="}],
        },
        Traits({"g"}, {"m"}, topics={"t"}),
    ),
    (
        "SyncGroup",
        5,
        {"groupId": "g", "generationId": 1, "memberId": "m", "assignments": [{"memberId": "n", "assignment": ""}]},
        Traits({"g"}, {"m", "n"}),
    ),
    ("LeaveGroup", 2, {"groupId": "g", "memberId": "m"}, Traits({"g"}, {"m"})),
    (
        "LeaveGroup",
        5,
        {"groupId": "g", "members": [{"memberId": "m"}, {"memberId": "n", "groupInstanceId": "i"}]},
        Traits({"g"}, {"m", "n"}, {"i"}),
    ),
    ("OffsetCommit", 9, {"groupId": "g", "memberId": "", "topics": TOPICS}, Traits({"g"}, {""}, set(), {"t"}, {TP})),
    (
        "OffsetFetch",
        7,
        {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [1]}]},
        Traits({"g"}, topics={"t"}, partitions={TP}),
    ),
    (
        "OffsetFetch",
        9,
        {
            "groups": [
                {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [1]}]},
                {"groupId": "h", "topics": None},
            ]
        },
        Traits({"g", "h"}, topics={"t"}, partitions={TP}),
    ),
    ("FindCoordinator", 3, {"key": "g"}, Traits({"g"})),
    ("FindCoordinator", 4, {"coordinatorKeys": ["g", "h"]}, Traits({"g", "h"})),
    ("DescribeGroups", 6, {"groups": ["g"], "includeAuthorizedOperations": False}, Traits({"g"})),
    ("DeleteGroups", 2, {"groupsNames": ["g"]}, Traits({"g"})),
    ("ListGroups", 5, {"statesFilter": ["Stable"], "typesFilter": []}, Traits()),
    (
        "WriteTxnMarkers",
        1,
        {
            "markers": [
                {
                    "producerId": 1,
                    "producerEpoch": 0,
                    "transactionResult": True,
                    "topics": [{"name": "t", "partitionIndexes": [1]}],
                    "coordinatorEpoch": 0,
                }
            ]
        },
        Traits(topics={"t"}, partitions={TP}),
    ),
    (
        "Metadata",
        12,
        {
            "topics": [{"topicId": ID, "name": "t"}, {"topicId": ID, "name": None}],
            "includeTopicAuthorizedOperations": False,
        },
        Traits(topics={"t"}),
    ),
    ("DeleteTopics", 5, {"topicNames": ["t"], "timeoutMs": 1}, Traits(topics={"t"})),
    ("DeleteTopics", 6, {"topics": [{"name": "t", "topicId": ID}], "timeoutMs": 1}, Traits(topics={"t"})),
    (
        "CreateTopics",
        7,
        {
            "topics": [
                {
                    "name": "t",
                    "numPartitions": -1,
                    "replicationFactor": -1,
                    "assignments": [{"partitionIndex": 1, "brokerIds": [1]}],
                    "configs": [{"name": "retention.ms", "value": "1"}],
                }
            ]
        },
        Traits(topics={"t"}),
    ),
]


@pytest.mark.parametrize(
    ("api", "version", "body", "expected"), SAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_request_is_about_what_its_fields_name(
    api: str, version: int, body: dict[str, Any], expected: Traits
) -> None:
    assert traits_of(BY_NAME[api].request.parse(json.dumps(body), version), version) == expected


def test_every_version_of_a_request_that_is_about_partitions_names_their_topics() -> None:
    topics = {Entity.TOPIC_NAME, Entity.TOPIC_ID}
    without = [
        (api.name, version)
        for api in APIS
        for version in range(api.min_version, api.max_version + 1)
        if Entity.PARTITION in (named := entities_of(api.request, version)) and named.isdisjoint(topics)
    ]
    assert without == []


def test_a_topic_that_is_named_by_its_id() -> None:
    topics = [{"topicId": ID, "partitions": [{"partition": 1, "fetchOffset": 0, "partitionMaxBytes": 1}]}]
    body = {"maxWaitMs": 0, "minBytes": 0, "topics": topics, "forgottenTopicsData": []}
    request = BY_NAME["Fetch"].request.parse(json.dumps(body), 13)
    assert traits_of(request, 13, {ID: "t"}.get) == Traits(topics={"t"}, partitions={TP})
    assert traits_of(request, 13) == Traits()
