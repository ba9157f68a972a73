"""Requests about replicas, directories and the quorum get the answers that Apache Kafka 4.4 gave on a single node."""

from __future__ import annotations

import gzip
import json
from typing import Any

from conformance.cluster.record import DENIED, REPLICAS, filled
from conformance.cluster.replica_probes import CLUSTER, LOG_DIR, replica_steps
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, TOPICS
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.runtime.shards import CLUSTER_ID
from rejoin.coordinator.core.topics.node_configs import LOG_DIR as OUR_DIR
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.driver import DrivenNode

MEASURED = {
    *("totalBytes", "usableBytes", "highWatermark", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp"),
    *("host", "port", "leaderEpoch"),
}
"""Fields whose values differ from run to run."""
NAMES = ("topic", "topicName", "name")


def comparable(value: Any) -> Any:
    """Replace measured values, and sort topics: the order of Kafka's is that of a hash map."""
    if isinstance(value, dict):
        return {key: "measured" if key in MEASURED else comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        items = [comparable(each) for each in value if not is_internal(each)]
        named = [name for name in NAMES if items and isinstance(items[0], dict) and name in items[0]]
        return sorted(items, key=lambda each: str(each[named[0]])) if named else items
    if isinstance(value, str):
        return "denied" if value in {DENIED, "Cluster authorization failed."} else value
    return value


def is_internal(value: Any) -> bool:
    """Whether this is an entry of a topic that Kafka made for itself."""
    return isinstance(value, dict) and any(
        value.get(name) in {"__consumer_offsets", "__transaction_state", "t"} for name in NAMES
    )


def prepared() -> DrivenNode:
    driven = DrivenNode(
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=f"User:{ADMIN};User:setup",
        emulator_records_per_second=None,
        broker_id=1,
    )
    creations = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()) for name in TOPICS
    ]
    driven.ask(CreateTopicsRequest(topics=tuple(creations)), 7, principal="User:setup")
    return driven


def asked(driven: DrivenNode, number: int, who: str, probe: Probe) -> Any:
    """The answer of a node, with the placeholders of recordings."""
    body = filled(probe.body, {LOG_DIR: OUR_DIR, CLUSTER: CLUSTER_ID})
    request = BY_NAME[probe.api].request.parse(json.dumps(body), probe.version)
    driven.request(("cluster", number), request, Context(probe.version, "test", "/127.0.0.1", f"User:{who}"))
    text = driven.replies["cluster", number].to_json(probe.version).decode()
    return json.loads(text.replace(OUR_DIR, LOG_DIR).replace(CLUSTER_ID, CLUSTER))


def test_every_request_has_the_answer_that_kafka_gave_it() -> None:
    _, *recorded = map(json.loads, gzip.decompress(REPLICAS.read_bytes()).splitlines())
    driven = prepared()
    for number, ((who, probe), expected) in enumerate(zip(replica_steps(), recorded, strict=True)):
        answer = asked(driven, number, who, probe)
        assert comparable(answer) == comparable(expected), (number, who, probe)
