"""Java's classic consumer, at INFO."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rejoin.client.log_writer.writer import (
    ALREADY_REBALANCING,
    MEMBER_ID_GIVEN,
    METADATA_CHANGED,
    NOT_A_MEMBER,
    ClientLog,
    Line,
    pairs,
    utc,
)
from rejoin.journal.events import client as events
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.kafka_logs.clients.errors import WORDS
from rejoin.journal.kafka_logs.clients.java import JAVA_LINES, PREFIX
from rejoin.journal.kafka_logs.template import Template, Version

_INTERNALS: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
_SETTINGS: Final = "org.apache.kafka.clients.consumer.ConsumerConfig"
_WARNINGS: Final = ("poll_timeout_exceeded",)
_COOPERATIVE_SINCE: Final[Version] = (2, 4)


class JavaLog(ClientLog):
    """Kafka's own layout: ``[2026-01-31 12:00:00,123] INFO [Consumer clientId=..., groupId=...] ... (class)``."""

    lines_of_library = JAVA_LINES
    newest = (4, 4)

    def started(self, at_ms: int) -> list[str]:
        named = {"client.id": self.client_id, "group.id": self.group_id, "group.instance.id": self.instance_id}
        settings = sorted((named | self.settings).items())
        block = "".join(f"\t{name} = {'null' if value is None else value}\n" for name, value in settings)
        super().started(at_ms)
        return [f"[{self._stamp(at_ms)}] INFO ConsumerConfig values: \n{block} ({_SETTINGS})"]

    def on_start(self) -> Iterable[Line]:
        return ()

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        static = f"instanceId={self.instance_id}, " if self.instance_id else ""
        prefix = PREFIX.format(static=static, client_id=self.client_id, group_id=self.group_id)
        level = "WARN" if template.kind in _WARNINGS else template.level
        return f"[{self._stamp(at_ms)}] {level} {prefix}{text} ({_INTERNALS})"

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.Subscribing():
                yield "subscribing", "", {"topics": ", ".join(event.topics)}
            case events.CoordinatorFound():
                self.coordinator = f"{event.host}:{event.port} (id: {2**31 - 1 - event.node_id} rack: null)"
                yield "coordinator_found", "", {}
            case events.CoordinatorLost():
                yield "coordinator_lost", "", {"problem": event.cause}
            case events.JoinSent():
                yield "join_sent", "", {}
            case events.RejoinRequested():
                yield from self._rejoin(event.reason)
            case events.GenerationJoined():
                named = {"member": event.member_id, "generation": event.generation, "assignor": event.protocol}
                yield "generation_joined", "", named
                yield "generation_joined", "number", named
                self._assignor = event.protocol
            case events.GroupSynced():
                yield "group_synced", "", {"assignor": self._assignor, "generation": event.generation}
            case events.PartitionsAssigned():
                named = {"partitions": _listed(event.partitions)}
                yield "partitions_assigned", "", named
                yield "partitions_assigned", "set", {"partitions": f"[{_listed(event.partitions)}]"}
            case events.PartitionsRevoked() if event.partitions:
                if self.version >= _COOPERATIVE_SINCE:
                    yield "partitions_revoked", "", {"partitions": _listed(event.partitions)}
                else:
                    yield "partitions_revoked", "revoking", {"partitions": f"[{_listed(event.partitions)}]"}
            case events.PartitionsLost():
                yield "partitions_lost", "", {"partitions": _listed(event.partitions)}
            case events.HeartbeatFailed() if event.problem in WORDS:
                yield from self._heartbeat_failed(event)
            case _:
                yield from self._of_the_end(event)

    def _of_the_end(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.MembershipReset():
                yield "membership_reset", "", {"and": "" if event.member_id_kept else "and member id ", **_why(event)}
            case events.PollTimeoutExceeded():
                yield "poll_timeout_exceeded", "", {}
            case events.GroupLeft() if event.notified:
                yield "group_left", "", _why(event)
            case events.Fenced():
                variant = "" if self.version >= _COOPERATIVE_SINCE else "received"
                yield "fenced", variant, {"instance": self.instance_id}
            case events.CommitFailed() if event.problem.startswith(NOT_A_MEMBER):
                yield "commit_failed", "not-member", {}
            case events.CommitFailed() if (words := WORDS.get(event.problem.rpartition(": ")[2])) is not None:
                yield "commit_failed", "", {"assignor": self._assignor, "problem": words.sentence}

    _assignor = ""

    def _rejoin(self, reason: str) -> Iterator[Line]:
        if reason.startswith(MEMBER_ID_GIVEN):
            yield "member_id_received", "", {"member": reason.rpartition(": ")[2]}
            return
        if reason == ALREADY_REBALANCING:
            yield "rejoin_requested", "heartbeat", {}
        if reason.startswith(METADATA_CHANGED) and self.resized:
            before, after = (self._sizes(0), self._sizes(1))
            yield "rejoin_requested", "metadata", {"metadata_before": before, "metadata_after": after}
            reason = f"cached metadata has changed from {before} at the beginning of the rebalance to {after}"
        yield "rejoin_requested", "", {"reason": reason}

    def _sizes(self, which: int) -> str:
        topics = ", ".join(f"{topic}={sizes[which]}" for topic, sizes in self.resized.items())
        return f"(version{2 + which}: {{{topics}}})"

    def _heartbeat_failed(self, event: events.HeartbeatFailed) -> Iterator[Line]:
        instance = f"Optional[{self.instance_id}]" if self.instance_id else "Optional.empty"
        text = f"{{generationId={event.generation}, memberId='{event.member_id}', protocol='{self._assignor}'}}"
        named = {"generation_text": text, "instance": instance, "problem": event.problem}
        if event.problem != "REBALANCE_IN_PROGRESS":
            yield "heartbeat_failed", "", {**named, "consequence": "resetting generation"}
        if event.problem == "UNKNOWN_MEMBER_ID":
            yield "heartbeat_failed", "member", {"member": event.member_id}
        elif event.problem == "ILLEGAL_GENERATION":
            yield "heartbeat_failed", "generation", {"generation": event.generation}

    @staticmethod
    def _stamp(at_ms: int) -> str:
        return f"{utc(at_ms, '%Y-%m-%d %H:%M:%S')},{at_ms % 1_000:03d}"


def _listed(partitions: PartitionsByTopic) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in pairs(partitions))


def _why(event: events.MembershipReset | events.GroupLeft) -> dict[str, str]:
    return {"reason": event.reason}
