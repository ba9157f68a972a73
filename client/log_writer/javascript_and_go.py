"""KafkaJS, franz-go and sarama.

They give up their membership when their connection breaks, as Java's consumer and ours do not: what they log of an
absent coordinator follows from no event of ours, and is not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rejoin.client.log_writer.writer import ALREADY_REBALANCING, MEMBER_ID_GIVEN, ClientLog, Line, pairs, utc
from rejoin.journal.events import client as events
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.kafka_logs.clients.errors import WORDS
from rejoin.journal.kafka_logs.clients.javascript_and_go import (
    FRANZ_GO_LINES,
    KAFKAJS_FIELDS,
    KAFKAJS_LINES,
    SARAMA_LINES,
)
from rejoin.journal.kafka_logs.template import Template


class KafkaJSLog(ClientLog):
    """JSON, a record a line. It logs no generation, and what a member got with the line about its join."""

    lines_of_library = KAFKAJS_LINES
    newest = (2, 2)

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        at = f"{utc(at_ms, '%Y-%m-%dT%H:%M:%S')}.{at_ms % 1_000:03d}Z"
        level = "ERROR" if text.startswith("[Connection]") else "INFO"
        fields = {name: values[ours] for name, ours in KAFKAJS_FIELDS.items() if values.get(ours) not in (None, "")}
        return json.dumps({"level": level, "timestamp": at, "logger": "kafkajs", "message": text, **fields})

    def on_start(self) -> Iterator[Line]:
        yield "consumer_started", "", {}

    def on_resize(self, topic: str, before: int, after: int) -> Iterator[Line]:
        yield "metadata_changed", "", {"topic": topic, "unknown_partitions": list(range(before, after))}

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.GenerationJoined():
                self._assignor = event.protocol
            case events.GroupSynced():
                given = {"given": event.partitions, "assignor": self._assignor}
                yield "generation_joined", "", {"member": event.member_id, **given}
            case events.RejoinRequested() if event.reason == ALREADY_REBALANCING:
                problem: dict[str, Any] = {"problem": WORDS["REBALANCE_IN_PROGRESS"].sentence.rstrip("."), "version": 3}
                yield "heartbeat_response", "", problem
                yield "rejoin_requested", "", problem
            case events.HeartbeatFailed() if event.problem in WORDS:
                problem = {"problem": WORDS[event.problem].sentence.rstrip("."), "version": 3}
                yield "heartbeat_response", "", problem
                yield "heartbeat_failed", "runner", {"reason": problem["problem"], **problem}
            case events.GroupLeft() if event.notified and "poll" not in event.reason:
                yield "group_left", "", {}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                yield "commit_failed", "", {"problem": words.sentence.rstrip("."), "version": 5}

    _assignor = ""


class FranzGoLog(ClientLog):
    """franz-go through its BasicLogger."""

    lines_of_library = FRANZ_GO_LINES
    newest = (1, 22)

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        return f"[{utc(at_ms, '%Y-%m-%d %H:%M:%S')}.{at_ms % 1_000:03d}] [INFO] {text}"

    def on_start(self) -> Iterator[Line]:
        self._owned: set[tuple[str, int]] = set()
        yield "consumer_started", "", {}

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.JoinSent() if not event.reason.startswith(MEMBER_ID_GIVEN):
                yield "join_sent", "", {}
            case events.RejoinRequested() if event.reason.startswith(MEMBER_ID_GIVEN):
                yield "member_id_received", "", {"member": event.member_id}
            case events.RejoinRequested() if event.reason == ALREADY_REBALANCING:
                yield "rejoin_requested", "", {"rest": f": {WORDS['REBALANCE_IN_PROGRESS'].sentence}"}
            case events.GenerationJoined():
                leads = event.leader == event.member_id
                named: dict[str, Any] = {"member": event.member_id, "instance": event.group_instance_id or "<nil>"}
                named |= {"generation": event.generation, "assignor": event.protocol, "leader": str(leads).lower()}
                yield "generation_joined", "leader" if leads else "", named
            case events.GroupSynced():
                yield "group_synced", "", {"assigned": _bracketed(event.partitions)}
                now, before = set(pairs(event.partitions)), self._owned
                self._owned = now
                added, lost = _topics(now - before), _topics(before - now)
                yield "session_begun", "", {"added": _bracketed(added), "lost": _bracketed(lost)}
            case events.PartitionsRevoked() | events.PartitionsLost():
                self._owned -= set(pairs(event.partitions))
            case events.HeartbeatFailed() if event.problem in WORDS:
                yield "heartbeat_failed", "", {"problem": f"{event.problem}: {WORDS[event.problem].sentence}"}
            case events.GroupLeft() if event.notified:
                yield "group_left", "", {"member": event.member_id}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                name = event.problem.rpartition(": ")[2]
                yield "commit_failed", "", {"problem": f"{name}: {words.sentence}"}


class SaramaLog(ClientLog):
    """sarama with its ``Logger`` set: times in whole seconds, a session's member and generation where it ends."""

    lines_of_library = SARAMA_LINES
    newest = (1, 61)

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        return f"[sarama] {utc(at_ms, '%Y/%m/%d %H:%M:%S')} {text}"

    def on_start(self) -> Iterator[Line]:
        yield "consumer_started", "", {}

    def on_resize(self, topic: str, before: int, after: int) -> Iterator[Line]:
        yield "metadata_changed", "", {"topic": topic, "before": before, "after": after}

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.CoordinatorFound():
                self.coordinator = f"{event.node_id} ({event.host}:{event.port})"
            case events.JoinSent() if not event.reason.startswith(MEMBER_ID_GIVEN):
                yield "join_sent", "", {}
                yield "coordinator_found", "", {}
            case events.PartitionsAssigned():
                for topic, number in pairs(event.partitions):
                    yield "partition_added", "", {"broker": 1, "topic": topic, "number": number}
            case events.PartitionsRevoked() | events.PartitionsLost():
                for topic, number in pairs(event.partitions):
                    yield "partition_removed", "", {"broker": 1, "topic": topic, "number": number}
                # A member that got UNKNOWN_MEMBER_ID has no generation any more; its session had one.
                named = {"member": self.member, "generation": max(event.generation, self._session)}
                yield "session_ended", "", named
                yield "remark", "released", named
            case events.GroupLeft() if event.notified and "poll" not in event.reason:
                yield "group_left", "", {}
            case events.GenerationJoined():
                self._session = event.generation

    _session = -1


def _bracketed(partitions: PartitionsByTopic) -> str:
    return ", ".join(f"{topic}[{' '.join(map(str, numbers))}]" for topic, numbers in partitions.items())


def _topics(found: set[tuple[str, int]]) -> PartitionsByTopic:
    made: PartitionsByTopic = {}
    for topic, number in sorted(found):
        made.setdefault(topic, []).append(number)
    return made
