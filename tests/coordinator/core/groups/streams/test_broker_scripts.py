"""Scripts recorded on a broker of Apache Kafka 4.4 are played on a node: every reply is equal, field by field."""

from __future__ import annotations

import gzip
import json
from typing import Any, Final

import pytest

from tests import paths
from tests.coordinator.core.groups.streams.script_player import StreamsScriptPlayer, comparable

SCRIPTS: Final = paths.GOLDEN / "streams-groups" / "broker-scripts.jsonl.gz"


def scripts() -> list[dict[str, Any]]:
    with gzip.open(SCRIPTS) as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script["id"])
def test_replies_are_those_of_kafka(script: dict[str, Any]) -> None:
    player = StreamsScriptPlayer(script)
    named = {step["body"].get("groupId") for step in script["steps"] if "body" in step}
    for number, step in enumerate(script["steps"]):
        reply = player.play(step)
        if reply is None:
            continue
        expected = player.translated(step["reply"])
        if step["api"] == "ListGroups":
            expected = expected | {"groups": [each for each in expected["groups"] if each["groupId"] in named]}
        assert comparable(step["api"], reply) == comparable(step["api"], expected), f"step {number}"
