"""Requests about metrics of clients get the answers that Apache Kafka 4.4 gave them, field by field.

One broker had a receiver of metrics, and one was as it is delivered: it does not list the requests, and answers them.
"""

from __future__ import annotations

import gzip
import json
import sys
from typing import Any

import pytest

from conformance.security.acl_sequences import ADMIN
from conformance.telemetry.script import (
    SOFTWARE,
    TELEMETRY_MAX_BYTES,
    TimedProbe,
    comparable,
    telemetry_script,
)
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.settings.security import STANDARD_AUTHORIZER
from rejoin.protocol.registry import DEFINED
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import DrivenNode
from tests.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "telemetry"
INTERNAL = ("__consumer_offsets", "__transaction_state")
API = {api.name: api for api in DEFINED.values()}


def answer_to(driven: DrivenNode, number: int, step: TimedProbe) -> Any:
    """The answer of our node to a step."""
    who, (name, version, body), after_ms = step
    driven.elapse(after_ms)
    request = API[name].request.parse(json.dumps(body), version)
    software = " ".join(SOFTWARE)
    context = Context(version, "test", "/127.0.0.1", f"User:{who}", client_port=50_000, software=software)
    driven.request(("telemetry", number), request, context)
    return json.loads(driven.replies["telemetry", number].to_json(version))


def compared(step: TimedProbe, answer: Any) -> Any:
    """An answer as it is compared: without ids that are drawn, and topics that a broker makes for itself."""
    found = comparable(answer)
    if step.probe.body.get("clientInstanceId") == ZERO_UUID and "subscriptionId" in found:
        found |= {"clientInstanceId": "", "subscriptionId": 0}
    if "configResources" in found:
        resources = found["configResources"]
        found["configResources"] = [each for each in resources if each["resourceName"] not in INTERNAL]
    return found


@pytest.mark.parametrize(("name", "receives"), [("script", True), ("stock", False)])
def test_answers_are_those_of_kafka(name: str, receives: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not receives:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)  # metrics that are dropped need no decoder
    recording = (GOLDEN / f"{name}.jsonl.gz").read_bytes()
    _, *recorded = map(json.loads, gzip.decompress(recording).splitlines())
    driven = DrivenNode(
        broker_id=1,
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=f"User:{ADMIN};User:setup",
        emulator_client_telemetry=receives,
        telemetry_max_bytes=TELEMETRY_MAX_BYTES,
    )
    script = telemetry_script()
    step = next(script)
    for number, expected in enumerate(recorded):
        answer = answer_to(driven, number, step)
        assert compared(step, answer) == compared(step, expected), (number, step)
        try:
            step = script.send(answer)
        except StopIteration:
            assert number == len(recorded) - 1
            break
