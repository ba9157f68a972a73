"""Turns a step into a request: what the step says, what the client remembers, and usual values for the rest."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from conformance import wire
from conformance.script import BadScript, Step
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.types import TopicPartition

DEFAULT_TOPIC: Final = "orders"
SESSION_MS: Final = 20_000
REBALANCE_MS: Final = 20_000
NOT_FIELDS: Final = frozenset(
    {"version", "claims", "parks", "expect", "give", "offsets", "partitions", "broker", "key"}
)
"""Words of a step that are not fields of Kafka's."""


@dataclass
class Client:
    """What a client knows: its settings, and what it has learned."""

    name: str
    says: dict[str, Any] = field(default_factory=dict)
    member_id: str = ""
    generation: int = -1
    protocol_name: str | None = None
    producer_id: int = 7
    producer_epoch: int = 0

    def forget(self) -> None:
        self.member_id, self.generation, self.protocol_name = "", -1, None

    def learn(self, api: str, answer: wire.Json) -> None:
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
class Asking:
    """A step on its way to a request."""

    group: str
    client: Client
    clients: dict[str, Client]
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


def fill(asking: Asking, api: str, key: int) -> wire.Json:
    """The body of the request, with exactly the fields that its version has."""
    body = _FILL[api](asking) if api in _FILL else {}
    for name, value in asking.step.items():
        if name not in NOT_FIELDS and name != asking.client.name and name not in body:
            body[name] = asking.named(value)
    return _only_carried(body, key, asking)


def _only_carried(body: wire.Json, key: int, asking: Asking) -> wire.Json:
    """Leave out usual values that this version has no field for. What the step itself says stays."""
    return {
        name: value for name, value in body.items() if name in asking.step or wire.has_field(key, asking.version, name)
    }


# --- what each request says


def _join(asking: Asking) -> wire.Json:
    protocols = asking.get("protocols", {"range": DEFAULT_TOPIC})
    if isinstance(protocols, dict):
        protocols = [{"name": name, "metadata": subscription(topics)} for name, topics in protocols.items()]
    asking.step.pop("protocols", None)
    return {
        "groupId": asking.get("groupId", asking.group),
        "sessionTimeoutMs": asking.get("sessionTimeoutMs", SESSION_MS),
        "rebalanceTimeoutMs": asking.get("rebalanceTimeoutMs", REBALANCE_MS),
        "memberId": asking.get("memberId", asking.client.member_id),
        "groupInstanceId": asking.get("groupInstanceId", None),
        "protocolType": asking.get("protocolType", "consumer"),
        "protocols": protocols,
        "reason": asking.get("reason", None),
    }


def _sync(asking: Asking) -> wire.Json:
    given = asking.step.get("give", {})
    assignments = [
        {"memberId": asking.named(f"${name}"), "assignment": assignment(share)} for name, share in given.items()
    ]
    return {
        **_membership(asking),
        "protocolType": asking.get("protocolType", "consumer"),
        "protocolName": asking.get("protocolName", asking.client.protocol_name or "range"),
        "assignments": asking.get("assignments", assignments),
    }


def _membership(asking: Asking) -> wire.Json:
    return {
        "groupId": asking.get("groupId", asking.group),
        "generationId": asking.get("generationId", asking.client.generation),
        "memberId": asking.get("memberId", asking.client.member_id),
        "groupInstanceId": asking.get("groupInstanceId", None),
    }


def _leave(asking: Asking) -> wire.Json:
    one = {"memberId": asking.get("memberId", asking.client.member_id)}
    if asking.version < 3:
        return {"groupId": asking.get("groupId", asking.group), **one}
    one["groupInstanceId"] = asking.get("groupInstanceId", None)
    if asking.version >= 5:
        one["reason"] = asking.get("reason", None)
    for name in ("memberId", "groupInstanceId", "reason"):
        asking.step.pop(name, None)
    usual = {"groupInstanceId": None, "memberId": "", **({"reason": None} if asking.version >= 5 else {})}
    members = [{**usual, **member} for member in asking.get("members", [one])]
    asking.step.pop("members", None)
    return {"groupId": asking.get("groupId", asking.group), "members": members}


def _commit(asking: Asking) -> wire.Json:
    return {
        "groupId": asking.get("groupId", asking.group),
        "generationIdOrMemberEpoch": asking.get("generationIdOrMemberEpoch", asking.client.generation),
        "memberId": asking.get("memberId", asking.client.member_id),
        "groupInstanceId": asking.get("groupInstanceId", None),
        "retentionTimeMs": asking.get("retentionTimeMs", -1),
        "topics": _committed(asking, since_leader_epoch=6),
    }


def _txn_commit(asking: Asking) -> wire.Json:
    return {
        "transactionalId": asking.get("transactionalId", asking.group),
        **_membership(asking),
        "producerId": asking.get("producerId", asking.client.producer_id),
        "producerEpoch": asking.get("producerEpoch", asking.client.producer_epoch),
        "topics": _committed(asking, since_leader_epoch=2),
    }


def _committed(asking: Asking, since_leader_epoch: int) -> list[wire.Json]:
    if "topics" in asking.step:
        return list(asking.named(asking.step["topics"]))
    offsets: dict[str, Any] = asking.step.get("offsets", {f"{DEFAULT_TOPIC}-0": 1})

    def entry(name: str, index: int) -> wire.Json:
        given = offsets[f"{name}-{index}"]
        more = given if isinstance(given, dict) else {"offset": given}
        leader_epoch = {"committedLeaderEpoch": more.get("leaderEpoch", -1)}
        return {
            "partitionIndex": index,
            "committedOffset": more["offset"],
            **(leader_epoch if asking.version >= since_leader_epoch else {}),
            "committedMetadata": more.get("metadata", ""),
        }

    return [
        {"name": topic, "partitions": [entry(topic, index) for index in indexes]}
        for topic, indexes in _by_topic(offsets).items()
    ]


def _fetch(asking: Asking) -> wire.Json:
    wanted = asking.step.get("partitions", f"{DEFAULT_TOPIC}-0")
    topics = None
    if wanted != "all":
        topics = [{"name": topic, "partitionIndexes": indexes} for topic, indexes in _by_topic(wanted.split()).items()]
    if asking.version < 8:
        return {
            "groupId": asking.get("groupId", asking.group),
            "topics": topics,
            "requireStable": asking.get("requireStable", False),
        }
    ids = asking.get("groups", [asking.get("groupId", asking.group)])
    for name in ("groups", "groupId"):
        asking.step.pop(name, None)
    extra = {"memberId": None, "memberEpoch": -1} if asking.version >= 9 else {}
    return {
        "groups": [one if isinstance(one, dict) else {"groupId": one, **extra, "topics": topics} for one in ids],
        "requireStable": asking.get("requireStable", False),
    }


def _offset_delete(asking: Asking) -> wire.Json:
    wanted = asking.step.get("partitions", f"{DEFAULT_TOPIC}-0").split()
    return {
        "groupId": asking.get("groupId", asking.group),
        "topics": [
            {"name": topic, "partitions": [{"partitionIndex": index} for index in indexes]}
            for topic, indexes in _by_topic(wanted).items()
        ],
    }


def _find(asking: Asking) -> wire.Json:
    keys = [str(one) for one in asking.step.get("key", asking.group).split()]
    if asking.step.get("key") == "":
        keys = [""]
    key = {"coordinatorKeys": keys} if asking.version >= 4 else {"key": keys[0]}
    return {"keyType": asking.get("keyType", 0), **key}


def _describe(asking: Asking) -> wire.Json:
    return {
        "groups": asking.get("groups", [asking.group]),
        "includeAuthorizedOperations": asking.get("includeAuthorizedOperations", False),
    }


def _list_offsets(asking: Asking) -> wire.Json:
    wanted: dict[str, int] = asking.step.get("offsets", {f"{DEFAULT_TOPIC}-0": -1})

    def entry(name: str, index: int) -> wire.Json:
        epoch = {"currentLeaderEpoch": -1} if asking.version >= 4 else {}
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


def _metadata(asking: Asking) -> wire.Json:
    names = asking.step.get("topics", [DEFAULT_TOPIC])
    more = {"topicId": wire.ZERO_UUID} if asking.version >= 10 else {}
    asking.step.pop("topics", None)
    ids = asking.step.pop("topicIds", None)
    by_id = [{"topicId": topic_id, "name": None} for topic_id in ids or ()]
    return {
        "topics": by_id or (None if names is None else [{**more, "name": name} for name in names]),
        "allowAutoTopicCreation": asking.get("allowAutoTopicCreation", False),
        "includeClusterAuthorizedOperations": asking.get("includeClusterAuthorizedOperations", False),
        "includeTopicAuthorizedOperations": asking.get("includeTopicAuthorizedOperations", False),
    }


def _create_topics(asking: Asking) -> wire.Json:
    usual = {"numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    topics = [{**usual, **topic} for topic in asking.step.pop("topics")]
    return {"topics": topics, "timeoutMs": 5000, "validateOnly": asking.get("validateOnly", False)}


def _delete_topics(asking: Asking) -> wire.Json:
    names = asking.step.pop("topics", [])
    ids = asking.step.pop("topicIds", None)
    if ids is not None:
        return {"topics": [{"name": None, "topicId": topic_id} for topic_id in ids], "timeoutMs": 5000}
    if asking.version >= 6:
        return {"topics": [{"name": name, "topicId": wire.ZERO_UUID} for name in names], "timeoutMs": 5000}
    return {"topicNames": names, "timeoutMs": 5000}


def _create_partitions(asking: Asking) -> wire.Json:
    topics = [{"assignments": None, **topic} for topic in asking.step.pop("topics")]
    return {"topics": topics, "timeoutMs": 5000, "validateOnly": asking.get("validateOnly", False)}


def _markers(asking: Asking) -> wire.Json:
    """End the transaction of ``producerId`` on the group's offsets partition."""
    marker = {
        "producerId": asking.step.pop("producerId", asking.client.producer_id),
        "producerEpoch": asking.step.pop("producerEpoch", asking.client.producer_epoch),
        "transactionResult": asking.step.pop("commit"),
        "topics": [
            {"name": "__consumer_offsets", "partitionIndexes": [asking.offsets_partition]},
        ],
        "coordinatorEpoch": 0,
    }
    if asking.version >= 2:
        marker["transactionVersion"] = 0
    return {"markers": [marker]}


_FILL: Final[dict[str, Callable[[Asking], wire.Json]]] = {
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
    "ListGroups": lambda asking: {
        "statesFilter": asking.get("statesFilter", []),
        "typesFilter": asking.get("typesFilter", []),
    },
    "DeleteGroups": lambda asking: {"groupsNames": asking.get("groupsNames", [asking.group])},
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "InitProducerId": lambda asking: {
        "transactionalId": asking.group,
        "transactionTimeoutMs": 60_000,
        "producerId": -1,
        "producerEpoch": -1,
    },
    "EndTxn": lambda asking: {
        "transactionalId": asking.group,
        "producerId": asking.client.producer_id,
        "producerEpoch": asking.client.producer_epoch,
        "committed": asking.step.pop("commit"),
    },
    "AddOffsetsToTxn": lambda asking: {
        "transactionalId": asking.group,
        "producerId": asking.client.producer_id,
        "producerEpoch": asking.client.producer_epoch,
        "groupId": asking.group,
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
