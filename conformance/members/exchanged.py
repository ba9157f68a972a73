"""The requests of one client about its group with Kafka's answers, as a script that a node of ours can replay.

The form is that of ``conformance/transactions``: a header, then a line for each request. Ids are as they were drawn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from conformance.kafka.broker import kafka_version
from conformance.members.proxy import HOST, ProxiedExchange
from rejoin.conform.player.connection import ClientConnections
from rejoin.protocol.messages.cluster.metadata import MetadataResponse

GROUP_APIS: Final = {
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch",
    "ConsumerGroupDescribe", "DescribeGroups",
}  # fmt: skip
ADMIN: Final = "admin"
"""How the client that looks is called, after its group."""

PROMPT: Final = {"Heartbeat", "ConsumerGroupHeartbeat", "LeaveGroup"}
"""Requests that are never parked."""
IN_FLIGHT_SECONDS: Final = 0.05

LOOKS: Final = (("ConsumerGroupDescribe", 1), ("DescribeGroups", 6), ("OffsetFetch", 9))


def script_lines(
    exchanges: Sequence[ProxiedExchange], name: str, group: str, topics: Mapping[str, int], settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The header, and a line for each request about the group."""
    ids = {
        topic.name: topic.topic_id
        for each in exchanges
        if isinstance(each.response, MetadataResponse)
        for topic in each.response.topics
        if topic.name in topics
    }
    named = {topic_id: f"id:{topic}" for topic, topic_id in ids.items()}
    header = {
        "script": name,
        "kafka": kafka_version(),
        "brokers": 1,
        "settings": dict(settings),
        "topics": {topic: {"partitions": count, "configs": {}} for topic, count in topics.items()},
        "ids": ids,
    }
    own = [each for each in exchanges if each.client_id.startswith(f"{group}.") and each.api in GROUP_APIS]
    return [header, *(_line(number, each, own[0].at, named) for number, each in enumerate(in_order(own), 1))]


def in_order(exchanges: Sequence[ProxiedExchange]) -> list[ProxiedExchange]:
    """Requests as the broker came to them: of two prompt ones in flight at a time, that which was answered first."""
    ordered: list[ProxiedExchange] = []
    for each in exchanges:
        at = len(ordered)
        while at and _overtakes(each, ordered[at - 1]):
            at -= 1
        ordered.insert(at, each)
    return ordered


def _overtakes(later: ProxiedExchange, earlier: ProxiedExchange) -> bool:
    if later.answered_at is None or earlier.answered_at is None or later.client_id == earlier.client_id:
        return False
    is_prompt = {later.api, earlier.api} <= PROMPT and later.at - earlier.at < IN_FLIGHT_SECONDS
    return is_prompt and later.answered_at < earlier.answered_at


def _line(number: int, each: ProxiedExchange, start: float, named: Mapping[str, str]) -> dict[str, Any]:
    answered_at = each.at if each.answered_at is None else each.answered_at
    answer = None if each.response is None else json.loads(each.response.to_json(each.version))
    return {
        "n": number,
        "client": each.client_id,
        "broker": 1,
        "api": each.api,
        "version": each.version,
        "sent": round(1_000 * (each.at - start), 1),
        "request": _with_names(json.loads(each.request.to_json(each.version)), named),
        "answered": round(1_000 * (answered_at - start), 1),
        "answer": _with_names(answer, named),
    }


def _with_names(value: Any, named: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_names(each, named) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_names(each, named) for each in value]
    return named.get(value, value) if isinstance(value, str) else value


async def look(port: int, group: str, topic: str, partitions: Iterable[int]) -> None:
    """Describe a group in both ways, and fetch its offsets."""
    offsets: dict[str, Any] = {"groupId": group, "topics": [{"name": topic, "partitionIndexes": list(partitions)}]}
    bodies: tuple[dict[str, Any], ...] = (
        {"groupIds": [group]},
        {"groups": [group]},
        {"groups": [offsets], "requireStable": True},
    )
    connections = ClientConnections({0: (HOST, port)}, time.monotonic)
    for (api, version), body in zip(LOOKS, bodies, strict=True):
        await connections.ask(f"{group}.{ADMIN}", 0, api, version, body)
    connections.close()
