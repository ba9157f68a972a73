"""Joins that the coordinator refuses: which error, and what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import names, period, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedEvent
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.rules.own_words.events import AGAIN, consumers_of, finding_of, its_group, rhythm, said_by

THROWN_OUT: Final = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
_CONFIG_TOPIC: Final = re.compile(r"config(?:ured)? (?:state )?offset .* does not match")
_REFUSED: Final = {
    "INCONSISTENT_GROUP_PROTOCOL": "protocols",
    "GROUP_MAX_SIZE_REACHED": "size",
    "INVALID_SESSION_TIMEOUT": "timeout",
    "FENCED_INSTANCE_ID": "fenced",
    "GROUP_AUTHORIZATION_FAILED": "authorization",
    **dict.fromkeys(THROWN_OUT, "member"),
    **dict.fromkeys(("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"), "moved"),
    "INCOMPLETE_SOURCE_TOPIC_METADATA": "topics",
}
"""Errors of a join to what is to be done."""
_WHAT_TO_DO: Final = {
    "protocols": (
        "partition.assignment.strategy",
        "Give all members of the group an assignor in common, and the same protocol type: another application may use "
        "this group id.",
    ),
    "size": ("group.max.size", "The group is full. Start fewer members, or raise group.max.size of the brokers."),
    "timeout": (
        "session.timeout.ms",
        "The timeout must lie between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers.",
    ),
    "fenced": ("group.instance.id", "Another process uses this group.instance.id: give each process one of its own."),
    "authorization": (
        None,
        "Allow the principal of this client READ on the group: kafka-acls.sh --add --allow-principal User:NAME "
        "--operation Read --group GROUP; it needs READ on the topics as well.",
    ),
    "member": (
        None,
        "Look for what keeps the client from sending heartbeats; a client that repeats this for ever is stuck.",
    ),
    "topics": (
        None,
        "A source topic of the application is missing, or may not be read: create it before the application starts. "
        "Streams ends the thread.",
    ),
    "moved": (
        None,
        "The coordinator had moved, or was still loading: usual when brokers start. Clients find it by themselves; if "
        "it goes on, look at the brokers.",
    ),
    "connect": (
        "config.storage.topic",
        "This worker reads another config topic than the leader, or an empty one: compare config.storage.topic and "
        "bootstrap.servers of all workers of this group.id.",
    ),
}


def join_refused(history: GroupHistory, refused: Sequence[tuple[ObservedEvent, str]]) -> Finding:
    events = [each for each, _ in refused]
    kinds = Counter(what for _, what in refused)
    kind, _ = kinds.most_common(1)[0]
    setting, advice = _WHAT_TO_DO[kind]
    who = consumers_of(history, events)
    said = next(said_by(each) for each, what in refused if what == kind)
    return finding_of(
        "rejoined-by-its-own-log",
        f"{names(who)} could not join, {times(len(events))}",
        f"{capital(times(len(events)))} {names(who)} could not join {its_group(history)} and tried again, "
        f"{period(events[0].at_ms, events[-1].at_ms)}{rhythm(events)}: {said.rstrip('.')}.",
        who,
        events,
        setting=setting,
        advice=advice,
        numbers={"times": len(events), "members": len(who)},
        severity=LOW if kind == "moved" and len(events) < AGAIN else MEDIUM,
    )


def refusal_of(event: ObservedEvent) -> str | None:
    if _CONFIG_TOPIC.search(said_by(event)) is not None:
        return "connect"
    return _REFUSED.get(event.error or "")
