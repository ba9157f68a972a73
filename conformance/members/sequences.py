"""Requests as lines that two clients can be compared by, and the differences that are meant.

A client has three sequences: membership (FindCoordinator, JoinGroup, SyncGroup, LeaveGroup, and heartbeats that were
answered with an error), offsets (OffsetFetch, OffsetCommit), and data (Metadata, ListOffsets, Fetch,
OffsetForLeaderEpoch: each shape once, as their number is a matter of time). Member ids are ``new`` or ``own``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from conformance.members.proxy import ProxiedExchange
from rejoin.protocol.embedded.consumer_protocol import decode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataResponse

MEMBERSHIP: Final = {
    "FindCoordinator", "JoinGroup", "SyncGroup", "LeaveGroup", "Heartbeat", "ConsumerGroupHeartbeat",
}  # fmt: skip
OFFSETS: Final = {"OffsetFetch", "OffsetCommit"}

PASSING: Final = ("-> lost", "-> COORDINATOR_LOAD_IN_PROGRESS", "-> NOT_COORDINATOR")
"""Answers while a broker restarts: how many there are is a matter of time."""

Sequences = dict[str, list[str]]


def sequences(exchanges: Iterable[ProxiedExchange]) -> Sequences:
    """The lines of one client."""
    found: Sequences = {"membership": [], "offsets": [], "data": []}
    exchanges = list(exchanges)
    # Differs: the Java client names topics of offsets by id where the broker can, ours by name.
    names = {
        topic.topic_id: topic.name
        for each in exchanges
        if isinstance(each.response, MetadataResponse)
        for topic in each.response.topics
    }
    for each in exchanges:
        line = _line(each, names)
        if line is None or line.endswith(PASSING):
            continue
        line = re.sub(r"more-(java|ours)", "more", line)
        if each.api in MEMBERSHIP:
            found["membership"].append(line)
        elif each.api in OFFSETS:
            if not found["offsets"] or found["offsets"][-1] != line:
                found["offsets"].append(line)
        elif line not in found["data"]:
            found["data"].append(line)
    found["data"].sort()
    return found


def _line(each: ProxiedExchange, names: Mapping[str, str | None]) -> str | None:
    request: Any = each.request
    response: Any = each.response
    match each.api:
        case "FindCoordinator":
            keys = [re.sub(r"^(java|ours)", "", key) for key in request.coordinator_keys]
            errors = [found.error_code.name for found in response.coordinators] if response else ["lost"]
            # While a broker starts, it may take several attempts.
            return None if errors != ["NONE"] else f"FindCoordinator {' '.join(keys)}"
        case "JoinGroup":
            return f"JoinGroup {_join(request)} -> {_joined(response)}"
        case "SyncGroup":
            given = f"assigns to {len(request.assignments)}" if request.assignments else "follows"
            return f"SyncGroup {request.generation_id} {request.protocol_name} {given} -> {_error(response)}"
        case "Heartbeat":
            error = _error(response)
            return None if error in ("NONE", "lost") else f"Heartbeat {request.generation_id} -> {error}"
        case "ConsumerGroupHeartbeat":
            return _consumer_heartbeat(request, response)
        case "LeaveGroup":
            return " ".join(["LeaveGroup", *(_reason(member.reason) for member in request.members)])
        case "OffsetFetch":
            return f"OffsetFetch {_partitions(request.groups[0].topics, names)} stable={request.require_stable}"
        case "OffsetCommit":
            offsets = [
                f"{topic.name or names.get(topic.topic_id)}-{each.partition_index}={each.committed_offset}"
                for topic in request.topics
                for each in topic.partitions
            ]
            generation = request.generation_id_or_member_epoch
            return f"OffsetCommit {generation} {' '.join(sorted(offsets))} -> {_commit_error(response)}"
        case "Metadata":
            named = "all" if request.topics is None else " ".join(sorted(topic.name or "" for topic in request.topics))
            return f"Metadata {named or 'none'} create={request.allow_auto_topic_creation}"
        case "ListOffsets":
            times = {each.timestamp for topic in request.topics for each in topic.partitions}
            return f"ListOffsets {sorted(times)} isolation={request.isolation_level}"
        case "Fetch":
            kind = {0: "full", -1: "last"}.get(request.session_epoch, "incremental")
            limits = f"wait={request.max_wait_ms} min={request.min_bytes} max={request.max_bytes}"
            each_max = {each.partition_max_bytes for topic in request.topics for each in topic.partitions}
            return f"Fetch {kind} {limits} {sorted(each_max) or ''}".rstrip()
        case "OffsetForLeaderEpoch":
            return "OffsetForLeaderEpoch"
    return each.api


def _consumer_heartbeat(request: Any, response: Any) -> str | None:
    """Changes in a member's heartbeat and in its answer; None where both are empty."""
    said = [
        f"{name}={value}"
        for name, value in (
            ("instance", request.instance_id),
            ("rebalance", None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms),
            ("topics", None if request.subscribed_topic_names is None else ",".join(request.subscribed_topic_names)),
            ("regex", request.subscribed_topic_regex),
            ("assignor", request.server_assignor),
            ("rack", request.rack_id),
            ("owns", _partition_count(request.topic_partitions)),
        )
        if value is not None
    ]
    error = _error(response)
    answer = error
    if error == "NONE":
        given = _partition_count(response.assignment.topic_partitions if response.assignment else None)
        answer = f"{response.member_epoch}" + ("" if given is None else f" with {given}")
    is_idle = answer == str(request.member_epoch) and not [each for each in said if not each.startswith("instance")]
    return None if is_idle else " ".join(["Heartbeat", str(request.member_epoch), *said, "->", answer])


def _partition_count(topics: Any) -> int | None:
    return None if topics is None else sum(len(topic.partitions) for topic in topics)


def _join(request: Any) -> str:
    protocols = []
    for protocol in request.protocols:
        subscription = decode_subscription(protocol.metadata)
        owned = len(subscription.owned_partitions)
        protocols.append(f"{protocol.name}({','.join(subscription.topics)} owns {owned})")
    member = "own" if request.member_id else "new"
    instance = f" instance={request.group_instance_id}" if request.group_instance_id else ""
    timeouts = f"{request.session_timeout_ms}/{request.rebalance_timeout_ms}"
    reason = f" because {_reason(request.reason)}" if request.reason else ""
    return f"{member}{instance} {timeouts} {' '.join(protocols)}{reason}"


def _joined(response: Any) -> str:
    if response is None:
        return "lost"
    if response.error_code is not ErrorCode.NONE:
        return str(response.error_code.name)
    leads = f" leads {len(response.members)}" if response.leader == response.member_id else ""
    return f"{response.generation_id} {response.protocol_name}{leads}"


def _reason(text: str | None) -> str:
    """Without what differs from run to run."""
    short = re.sub(r"memberId='[^']*'", "memberId='…'", text or "")
    short = re.sub(r"member-id: [\w-]{22}$", "member-id: …", short)
    return re.sub(r"(java|ours)-[\w.-]+", "…", short)


def _error(response: Any) -> str:
    return "lost" if response is None else str(response.error_code.name)


def _commit_error(response: Any) -> str:
    if response is None:
        return "lost"
    codes = {each.error_code.name for topic in response.topics for each in topic.partitions}
    return ",".join(sorted(codes)) or "NONE"


def _partitions(topics: Any, names: Mapping[str, str | None]) -> str:
    return " ".join(
        sorted(
            f"{topic.name or names.get(topic.topic_id)}-{index}"
            for topic in topics
            for index in topic.partition_indexes
        )
    )


class SettingDifference(NamedTuple):
    """A setting that one client needs in a life to behave as the other does, and why it is meant."""

    life: str
    client: str
    settings: Mapping[str, str]
    why: str


DIFFERENCES: Final = tuple(
    SettingDifference(
        life,
        "java",
        {"metadata.recovery.strategy": "none"},
        "KIP-899: without any node to ask, the Java client forgets all topics and starts from its bootstrap servers, "
        "so its leader may find the metadata changed and join again. Ours keeps the topics and asks the same nodes.",
    )
    for life in ("broker-restart", "consumer-broker-restart")
)


def without_repeated_lookups(lines: Sequence[str]) -> list[str]:
    """Lines with one FindCoordinator."""
    return [line for at, line in enumerate(lines) if not (line.startswith("FindCoordinator") and line in lines[:at])]
