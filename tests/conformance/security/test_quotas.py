"""Requests about client quotas get the answers that Apache Kafka 4.4 gave them, field by field."""

from __future__ import annotations

import gzip
import json

from conformance.security.acl_sequences import ADMIN, PRINCIPALS
from conformance.security.quota_script import comparable, quota_script
from conformance.security.throttled_script import NO_TIME, TOPIC, throttled, throttled_script, worked_script
from conformance.security.throttled_script import QUOTAS as SETTING
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.driver import DrivenNode
from tests.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "security" / "quotas.jsonl.gz"


def test_answers_are_those_of_kafka() -> None:
    _, *recorded = map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines())
    driven = DrivenNode(authorizer_class_name=STANDARD_AUTHORIZER, super_users=f"User:{ADMIN};User:setup")
    for number, ((who, probe), expected) in enumerate(zip(quota_script(), recorded, strict=True)):
        request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
        driven.request(("quotas", number), request, Context(probe.version, "test", "/127.0.0.1", f"User:{who}"))
        answer = json.loads(driven.replies["quotas", number].to_json(probe.version))
        assert comparable(answer) == expected, (number, who, probe)


def test_throttle_times_are_those_of_kafka() -> None:
    lines = (ROOT / "tests" / "golden" / "security" / "throttled.jsonl").read_text().splitlines()
    _, *recorded = map(json.loads, lines)
    driven = DrivenNode(emulator_records_per_second=None)
    creation = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
    driven.ask(CreateTopicsRequest(topics=(creation,)), 7, principal="User:setup")
    found = []
    for number, (who, probe) in enumerate([(ADMIN, SETTING), *throttled_script()]):
        request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
        context = Context(probe.version, "test", "/127.0.0.1", f"User:{who}", connection=who)
        driven.request(("quotas", number), request, context)
        found.append(json.loads(driven.replies["quotas", number].to_json(probe.version)))
    for (throttle_ms, errors), (expected_ms, expected) in zip(map(throttled, found[1:]), recorded, strict=True):
        assert [list(each) for each in errors] == expected
        # A debt of changes shrinks while requests are on their way.
        assert 0 <= throttle_ms - expected_ms <= (200 if errors else 0)


def test_requests_that_count_for_a_percentage_of_time_are_those_of_kafka() -> None:
    lines = (ROOT / "tests" / "golden" / "security" / "worked.jsonl").read_text().splitlines()
    _, *recorded = map(json.loads, lines)
    driven = DrivenNode(emulator_request_time_ms=1.0)
    creation = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
    driven.ask(CreateTopicsRequest(topics=(creation,)), 7, principal="User:setup")
    found = []
    for number, (who, probe) in enumerate([(ADMIN, NO_TIME), *[(PRINCIPALS[0], each) for each in worked_script()]]):
        request = BY_NAME[probe.api].request.parse(json.dumps(probe.body), probe.version)
        context = Context(probe.version, "test", "/127.0.0.1", f"User:{who}", connection=str(number))
        driven.request(("worked", number), request, context)
        while ("worked", number) not in driven.replies:
            driven.fire()
        answer = json.loads(driven.replies["worked", number].to_json(probe.version))
        found.append([probe.api, probe.version, answer.get("throttleTimeMs")])
    assert found[1:] == recorded
