"""kafka-python and aiokafka, at INFO through Python's ``logging``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rejoin.client.log_writer.writer import (
    ALREADY_REBALANCING,
    MEMBER_ID_GIVEN,
    SESSION_TIMED_OUT,
    ClientLog,
    Line,
    pairs,
    utc,
)
from rejoin.journal.events import client as events
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.kafka_logs.clients.errors import WORDS
from rejoin.journal.kafka_logs.clients.python import AIOKAFKA_LINES, KAFKA_PYTHON_LINES
from rejoin.journal.kafka_logs.template import Template

_OF_SUBSCRIPTION: Final = ("subscribing", "consumer_started")


class _PythonLog(ClientLog):
    """``2026-01-31 12:00:00,123 INFO kafka.coordinator: ...``"""

    logger: str
    logger_of_subscription: str

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        of_subscription = template.kind in _OF_SUBSCRIPTION and template.variant != "thread"
        logger = self.logger_of_subscription if of_subscription else self.logger
        at = f"{utc(at_ms, '%Y-%m-%d %H:%M:%S')},{at_ms % 1_000:03d}"
        return f"{at} INFO {logger}: {text}"

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.CoordinatorFound():
                self.coordinator = str(event.node_id)
                yield "coordinator_found", "", {}
                yield from self.on_first_coordinator()
            case events.CoordinatorLost():
                if event.cause.startswith(SESSION_TIMED_OUT):
                    yield "coordinator_lost", "session", {}
                yield "coordinator_lost", "", {"problem": event.cause}
            case events.JoinSent():
                yield "join_sent", "", {}
            case events.PartitionsAssigned():
                yield "partitions_assigned", "", {"partitions": _set(event.partitions)}
            case events.PartitionsRevoked():
                yield "partitions_revoked", "", {"partitions": _set(event.partitions)}
            case events.HeartbeatFailed() if event.problem == "UNKNOWN_MEMBER_ID":
                yield "heartbeat_failed", "member", {}
            case events.HeartbeatFailed() if event.problem == "ILLEGAL_GENERATION":
                yield "heartbeat_failed", "", {"problem": "generation id is not  current."}
            case _:
                yield from self.on_own(event)

    def on_first_coordinator(self) -> Iterator[Line]:
        """The line that follows when a process has found its first coordinator."""
        return iter(())

    def on_own(self, event: events.ConsumerEvent) -> Iterator[Line]:
        """Lines that differ between the two libraries."""
        raise NotImplementedError


class KafkaPythonLog(_PythonLog):
    """kafka-python."""

    _has_thread = False
    lines_of_library = KAFKA_PYTHON_LINES
    newest = (3, 0)
    logger = "kafka.coordinator"
    logger_of_subscription = "kafka.consumer.subscription_state"

    def on_start(self) -> Iterator[Line]:
        self._has_thread = False
        yield "consumer_started", "", {}

    def on_first_coordinator(self) -> Iterator[Line]:
        if not self._has_thread:
            self._has_thread = True
            yield "consumer_started", "thread", {}

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        line = super().framed(template, text, values, at_ms)
        if template.kind == "consumer_started" and not template.variant:
            return line.replace(self.logger_of_subscription, "kafka.net.selector")
        return line

    def on_own(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.Subscribing():
                yield "subscribing", "", {"topics": tuple(event.topics)}
            case events.RejoinRequested() if event.reason.startswith(MEMBER_ID_GIVEN):
                yield "member_id_received", "", {"member": event.member_id}
            case events.RejoinRequested() if event.reason == ALREADY_REBALANCING:
                yield "rejoin_requested", "heartbeat", {}
                yield "rejoin_requested", "heartbeat-older", {}
            case events.GenerationJoined():
                named = {"member": event.member_id, "generation": event.generation, "assignor": event.protocol}
                yield "generation_joined", "", named
                yield "generation_joined", "number", named
            case events.PartitionsLost():
                yield "partitions_lost", "", {"partitions": _set(event.partitions)}
            case events.PollTimeoutExceeded():
                yield "poll_timeout_exceeded", "", {}
                yield "poll_timeout_exceeded", "heartbeat", {}
            case events.GroupLeft() if event.notified:
                yield "group_left", "", {"member": event.member_id}
            case events.Fenced():
                yield "fenced", "heartbeat", {"instance": self.instance_id}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                yield "commit_failed", "", {"problem": f"{words.python}: {self.group_id}"}


class AiokafkaLog(_PythonLog):
    """aiokafka."""

    lines_of_library = AIOKAFKA_LINES
    newest = (0, 14)
    logger = "aiokafka.consumer.group_coordinator"
    logger_of_subscription = "aiokafka.consumer.subscription_state"

    def on_start(self) -> Iterator[Line]:
        return iter(())

    def on_resize(self, topic: str, before: int, after: int) -> Iterator[Line]:
        sizes = {"metadata_before": {topic: before}, "metadata_after": {topic: after}}
        yield "metadata_changed", "", sizes

    def on_own(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.Subscribing():
                yield "consumer_started", "", {"topics": f"frozenset({{{', '.join(map(repr, event.topics))}}})"}
            case events.RejoinRequested() if event.reason == ALREADY_REBALANCING:
                yield "rejoin_requested", "", {}
            case events.GenerationJoined():
                yield "generation_joined", "", {"member": event.member_id, "generation": event.generation}
            case events.GroupSynced():
                yield "group_synced", "", {"generation": event.generation}
            case events.PartitionsLost():
                yield "partitions_revoked", "", {"partitions": _set(event.partitions)}
            case events.GroupLeft() if event.notified:
                yield "group_left", "", {}
            case events.Fenced():
                yield "heartbeat_failed", "other", {"problem": f"{WORDS['FENCED_INSTANCE_ID'].python}: {self.group_id}"}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                yield "commit_failed", "", {"problem": f"{words.python}: {self.group_id}"}


def _set(partitions: PartitionsByTopic) -> str:
    named = ", ".join(f"TopicPartition(topic='{topic}', partition={number})" for topic, number in pairs(partitions))
    return f"{{{named}}}" if named else "set()"
