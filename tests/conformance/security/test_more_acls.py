"""More APIs, odd ACLs and changes of rights have the outcomes that Apache Kafka's StandardAuthorizer gave them."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from conformance.security.acl_probes import Probe, metadata
from conformance.security.acl_sequences import ADMIN, CLEAR, TOPICS, outcome
from conformance.security.acls.record import ABSENT_ID, CLOSED, ENDS_LATER, GOLDEN, Placeholders, is_pending
from conformance.security.acls.sequences import sequences
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.registry import DEFINED
from tests.coordinator.core.driver import DrivenNode
from tests.suite.cases import for_each

RECORDED = {
    line["sequence"]: line["answers"] for line in map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines()[1:])
}
SEQUENCES = sequences()
BROKER = 4
STEP_MS = 20
"""Time that a request and its answer took on the real broker, about."""
REQUESTS = {api.name: api.request for api in DEFINED.values()}


class AskedNode:
    """A node with ACLs and the topics of the recording, and what its answers say of later requests."""

    def __init__(self) -> None:
        self.driven = DrivenNode(
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users=f"User:{ADMIN};User:ANONYMOUS;User:setup",
            offsets_topic_num_partitions=1,
            transaction_partition_verification_enable=False,
            share_coordinator_state_topic_num_partitions=1,
            transaction_state_log_num_partitions=1,
            group_initial_rebalance_delay_ms=0,
            broker_id=1,
        )
        creations = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
            for name in TOPICS
        ]
        created = CreateTopicsRequest(topics=tuple(creations), timeout_ms=1_000, validate_only=False)
        self.driven.ask(created, 5)
        self.values = Placeholders({})
        self.values = Placeholders({name: self._topic_id(name) for name in TOPICS})

    def _topic_id(self, name: str) -> str:
        (topic,) = self._answer(ADMIN, Probe("Metadata", 12, metadata(name)))["topics"]
        found: str = topic["topicId"]
        return found

    def ask(self, who: str, unfilled: Probe) -> Any:
        """The outcome of a step."""
        probe = self.values.filled(unfilled)
        answer = self._answer(who, probe)
        for _ in range(3):
            if is_pending(outcome(answer)):
                self.driven.elapse(100)
                answer = self._answer(who, probe)
        self.driven.elapse(100 if probe.api in ENDS_LATER else STEP_MS)
        self.values.learn(probe, answer)
        return json.loads(json.dumps(outcome(answer)))

    def _answer(self, who: str, probe: Probe) -> Any:
        token = object()
        request = REQUESTS[probe.api].parse(json.dumps(probe.body), probe.version)
        self.driven.request(token, request, Context(probe.version, "test", "/127.0.0.1", f"User:{who}"))
        while token not in self.driven.replies and self.driven.next_deadline() is not None:
            self.driven.fire()
        return json.loads(self.driven.replies[token].to_json(probe.version))


@pytest.fixture(scope="module")
def node() -> AskedNode:
    return AskedNode()


def is_alike(probe: Probe, answer: Any, expected: Any) -> bool:
    """Whether an outcome is that of Kafka, or differs as it is meant to."""
    if answer == expected:
        return True
    if expected == CLOSED:
        return is_refusal(answer)
    match probe.api:
        case "ShareFetch" | "ShareAcknowledge":
            # Kafka fails inside where an authorizer is asked about the name of a topic that has none.
            is_absent = probe.body["topics"][0]["topicId"] == ABSENT_ID
            return is_absent and bool(expected == {"errorCode": "UNKNOWN_SERVER_ERROR"})
        case "AlterConfigs" | "IncrementalAlterConfigs":
            # A principal that may change the settings of a node learns that they cannot be changed while it runs.
            is_broker = probe.body["resources"][0]["resourceType"] == BROKER
            return is_broker and bool(answer["responses"][0]["errorCode"] == "INVALID_REQUEST")
    return False


def is_refusal(answer: Any) -> bool:
    """Whether nothing of a request was done."""
    results = answer.get("results") or answer.get("filterResults") or [answer]
    return all(result["errorCode"] != "NONE" for result in results)


def test_every_sequence_is_recorded() -> None:
    assert {name: len(steps) for name, steps in SEQUENCES.items()} == {
        name: len(answers) for name, answers in RECORDED.items()
    }


@for_each("name", SEQUENCES)
def test_outcomes_are_those_of_kafka(node: AskedNode, name: str) -> None:
    node.ask(*CLEAR)
    different = [
        (number, who, filled, answer, expected)
        for number, ((who, probe), expected) in enumerate(zip(SEQUENCES[name], RECORDED[name], strict=True))
        if not is_alike(filled := node.values.filled(probe), answer := node.ask(who, probe), expected)
    ]
    assert not different, f"{len(different)} of {len(SEQUENCES[name])}: {different[:3]}"
