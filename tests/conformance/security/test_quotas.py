"""Requests about client quotas get the answers that Apache Kafka 4.4 gave them, field by field."""

from __future__ import annotations

import gzip
import json

from conformance.security.acl_sequences import ADMIN
from conformance.security.quota_script import comparable, quota_script
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
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
