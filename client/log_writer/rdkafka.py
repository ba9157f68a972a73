"""librdkafka's log on standard error, by default and with ``debug=cgrp``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rejoin.client.log_writer.writer import (
    ALREADY_REBALANCING,
    MEMBER_ID_GIVEN,
    SESSION_TIMED_OUT,
    ClientLog,
    Line,
    pairs,
)
from rejoin.journal.events import client as events
from rejoin.journal.kafka_logs.clients.errors import WORDS
from rejoin.journal.kafka_logs.clients.rdkafka import RDKAFKA_LINES
from rejoin.journal.kafka_logs.template import Template

_SEVERITY: Final = {"MAXPOLL": 4, "SESSTMOUT": 4, "SHARECONSUMER": 4, "FATAL": 1, "PARTCNT": 6}
_DEBUG: Final = 7


class RdkafkaLog(ClientLog):
    """``%7|1769860800.123|JOIN|orders-1#consumer-1| [thrd:main]: ...``; ``debug`` as in the setting."""

    lines_of_library = RDKAFKA_LINES
    newest = (2, 16)
    debug = True

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        facility, text = text.split(": ", 1)
        severity = _SEVERITY.get(facility, _DEBUG)
        at = f"{at_ms // 1_000}.{at_ms % 1_000:03d}"
        return f"%{severity}|{at}|{facility}|{self.client_id}#consumer-1| [thrd:main]: {text}"

    def _written(self, lines: Iterable[Line], at_ms: int) -> list[str]:
        written = super()._written(lines, at_ms)
        return written if self.debug else [line for line in written if not line.startswith(f"%{_DEBUG}|")]

    def on_start(self) -> Iterator[Line]:
        yield "member_id_received", "", {"was": "(not-set)", "member": ""}
        version = ".".join(map(str, self.version))
        yield "consumer_started", "", {"rest": f"v{version}.0 {self.client_id}#consumer-1 initialized"}

    def on_resize(self, topic: str, before: int, after: int) -> Iterator[Line]:
        yield "metadata_changed", "", {"topic": topic, "before": before, "after": after}

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.CoordinatorFound():
                self.coordinator = str(event.node_id)
                yield "coordinator_found", "", {"was": "-1"}
            case events.CoordinatorLost():
                if event.cause.startswith(SESSION_TIMED_OUT):
                    yield "heartbeat_failed", "session", self._session()
                yield "coordinator_lost", "", {}
            case events.JoinSent():
                yield "join_sent", "", {"topics": len(event.topics), "member": event.member_id}
            case events.RejoinRequested() if event.reason.startswith(MEMBER_ID_GIVEN):
                yield "member_id_received", "", {"was": "", "member": event.member_id}
            case events.RejoinRequested() if event.reason == ALREADY_REBALANCING:
                yield from self._heartbeat("REBALANCE_IN_PROGRESS")
                yield "rejoin_requested", "", {"how": " an assignment", "reason": "Group is rebalancing"}
            case events.GenerationJoined():
                named = {"generation": event.generation, "assignor": event.protocol, "leader": event.leader}
                yield "generation_joined", "", {**named, "member": event.member_id, "count": event.member_count}
            case events.GroupSynced():
                yield "group_synced", "", {"rest": "36 bytes of MemberState data)"}
            case events.PartitionsAssigned():
                yield from each_partition("partition_added", event.partitions)
            case events.PartitionsRevoked() | events.PartitionsLost():
                yield from each_partition("partition_removed", event.partitions)
            case _:
                yield from self._of_the_end(event)

    def _of_the_end(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.HeartbeatFailed() if event.problem in WORDS:
                yield from self._heartbeat(event.problem)
            case events.MembershipReset() if not event.member_id_kept:
                yield "member_id_received", "", {"was": event.member_id, "member": ""}
            case events.PollTimeoutExceeded():
                yield "poll_timeout_exceeded", "", {"limit_ms": event.max_poll_interval_ms, "late_ms": 1}
            case events.GroupLeft() if event.notified:
                yield "group_left", "", {"join_state": "up"}
            case events.Fenced():
                yield "fenced", "", {"rest": ": Broker: Static consumer fenced"}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                named = {"count": len(_with_offsets(event.positions)), "join_state": "steady", "how": "manual"}
                yield "commit_failed", "", {**named, "problem": words.rdkafka}

    def _heartbeat(self, error: str) -> Iterator[Line]:
        named = {
            "state": "up",
            "join_state": "steady",
            "rest": "1 partition(s) assigned",
            "problem": WORDS[error].rdkafka,
        }
        yield "heartbeat_failed", "", named

    def _session(self) -> dict[str, Any]:
        waited = int(self.settings.get("session.timeout.ms", "45000")) + 1
        return {"join_state": "steady", "waited_ms": waited, "problem": "Success"}


class DefaultRdkafkaLog(RdkafkaLog):
    """The log of librdkafka without ``debug``."""

    debug = False


def _with_offsets(positions: events.Offsets) -> list[tuple[str, int]]:
    return [(topic, number) for topic, numbers in positions.items() for number in numbers]


def each_partition(kind: str, partitions: dict[str, list[int]]) -> Iterator[Line]:
    """A line for each partition."""
    for topic, number in pairs(partitions):
        yield kind, "", {"topic": topic, "number": number}
