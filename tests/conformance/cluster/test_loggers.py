"""Levels of a broker's loggers are listed, changed and refused as Apache Kafka 4.4 does it."""

from __future__ import annotations

import gzip
import json
from typing import Any

from conformance.cluster.logger_probes import logger_steps
from conformance.cluster.record import LOGGERS
from conformance.security.acl_probes import Probe
from conformance.security.acl_sequences import ADMIN
from rejoin.protocol.errors import ErrorCode
from tests.conformance.cluster.test_replicas import asked, prepared

MAIN_WORDS = ("log level", "logger", "operation", "ode id")
"""Parts of messages that are Kafka's here, too."""


def comparable(answer: Any) -> Any:
    """An answer without documentation, which nothing has here, and without messages in words of our own."""
    for entry in (*answer.get("results", ()), *answer.get("responses", ())):
        message = entry["errorMessage"] or ""
        if not any(words in message for words in MAIN_WORDS) or "configs" in entry or "resource type" in message:
            entry["errorMessage"] = None
        for config in entry.get("configs", ()):
            config.pop("documentation", None)
    return answer


def test_every_request_about_loggers_has_the_answer_that_kafka_gave_it() -> None:
    _, *recorded = map(json.loads, gzip.decompress(LOGGERS.read_bytes()).splitlines())
    driven = prepared()
    for number, ((who, probe), expected) in enumerate(zip(logger_steps(), recorded, strict=True)):
        assert comparable(asked(driven, number, who, probe)) == comparable(expected), (number, who, probe)


def test_a_throttle_of_reassignments_is_set_and_taken_back() -> None:
    # kafka-reassign-partitions.sh --throttle sets it, and takes it back with every --verify.
    driven = prepared()

    def altered(number: int, name: str, operation: int) -> int:
        configs = [{"name": name, "configOperation": operation, "value": None if operation else "5"}]
        resource = {"resourceType": 4, "resourceName": "1", "configs": configs}
        probe = Probe("IncrementalAlterConfigs", 1, {"resources": [resource], "validateOnly": False})
        answer = asked(driven, number, ADMIN, probe)
        error: int = answer["responses"][0]["errorCode"]
        return error

    assert altered(1, "leader.replication.throttled.rate", 1) == ErrorCode.NONE
    assert altered(2, "leader.replication.throttled.rate", 0) == ErrorCode.NONE
    assert altered(3, "leader.replication.throttled.rate", 1) == ErrorCode.NONE
