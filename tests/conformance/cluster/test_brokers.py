"""Settings of running brokers are changed, refused and described as Apache Kafka 4.4 does it."""

from __future__ import annotations

import gzip
import json
from typing import Any

from conformance.cluster.broker_probes import broker_steps
from conformance.cluster.record import BROKERS
from conformance.security.acl_probes import Probe
from tests.conformance.cluster.test_replicas import asked, prepared

OTHERWISE = {
    # Kafka's listeners are others; here they are as at the start.
    "listener.security.protocol.map",
    "listeners",
    # Kafka compares these with other settings.
    "log.local.retention.ms",
    "log.remote.copy.lag.ms",
}
"""Settings whose values Kafka checks in other ways."""


def comparable(answer: Any) -> Any:
    """An answer with settings by name, without documentation and messages, whose words are our own."""
    for entry in (*answer.get("results", ()), *answer.get("responses", ())):
        entry["errorMessage"] = None
        for config in entry.get("configs", ()):
            config.pop("documentation", None)
        entry.get("configs", []).sort(key=lambda config: config["name"])
    return answer


def is_compared(probe: Probe) -> bool:
    return not any(
        config["name"] in OTHERWISE for resource in probe.body["resources"] for config in resource.get("configs", ())
    )


def test_every_request_about_brokers_has_the_answer_that_kafka_gave_it() -> None:
    _, *recorded = map(json.loads, gzip.decompress(BROKERS.read_bytes()).splitlines())
    driven = prepared()
    compared = 0
    for number, ((who, probe), expected) in enumerate(zip(broker_steps(), recorded, strict=True)):
        answer = asked(driven, number, who, probe)
        if is_compared(probe):
            assert comparable(answer) == comparable(expected), (number, who, probe)
            compared += 1
    assert compared > 800
