"""Packs the recordings of streams groups on a broker: their steps become exchanges, with answers in the brief form."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from conformance.player.recorder import GOLDEN
from rejoin.conform.comparison.brief_answers import VARIES, brief
from rejoin.conform.player.messages import Json

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "3000",
    "group.streams.initial.rebalance.delay.ms": "3000",
    "group.streams.assignment.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "5000",
    "group.streams.num.standby.replicas": "0",
    "group.streams.max.standby.replicas": "2",
    "group.streams.min.session.timeout.ms": "45000",
    "group.streams.min.heartbeat.interval.ms": "5000",
}
"""Settings of the recorded broker. Each script has some of its own."""
DELAY_MS: Final = 3_000
"""A first JoinGroup waits so long for others."""
_DRAWN: Final = re.compile(r"client-[0-9a-f]{8}-[0-9a-f-]{27}")
"""An id that the broker drew for a classic member."""


def path_of_streams_groups() -> Path:
    """The recordings."""
    return GOLDEN / "streams-groups" / "broker-scripts.jsonl.gz"


def scripts_of_streams_groups() -> Iterator[tuple[str, Json, list[Json]]]:
    """The scripts, each with its set, its header and its lines."""
    for line in gzip.decompress(path_of_streams_groups().read_bytes()).splitlines():
        script = _with_names(line.decode())
        topics, lines = _lines(script["steps"])
        header = {"script": script["id"], "settings": SETTINGS | script["settings"], "brokers": 1, "brief": True}
        yield "streams-groups", header | {"topics": topics}, lines


def _with_names(text: str) -> Any:
    """The script with names in place of ids that the broker drew."""
    for number, drawn in enumerate(dict.fromkeys(_DRAWN.findall(text)), 1):
        text = text.replace(drawn, f"member-{number}")
    return json.loads(text)


def _joins(line: Json) -> bool:
    return line.get("api") == "JoinGroup"


def _lines(steps: list[Json]) -> tuple[dict[str, Json], list[Json]]:
    """The topics that are there from the beginning, and the lines behind them."""
    first, *rest = steps
    topics: dict[str, Json] = {}
    if first["api"] == "CreateTopics":
        topics = {
            each["name"]: {"partitions": each["numPartitions"], "configs": {}} for each in first["body"]["topics"]
        }
    else:
        rest = steps
    named = {step["body"].get("groupId") for step in steps if "body" in step}
    at = 0
    lines: list[Json] = []
    for step in rest:
        if lines:
            at += step["after"]
        if step.get("op") == "restart":
            lines.append({"do": "stop", "began": at, "ended": at})
            continue
        line = {"n": len(lines) + 1, "client": "client", "broker": 1, "api": step["api"], "version": step["version"]}
        line |= {"sent": at, "request": step["body"]}
        at += DELAY_MS if step["api"] == "JoinGroup" and step["reply"]["errorCode"] == 0 else 0
        reply = step["reply"]
        if step["api"] == "ListGroups":
            # The recorded broker had the groups of other scripts as well.
            reply = reply | {"groups": [each for each in reply["groups"] if each["groupId"] in named]}
        lines.append(line | {"answered": at, "answer": brief({"api": step["api"], "answer": {}}, reply)})
        # The id of a topic is drawn. A conversion is listed once its records are stored, a moment behind the JoinGroup.
        if step["api"] == "CreateTopics" or (step["api"] == "ListGroups" and lines[-2:-1] and _joins(lines[-2])):
            lines[-1][VARIES] = True
    return topics, lines
