"""First requests of users with quotas. How long a broker throttles them depends on sizes and limits alone.

With a percentage of time that any request exceeds, the throttle time is that of one window.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from conformance.security.acl_probes import NAMES, Probe, probes
from conformance.security.acl_sequences import PRINCIPALS, Step
from conformance.security.quota_script import alter, alteration
from rejoin.protocol.wire.record_batch import MAGIC, BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records

TOPIC: Final = "pay"
_AT: Final = 1_700_000_000_000
_ALICE, _BOB, _CAROL, _DAVE, _ERIN = PRINCIPALS

QUOTAS: Final[Probe] = alter(
    1,
    alteration({"user": _ALICE}, {"producer_byte_rate": 1_000.0}),
    alteration({"user": _BOB}, {"producer_byte_rate": 100_000.0}),
    alteration({"user": _CAROL}, {"consumer_byte_rate": 50.0}),
    alteration({"user": _DAVE}, {"controller_mutation_rate": 0.5}),
    alteration({"user": _ERIN}, {"controller_mutation_rate": 0.5}),
)

NO_TIME: Final[Probe] = alter(1, alteration({"user": _ALICE}, {"request_percentage": 0.000_01}))
"""Leaves one user less time than any request takes."""


def worked_script() -> list[Probe]:
    """Requests of the user without time, each on a connection of its own."""
    return [
        *probes(NAMES[0]),
        Probe("ApiVersions", 3, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}),
        Probe("ApiVersions", 0, {}),
        Probe("Heartbeat", 0, {"groupId": "pay", "generationId": 1, "memberId": "m"}),
        Probe("WriteTxnMarkers", 1, {"markers": []}),
        Probe("DescribeTopicPartitions", 0, {"topics": [{"name": TOPIC}], "responsePartitionLimit": 10}),
        Probe("Fetch", 12, {**_fetch().body, "replicaId": 1}),
    ]


def throttled_script() -> list[Step]:
    """Steps after :data:`QUOTAS`."""
    return [
        (_BOB, _produce()),
        (_ALICE, _produce()),
        (_CAROL, _fetch()),
        (_DAVE, _create(7, 2)),
        (_DAVE, _create(7, 8)),
        (_DAVE, _create(6, 1)),
        (_ERIN, _create(5, 8)),
    ]


def _produce() -> Probe:
    batch = BatchHeader(0, 0, -1, MAGIC, 0, 0, 0, _AT, _AT, -1, -1, -1, 1)
    data = sealed(batch, write_records([DefaultRecord(0, 0, None, b"x" * 20_000)]))
    records = base64.b64encode(data).decode()
    topic = {"name": TOPIC, "partitionData": [{"index": 0, "records": records}]}
    body = {"transactionalId": None, "acks": 1, "timeoutMs": 1_000, "topicData": [topic]}
    return Probe("Produce", 12, body)


def _fetch() -> Probe:
    partition = {
        "partition": 0,
        "currentLeaderEpoch": -1,
        "fetchOffset": 0,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": 100_000,
    }
    body: dict[str, Any] = {
        "replicaId": -1,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
        "forgottenTopicsData": [],
        "rackId": "",
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 100_000,
        "topics": [{"topic": TOPIC, "partitions": [partition]}],
    }
    return Probe("Fetch", 12, body)


def _create(version: int, partitions: int) -> Probe:
    topic = {"name": "new", "numPartitions": partitions, "replicationFactor": 1, "assignments": [], "configs": []}
    return Probe("CreateTopics", version, {"topics": [topic], "timeoutMs": 1_000, "validateOnly": True})


def throttled(answer: Any) -> tuple[int, list[tuple[int, str | None]]]:
    """The throttle time of an answer in milliseconds, and the error of each topic that it was to make."""
    topics = answer.get("topics", ())
    return answer["throttleTimeMs"], [(topic["errorCode"], topic["errorMessage"]) for topic in topics]
