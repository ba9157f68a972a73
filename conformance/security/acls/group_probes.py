"""Requests of members, of share consumers and of share coordinators: one or several for each API."""

from __future__ import annotations

from typing import Any, Final

from conformance.security.acl_probes import Probe

MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAg"
"""The member id that clients make themselves."""
TOPICS_OF_MEMBERS: Final = ("pay", "other")


def topic_id(name: str) -> str:
    """The placeholder for a topic's id; a topic that does not exist has one that no topic has."""
    return f"$id:{name}$"


def group_probes(name: str) -> list[Probe]:
    """Requests about the group of this name, and about the topic of this name in it."""
    return [*_classic(name), *_modern(name), *_offsets(name), *_share(name), *_share_state(name)]


def joining(name: str, **changed: Any) -> Probe:
    """A JoinGroup without a member id, which version 3 does not ask for."""
    body = {
        "groupId": name,
        "sessionTimeoutMs": 300_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    return Probe("JoinGroup", 3, body | changed)


def _classic(name: str) -> list[Probe]:
    member = {"groupId": name, "memberId": "m", "generationId": 1}
    sync = {**member, "assignments": []}
    return [
        joining(name, memberId="m"),
        joining(name, sessionTimeoutMs=1),
        Probe("Heartbeat", 0, member),
        Probe("SyncGroup", 0, sync),
        Probe("SyncGroup", 5, {**sync, "protocolType": None, "protocolName": None}),
        Probe("LeaveGroup", 0, {"groupId": name, "memberId": "m"}),
        Probe("LeaveGroup", 4, {"groupId": name, "members": []}),
        Probe("FindCoordinator", 6, {"keyType": 2, "coordinatorKeys": [f"{name}:{topic_id('other')}:0"]}),
    ]


def consumer_heartbeat(name: str, **changed: Any) -> Probe:
    """A ConsumerGroupHeartbeat of a member that goes on."""
    return Probe("ConsumerGroupHeartbeat", 1, {"groupId": name, "memberId": MEMBER, "memberEpoch": 7} | changed)


def share_heartbeat(name: str, **changed: Any) -> Probe:
    """A ShareGroupHeartbeat of a member that goes on."""
    return Probe("ShareGroupHeartbeat", 1, {"groupId": name, "memberId": MEMBER, "memberEpoch": 7} | changed)


def streams_heartbeat(name: str, **changed: Any) -> Probe:
    """A StreamsGroupHeartbeat of a member that goes on."""
    member = {"groupId": name, "memberId": MEMBER, "memberEpoch": 7, "endpointInformationEpoch": -1}
    return Probe("StreamsGroupHeartbeat", 0, member | changed)


def topology(source: str, *, internal: str | None = None, repartition: str | None = None) -> dict[str, Any]:
    """A topology that reads one topic, with a changelog and a repartition topic where they are named."""
    topics = [
        []
        if each is None
        else [
            {"name": each, "partitions": 1, "replicationFactor": 1, "topicConfigs": []}
            | ({"partitions": 0} if at else {})
        ]
        for at, each in enumerate((repartition, internal))
    ]
    part = {
        "subtopologyId": "0",
        "sourceTopics": [source],
        "sourceTopicRegex": [],
        "stateChangelogTopics": topics[1],
        "repartitionSinkTopics": [each["name"] for each in topics[0]],
        "repartitionSourceTopics": topics[0],
        "copartitionGroups": [],
    }
    return {"epoch": 0, "subtopologies": [part]}


def _modern(name: str) -> list[Probe]:
    names = {"subscribedTopicNames": [name]}
    streams: dict[str, list[Any]] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
    described: dict[str, list[Any]] = {"subtopologies": [], "globalStores": []}
    return [
        consumer_heartbeat(name, subscribedTopicRegex="pay.*"),
        consumer_heartbeat(name, subscribedTopicRegex="(", **names),
        consumer_heartbeat(name, subscribedTopicNames=[]),
        consumer_heartbeat(name, **names),
        share_heartbeat(name, **names),
        share_heartbeat(name, subscribedTopicNames=None),
        streams_heartbeat(name, **streams, topology=topology(name, internal=f"{name}-log")),
        streams_heartbeat(name, **streams, topology=topology("pay", repartition="pay-again")),
        Probe(
            "StreamsGroupTopologyDescriptionUpdate",
            0,
            {"groupId": name, "memberId": MEMBER, "topologyEpoch": 1, "topologyDescription": described},
        ),
    ]


def _offsets(name: str) -> list[Probe]:
    who = {"groupId": name, "memberId": "", "groupInstanceId": None, "generationIdOrMemberEpoch": -1}
    commits = [
        {
            "topicId": topic_id(each),
            "partitions": [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}],
        }
        for each in TOPICS_OF_MEMBERS
    ]
    asked = [{"topicId": topic_id(each), "partitionIndexes": [0]} for each in TOPICS_OF_MEMBERS]
    return [
        Probe("OffsetCommit", 10, {**who, "topics": commits}),
        Probe("OffsetFetch", 10, {"groups": [{"groupId": name, "topics": asked}], "requireStable": True}),
        Probe("OffsetFetch", 10, {"groups": [{"groupId": name, "topics": None}], "requireStable": False}),
        Probe(
            "OffsetFetch",
            7,
            {"groupId": name, "topics": [{"name": each, "partitionIndexes": [0]} for each in TOPICS_OF_MEMBERS]},
        ),
        Probe(
            "TxnOffsetCommit",
            6,
            {**who, "transactionalId": name, "producerId": 4_242, "producerEpoch": 0, "topics": commits},
        ),
    ]


def _share(name: str) -> list[Probe]:
    topics = [topic_id("pay")]
    session = {"groupId": name, "memberId": MEMBER}
    fetch = {**session, "maxWaitMs": 0, "minBytes": 0, "maxRecords": 1, "batchSize": 1, "forgottenTopicsData": []}
    partitions = [{"topicId": each, "partitions": [{"partitionIndex": 0}]} for each in topics]
    batches = {"acknowledgementBatches": [{"firstOffset": 0, "lastOffset": 0, "acknowledgeTypes": [1]}]}
    acknowledged = [{"topicId": each, "partitions": [{"partitionIndex": 0, **batches}]} for each in topics]
    return [
        Probe("ShareFetch", 1, {**fetch, "shareSessionEpoch": 0, "topics": partitions}),
        Probe("ShareFetch", 2, {**fetch, "shareSessionEpoch": 5, "topics": []}),
        Probe("ShareAcknowledge", 1, {**session, "shareSessionEpoch": 1, "topics": acknowledged}),
        Probe("ShareAcknowledge", 2, {**session, "shareSessionEpoch": -1, "topics": acknowledged}),
    ]


def _share_state(name: str) -> list[Probe]:
    def asks(api: str, **partition: Any) -> Probe:
        entries = [{"topicId": topic_id("pay"), "partitions": [{"partition": 0, **partition}]}]
        return Probe(api, 0, {"groupId": f"{name}-state", "topics": entries})

    return [
        asks("InitializeShareGroupState", stateEpoch=1, startOffset=0),
        asks("ReadShareGroupState", leaderEpoch=0),
        asks("WriteShareGroupState", stateEpoch=1, leaderEpoch=0, startOffset=1, stateBatches=[]),
        asks("ReadShareGroupStateSummary", leaderEpoch=0),
        asks("DeleteShareGroupState"),
    ]
