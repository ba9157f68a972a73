"""Turns a step into a request: what the step says, what the client remembers, and usual values for the rest."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from rejoin.conform.player.messages import ZERO_ID, Json, has_field
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.types import TopicPartition

Step: TypeAlias = dict[str, Any]

DEFAULT_TOPIC: Final = "orders"
SESSION_MS: Final = 20_000
REBALANCE_MS: Final = 20_000
NOT_FIELDS: Final = frozenset(
    {"version", "claims", "parks", "expect", "give", "offsets", "partitions", "broker", "key"}
)
"""Words of a step that are not fields of Kafka's."""

NEWEST: Final = {"ApiVersions": 4, "DeleteGroups": 2, "OffsetCommit": 9, "OffsetFetch": 9, "TxnOffsetCommit": 5}
"""Newest versions for which bodies are written here, where Kafka has newer ones: those name topics by id."""


class BadScript(ValueError):
    """A script that cannot be read; the text names it."""


@dataclass
class StepClient:
    """Settings of a client, and the values that it has learned from answers."""

    name: str
    says: dict[str, Any] = field(default_factory=dict)
    member_id: str = ""
    generation: int = -1
    protocol_name: str | None = None
    producer_id: int = 7
    producer_epoch: int = 0

    def forget(self) -> None:
        self.member_id, self.generation, self.protocol_name = "", -1, None

    def learn(self, api: str, answer: Json) -> None:
        """Take from an answer what the next requests need."""
        if api in ("InitProducerId", "EndTxn") and answer.get("producerId", -1) >= 0:
            self.producer_id, self.producer_epoch = answer["producerId"], answer["producerEpoch"]
        if api != "JoinGroup":
            return
        if answer["memberId"]:
            self.member_id = answer["memberId"]
        if answer["errorCode"] == 0:
            self.generation = answer["generationId"]
            self.protocol_name = answer["protocolName"]


@dataclass
class StepRequest:
    """The request of a step, before its body is written."""

    group: str
    client: StepClient
    clients: dict[str, StepClient]
    step: Step
    version: int
    offsets_partition: int

    def get(self, name: str, default: Any) -> Any:
        """A field: from the step, from what the client always says, or the usual value."""
        value = self.step[name] if name in self.step else self.client.says.get(name, default)
        return self.named(value)

    def named(self, value: Any) -> Any:
        """``$b`` is b's member id."""
        if isinstance(value, str) and value.startswith("$"):
            return self.clients[value[1:]].member_id
        if isinstance(value, list):
            return [self.named(item) for item in value]
        if isinstance(value, dict):
            return {key: self.named(item) for key, item in value.items()}
        return value


def request_body(request: StepRequest, api: str) -> Json:
    """The body of the request, with exactly the fields that its version has."""
    body = _BODIES[api](request) if api in _BODIES else {}
    for name, value in request.step.items():
        if name not in NOT_FIELDS and name != request.client.name and name not in body:
            body[name] = request.named(value)
    return _only_carried(body, api, request)


def _only_carried(body: Json, api: str, request: StepRequest) -> Json:
    """Leave out usual values that this version has no field for. What the step itself says stays."""
    return {
        name: value for name, value in body.items() if name in request.step or has_field(api, request.version, name)
    }


# --- what each request says


def _join(request: StepRequest) -> Json:
    protocols = request.get("protocols", {"range": DEFAULT_TOPIC})
    if isinstance(protocols, dict):
        protocols = [{"name": name, "metadata": subscription(topics)} for name, topics in protocols.items()]
    request.step.pop("protocols", None)
    return {
        "groupId": request.get("groupId", request.group),
        "sessionTimeoutMs": request.get("sessionTimeoutMs", SESSION_MS),
        "rebalanceTimeoutMs": request.get("rebalanceTimeoutMs", REBALANCE_MS),
        "memberId": request.get("memberId", request.client.member_id),
        "groupInstanceId": request.get("groupInstanceId", None),
        "protocolType": request.get("protocolType", "consumer"),
        "protocols": protocols,
        "reason": request.get("reason", None),
    }


def _sync(request: StepRequest) -> Json:
    given = request.step.get("give", {})
    assignments = [
        {"memberId": request.named(f"${name}"), "assignment": assignment(share)} for name, share in given.items()
    ]
    return {
        **_membership(request),
        "protocolType": request.get("protocolType", "consumer"),
        "protocolName": request.get("protocolName", request.client.protocol_name or "range"),
        "assignments": request.get("assignments", assignments),
    }


def _membership(request: StepRequest) -> Json:
    return {
        "groupId": request.get("groupId", request.group),
        "generationId": request.get("generationId", request.client.generation),
        "memberId": request.get("memberId", request.client.member_id),
        "groupInstanceId": request.get("groupInstanceId", None),
    }


def _leave(request: StepRequest) -> Json:
    one = {"memberId": request.get("memberId", request.client.member_id)}
    if request.version < 3:
        return {"groupId": request.get("groupId", request.group), **one}
    one["groupInstanceId"] = request.get("groupInstanceId", None)
    if request.version >= 5:
        one["reason"] = request.get("reason", None)
    for name in ("memberId", "groupInstanceId", "reason"):
        request.step.pop(name, None)
    usual = {"groupInstanceId": None, "memberId": "", **({"reason": None} if request.version >= 5 else {})}
    members = [{**usual, **member} for member in request.get("members", [one])]
    request.step.pop("members", None)
    return {"groupId": request.get("groupId", request.group), "members": members}


def _commit(request: StepRequest) -> Json:
    return {
        "groupId": request.get("groupId", request.group),
        "generationIdOrMemberEpoch": request.get("generationIdOrMemberEpoch", request.client.generation),
        "memberId": request.get("memberId", request.client.member_id),
        "groupInstanceId": request.get("groupInstanceId", None),
        "retentionTimeMs": request.get("retentionTimeMs", -1),
        "topics": _committed(request, since_leader_epoch=6),
    }


def _txn_commit(request: StepRequest) -> Json:
    return {
        "transactionalId": request.get("transactionalId", request.group),
        **_membership(request),
        "producerId": request.get("producerId", request.client.producer_id),
        "producerEpoch": request.get("producerEpoch", request.client.producer_epoch),
        "topics": _committed(request, since_leader_epoch=2),
    }


def _committed(request: StepRequest, since_leader_epoch: int) -> list[Json]:
    if "topics" in request.step:
        return list(request.named(request.step["topics"]))
    offsets: dict[str, Any] = request.step.get("offsets", {f"{DEFAULT_TOPIC}-0": 1})

    def entry(name: str, index: int) -> Json:
        given = offsets[f"{name}-{index}"]
        more = given if isinstance(given, dict) else {"offset": given}
        leader_epoch = {"committedLeaderEpoch": more.get("leaderEpoch", -1)}
        return {
            "partitionIndex": index,
            "committedOffset": more["offset"],
            **(leader_epoch if request.version >= since_leader_epoch else {}),
            "committedMetadata": more.get("metadata", ""),
        }

    return [
        {"name": topic, "partitions": [entry(topic, index) for index in indexes]}
        for topic, indexes in _by_topic(offsets).items()
    ]


def _fetch(request: StepRequest) -> Json:
    wanted = request.step.get("partitions", f"{DEFAULT_TOPIC}-0")
    topics = None
    if wanted != "all":
        topics = [{"name": topic, "partitionIndexes": indexes} for topic, indexes in _by_topic(wanted.split()).items()]
    if request.version < 8:
        return {
            "groupId": request.get("groupId", request.group),
            "topics": topics,
            "requireStable": request.get("requireStable", False),
        }
    ids = request.get("groups", [request.get("groupId", request.group)])
    for name in ("groups", "groupId"):
        request.step.pop(name, None)
    extra = {"memberId": None, "memberEpoch": -1} if request.version >= 9 else {}
    return {
        "groups": [one if isinstance(one, dict) else {"groupId": one, **extra, "topics": topics} for one in ids],
        "requireStable": request.get("requireStable", False),
    }


def _offset_delete(request: StepRequest) -> Json:
    wanted = request.step.get("partitions", f"{DEFAULT_TOPIC}-0").split()
    return {
        "groupId": request.get("groupId", request.group),
        "topics": [
            {"name": topic, "partitions": [{"partitionIndex": index} for index in indexes]}
            for topic, indexes in _by_topic(wanted).items()
        ],
    }


def _find(request: StepRequest) -> Json:
    keys = [str(one) for one in request.step.get("key", request.group).split()]
    if request.step.get("key") == "":
        keys = [""]
    key = {"coordinatorKeys": keys} if request.version >= 4 else {"key": keys[0]}
    return {"keyType": request.get("keyType", 0), **key}


def _describe(request: StepRequest) -> Json:
    return {
        "groups": request.get("groups", [request.group]),
        "includeAuthorizedOperations": request.get("includeAuthorizedOperations", False),
    }


def _list_offsets(request: StepRequest) -> Json:
    wanted: dict[str, int] = request.step.get("offsets", {f"{DEFAULT_TOPIC}-0": -1})

    def entry(name: str, index: int) -> Json:
        epoch = {"currentLeaderEpoch": -1} if request.version >= 4 else {}
        return {"partitionIndex": index, **epoch, "timestamp": wanted[f"{name}-{index}"]}

    return {
        "replicaId": -1,
        "isolationLevel": 0,
        "timeoutMs": 1000,
        "topics": [
            {"name": topic, "partitions": [entry(topic, index) for index in indexes]}
            for topic, indexes in _by_topic(wanted).items()
        ],
    }


def _metadata(request: StepRequest) -> Json:
    names = request.step.get("topics", [DEFAULT_TOPIC])
    more = {"topicId": ZERO_ID} if request.version >= 10 else {}
    request.step.pop("topics", None)
    ids = request.step.pop("topicIds", None)
    by_id = [{"topicId": topic_id, "name": None} for topic_id in ids or ()]
    return {
        "topics": by_id or (None if names is None else [{**more, "name": name} for name in names]),
        "allowAutoTopicCreation": request.get("allowAutoTopicCreation", False),
        "includeClusterAuthorizedOperations": request.get("includeClusterAuthorizedOperations", False),
        "includeTopicAuthorizedOperations": request.get("includeTopicAuthorizedOperations", False),
    }


def _create_topics(request: StepRequest) -> Json:
    usual = {"numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    topics = [{**usual, **topic} for topic in request.step.pop("topics")]
    return {"topics": topics, "timeoutMs": 5000, "validateOnly": request.get("validateOnly", False)}


def _delete_topics(request: StepRequest) -> Json:
    names = request.step.pop("topics", [])
    ids = request.step.pop("topicIds", None)
    if ids is not None:
        return {"topics": [{"name": None, "topicId": topic_id} for topic_id in ids], "timeoutMs": 5000}
    if request.version >= 6:
        return {"topics": [{"name": name, "topicId": ZERO_ID} for name in names], "timeoutMs": 5000}
    return {"topicNames": names, "timeoutMs": 5000}


def _create_partitions(request: StepRequest) -> Json:
    topics = [{"assignments": None, **topic} for topic in request.step.pop("topics")]
    return {"topics": topics, "timeoutMs": 5000, "validateOnly": request.get("validateOnly", False)}


def _describe_configs(request: StepRequest) -> Json:
    resources = [{"configurationKeys": None, **resource} for resource in request.step.pop("resources")]
    return {
        "resources": resources,
        "includeSynonyms": request.get("includeSynonyms", False),
        "includeDocumentation": request.get("includeDocumentation", False),
    }


def _alter_configs(request: StepRequest) -> Json:
    return {"resources": request.step.pop("resources"), "validateOnly": request.get("validateOnly", False)}


def _markers(request: StepRequest) -> Json:
    """End the transaction of ``producerId`` on the group's offsets partition."""
    marker = {
        "producerId": request.step.pop("producerId", request.client.producer_id),
        "producerEpoch": request.step.pop("producerEpoch", request.client.producer_epoch),
        "transactionResult": request.step.pop("commit"),
        "topics": [
            {"name": "__consumer_offsets", "partitionIndexes": [request.offsets_partition]},
        ],
        "coordinatorEpoch": 0,
    }
    if request.version >= 2:
        marker["transactionVersion"] = 0
    return {"markers": [marker]}


_BODIES: Final[dict[str, Callable[[StepRequest], Json]]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _membership,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch,
    "OffsetDelete": _offset_delete,
    "TxnOffsetCommit": _txn_commit,
    "WriteTxnMarkers": _markers,
    "FindCoordinator": _find,
    "DescribeGroups": _describe,
    "ListGroups": lambda request: {
        "statesFilter": request.get("statesFilter", []),
        "typesFilter": request.get("typesFilter", []),
    },
    "DeleteGroups": lambda request: {"groupsNames": request.get("groupsNames", [request.group])},
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _alter_configs,
    "InitProducerId": lambda request: {
        "transactionalId": request.group,
        "transactionTimeoutMs": 60_000,
        "producerId": -1,
        "producerEpoch": -1,
    },
    "EndTxn": lambda request: {
        "transactionalId": request.group,
        "producerId": request.client.producer_id,
        "producerEpoch": request.client.producer_epoch,
        "committed": request.step.pop("commit"),
    },
    "AddOffsetsToTxn": lambda request: {
        "transactionalId": request.group,
        "producerId": request.client.producer_id,
        "producerEpoch": request.client.producer_epoch,
        "groupId": request.group,
    },
    "ApiVersions": lambda _: {"clientSoftwareName": "conformance", "clientSoftwareVersion": "1"},
}


# --- bytes and names


def subscription(topics: str | dict[str, str]) -> str:
    """Topics, separated by spaces, as a subscription; ``{raw: base64}`` as it stands."""
    if isinstance(topics, dict):
        return topics["raw"]
    return base64.b64encode(encode_subscription(Subscription(topics=tuple(topics.split())))).decode()


def assignment(partitions: str) -> str:
    """Partitions, separated by spaces, as an assignment."""
    owned = tuple(
        TopicPartition(topic, index) for topic, indexes in _by_topic(partitions.split()).items() for index in indexes
    )
    return base64.b64encode(encode_assignment(Assignment(owned))).decode()


def _by_topic(partitions: Iterable[str]) -> dict[str, list[int]]:
    """``orders-0 orders-1`` by topic, in the order of first appearance."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topic, dash, index = partition.rpartition("-")
        if not dash or not index.isdigit():
            raise BadScript(f"{partition!r} is not a partition")
        topics.setdefault(topic, []).append(int(index))
    return topics
