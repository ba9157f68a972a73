"""Requests as lines that two clients can be compared by, and the differences that are meant.

A client has three sequences: membership (FindCoordinator, JoinGroup, SyncGroup, LeaveGroup, and heartbeats that were
answered with an error), offsets (OffsetFetch, OffsetCommit), and data (Metadata, ListOffsets, Fetch,
OffsetForLeaderEpoch: each shape once, as their number is a matter of time). Member ids are ``new`` or ``own``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Final, NamedTuple

from conformance.members.proxy import Exchange
from rejoin.protocol.embedded.consumer_protocol import decode_subscription
from rejoin.protocol.errors import ErrorCode

MEMBERSHIP: Final = {"FindCoordinator", "JoinGroup", "SyncGroup", "LeaveGroup", "Heartbeat"}
OFFSETS: Final = {"OffsetFetch", "OffsetCommit"}

PASSING: Final = ("-> lost", "-> COORDINATOR_LOAD_IN_PROGRESS", "-> NOT_COORDINATOR")
"""Answers while a broker restarts: how many there are is a matter of time."""

NO_COORDINATOR: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}

_GENERATION: Final = re.compile(r"(Stable|SyncGroup|OffsetCommit|Heartbeat|->) (\d+)")

Sequences = dict[str, list[str]]


def sequences(exchanges: Iterable[Exchange]) -> Sequences:
    """The lines of one client."""
    found: Sequences = {"membership": [], "offsets": [], "data": []}
    beats: list[float] = []
    for each in exchanges:
        if each.api == "Heartbeat":
            beats.append(each.at)
        line = _line(each)
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
    gaps = [later - earlier for earlier, later in pairwise(beats)]
    if len(gaps) >= 5:
        found["membership"].append(f"heartbeats every {round(median(gaps), 1)} s")
    return found


def backoffs(exchanges: Iterable[Exchange]) -> dict[str, int]:
    """Milliseconds from an answer without a coordinator to what the same member asks next: the median of each kind."""
    waits: dict[str, list[float]] = {}
    refused: dict[str, tuple[str, float]] = {}
    for each in exchanges:
        if each.api not in MEMBERSHIP | OFFSETS:
            continue
        api, since = refused.pop(each.client_id, ("", 0.0))
        if api and each.at >= since:
            waits.setdefault(f"{api} to {each.api}", []).append(each.at - since)
        if each.answered_at is not None and _is_refused(each.response):
            refused[each.client_id] = each.api, each.answered_at
    return {kind: round(1_000 * median(gaps)) for kind, gaps in sorted(waits.items())}


def _is_refused(response: Any) -> bool:
    """Whether an answer says that there is no coordinator here, or not yet."""
    codes = [response, *getattr(response, "coordinators", ())]
    return any(getattr(each, "error_code", ErrorCode.NONE) in NO_COORDINATOR for each in codes)


def _line(each: Exchange) -> str | None:
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
        case "LeaveGroup":
            return " ".join(["LeaveGroup", *(_reason(member.reason) for member in request.members)])
        case "OffsetFetch":
            return f"OffsetFetch {_partitions(request.groups[0].topics)} stable={request.require_stable}"
        case "OffsetCommit":
            offsets = [
                f"{topic.name}-{each.partition_index}={each.committed_offset}"
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
    return re.sub(r"(java|ours)-[\w.-]+", "…", short)


def _error(response: Any) -> str:
    return "lost" if response is None else str(response.error_code.name)


def _commit_error(response: Any) -> str:
    if response is None:
        return "lost"
    codes = {each.error_code.name for topic in response.topics for each in topic.partitions}
    return ",".join(sorted(codes)) or "NONE"


def _partitions(topics: Any) -> str:
    return " ".join(sorted(f"{topic.name}-{index}" for topic in topics for index in topic.partition_indexes))


class ExtraGeneration(NamedTuple):
    """A generation of a life that one client's group goes through and the other's does not, and why that is meant."""

    life: str
    client: str
    generation: int
    why: str


DIFFERENCES: Final = (
    ExtraGeneration(
        "broker-restart",
        "java",
        3,
        "KIP-899: without any node to ask, the Java client forgets all topics and starts from its bootstrap servers, "
        "so its leader finds the metadata changed and joins again; with metadata.recovery.strategy=none it does not. "
        "Ours keeps the topics and asks the same nodes.",
    ),
)


def without_difference(lines: Sequence[str], extra: ExtraGeneration) -> list[str]:
    """Lines as they were without the extra generation.

    They have one FindCoordinator, as the number of attempts is a matter of time.
    """
    own = extra.generation
    gone = rf"^(Stable|SyncGroup|OffsetCommit) {own} |-> {own} |^Heartbeat {own - 1} -> REBALANCE_IN_PROGRESS"
    kept: list[str] = []
    for line in without_repeated_lookups(lines):
        if not re.search(gone, line):
            kept.append(_GENERATION.sub(partial(_earlier, own), line))
        elif line.startswith("OffsetCommit") and kept and kept[-1].startswith("OffsetFetch"):
            kept.pop()
    return kept


def _earlier(own: int, match: re.Match[str]) -> str:
    number = int(match[2])
    return f"{match[1]} {number - 1 if number >= own else number}"


def without_repeated_lookups(lines: Sequence[str]) -> list[str]:
    """Lines with one FindCoordinator."""
    return [line for at, line in enumerate(lines) if not (line.startswith("FindCoordinator") and line in lines[:at])]
