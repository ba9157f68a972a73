"""Scripts that were recorded on Apache Kafka 4.4, played on a node: every reply is equal, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from tests.coordinator.core.share.broker_scripts import ScriptPlayer, comparable, scripts
from tests.paths import GOLDEN

RANDOM = scripts(GOLDEN / "share-groups" / "broker-random.jsonl.gz")
WRITTEN = scripts(GOLDEN / "share-groups" / "broker-scripts.jsonl.gz")


def differences(script: dict[str, Any]) -> list[tuple[int, Any, Any]]:
    """Numbers of steps with other replies than recorded, up to the first, with both replies."""
    player = ScriptPlayer()
    named = {step["body"].get("groupId") for step in script["steps"] if "body" in step}
    for number, step in enumerate(script["steps"]):
        reply = player.play(step)
        expected = player.expected(step)
        if step.get("api") == "ListGroups":
            # The recorded broker had the groups of other scripts as well.
            expected = expected | {"groups": [each for each in expected["groups"] if each["groupId"] in named]}
        if script["id"] == "dead-letters" and step.get("log") == SHARE_GROUP_STATE_TOPIC:
            # Dead letters take Kafka some milliseconds, in which other writes go ahead: the outcome is compared.
            reply, expected = kept(reply), kept(expected)
        is_compared = expected is not None and number not in (script.get("varies") or ())
        if is_compared and comparable(reply) != comparable(expected):
            return [(number, comparable(expected), comparable(reply))]
    return []


def kept(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The states to which records of the share coordinator lead, without the start, which is on record a write late."""
    states: dict[str, dict[int, tuple[int, int]]] = {}
    for record in records:
        for batch in record["value"]["stateBatches"]:
            offsets = range(batch["firstOffset"], batch["lastOffset"] + 1)
            of_record = (batch["deliveryState"], batch["deliveryCount"])
            states.setdefault(str(record["key"]), {}).update(dict.fromkeys(offsets, of_record))
    return states


@pytest.mark.parametrize("script", RANDOM, ids=lambda script: script["id"])
def test_random_fetches_and_acknowledgements(script: dict[str, Any]) -> None:
    assert differences(script) == []


@pytest.mark.parametrize("script", WRITTEN, ids=lambda script: script["id"])
def test_written_scripts(script: dict[str, Any]) -> None:
    assert differences(script) == []
