"""The requests of lives on a real Kafka with its answers, as scripts that a node of ours replays on a virtual clock."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from conformance.clients.results import ROOT
from conformance.clients.streams_groups.stage import GROUP, SETTINGS
from conformance.kafka.broker import kafka_version
from conformance.members.proxy import ProxiedExchange
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

RECORDED: Final = ROOT / "tests" / "golden" / "streams-groups" / "applications.jsonl.gz"
GROUPS: Final = ("words", "standby", "threads", "static", "once", "nowhere", "reached", "later", "poison", "again")
"""Applications whose life is in streams groups alone."""
HEARTBEAT, DESCRIBE = "StreamsGroupHeartbeat", "StreamsGroupDescribe"


def write_recording(exchanges: Iterable[ProxiedExchange], path: Path = RECORDED) -> None:
    """Write a script for each application."""
    every = [each for each in exchanges if each.answered_at is not None and each.response is not None]
    scripts = [_script(every, group) for group in GROUPS]
    text = "".join(f"{json.dumps(script, separators=(',', ':'))}\n" for script in scripts if script["steps"])
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _script(exchanges: Iterable[ProxiedExchange], group: str) -> dict[str, Any]:
    settings = {name: value for name, value in SETTINGS.items() if name.startswith("group.streams.")}
    steps = list(_steps(exchanges, group))
    return {"id": group, "kafka": kafka_version(), "settings": settings, "steps": steps}


def _steps(exchanges: Iterable[ProxiedExchange], group: str) -> Iterator[dict[str, Any]]:
    """The requests as the broker came to them; of equal descriptions in a row there is one.

    A description that was in flight beside a heartbeat is left out: it may show the group before it or behind it.
    """
    before, described = 0.0, b""
    own = [each for each in exchanges if _is_about(each.api, json.loads(each.request.to_json(each.version)), group)]
    beats = [each for each in own if each.api == HEARTBEAT]
    for each in _in_order(own):
        if each.response is None or (each.api == DESCRIBE and any(_overlap(each, other) for other in beats)):
            continue
        body = json.loads(each.request.to_json(each.version))
        text = each.response.to_json(each.version)
        if each.api == DESCRIBE:
            if text == described:
                continue
            described = text
        after = max(0, round(1_000 * (each.at - before))) if before else 0
        before = before + after / 1_000 if before else each.at
        about = {"after": after, "client": each.client_id, "api": each.api, "version": each.version}
        yield about | {"body": body, "reply": json.loads(text)}


def _in_order(exchanges: Iterable[ProxiedExchange]) -> list[ProxiedExchange]:
    """Requests in the order of their answers. Threads of a process beat at once: of two in flight, by :func:`_turn`."""
    ordered: list[ProxiedExchange] = []
    for each in sorted(exchanges, key=lambda each: each.answered_at or each.at):
        at = len(ordered)
        while at and _overlap(each, ordered[at - 1]) and _turn(each) < _turn(ordered[at - 1]):
            at -= 1
        ordered.insert(at, each)
    return ordered


def _turn(each: ProxiedExchange) -> tuple[int, bool]:
    """The epoch of endpoints, which rises within a group; at one epoch a join, which raises it, is first."""
    if isinstance(each.request, StreamsGroupHeartbeatRequest) and isinstance(
        each.response, StreamsGroupHeartbeatResponse
    ):
        return each.response.endpoint_information_epoch, each.request.member_epoch != 0
    return 0, False


def _overlap(one: ProxiedExchange, other: ProxiedExchange) -> bool:
    return one.at < (other.answered_at or other.at) and other.at < (one.answered_at or one.at)


def _is_about(api: str, body: dict[str, Any], group: str) -> bool:
    if api in (HEARTBEAT, DESCRIBE):
        return group == body.get("groupId") or body.get("groupIds") == [group]
    if api == "DeleteGroups":
        return bool(body["groupsNames"] == [group])
    if api == "IncrementalAlterConfigs":
        return any((each["resourceType"], each["resourceName"]) == (GROUP, group) for each in body["resources"])
    if api == "CreateTopics":
        return any(each["name"].startswith(f"{group}.") for each in body["topics"])
    return api == "DeleteTopics" and group in json.dumps(body)
