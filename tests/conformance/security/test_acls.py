"""Sequences of ACLs and requests have the outcomes that Apache Kafka's StandardAuthorizer gave them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN, CLEAR, TOPICS, outcome, sequences
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.driver import DrivenNode
from tests.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "security" / "acls.jsonl.gz"
SEQUENCES = sequences()


@cache
def recorded() -> dict[str, list[Any]]:
    _, *lines = map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines())
    return {line["sequence"]: line["answers"] for line in lines}


@pytest.fixture(scope="module")
def driven() -> DrivenNode:
    node = DrivenNode(
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=f"User:{ADMIN};User:ANONYMOUS",
        offsets_topic_num_partitions=1,
        transaction_partition_verification_enable=False,
        share_coordinator_state_topic_num_partitions=1,
        transaction_state_log_num_partitions=1,
    )
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()) for name in TOPICS
    )
    node.ask(CreateTopicsRequest(topics=topics, timeout_ms=1_000, validate_only=False), 5)
    return node


def ask(driven: DrivenNode, who: str, probe: Probe) -> Any:
    token = object()
    request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
    driven.request(token, request, Context(probe.version, "test", "/127.0.0.1", f"User:{who}"))
    while token not in driven.replies and driven.next_deadline() is not None:
        driven.fire()
    answer = json.loads(driven.replies[token].to_json(probe.version))
    return json.loads(json.dumps(outcome(answer)))


def test_every_sequence_is_recorded() -> None:
    assert list(recorded()) == list(SEQUENCES)


@pytest.mark.xdist_group("ACLs, each on what the ones before left")
@pytest.mark.parametrize("name", SEQUENCES)
def test_outcomes_are_those_of_kafka(driven: DrivenNode, name: str) -> None:
    ask(driven, *CLEAR)
    for number, ((who, probe), expected) in enumerate(zip(SEQUENCES[name], recorded()[name], strict=True)):
        assert ask(driven, who, probe) == expected, (number, who, probe)
