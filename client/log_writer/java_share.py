"""Java's share consumer, at INFO: what a member of a share group says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from rejoin.client.log_writer.java import JavaLog
from rejoin.client.log_writer.writer import Line, pairs
from rejoin.journal.events import client as events
from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.kafka_logs.template import Template

_PACKAGE: Final = "org.apache.kafka.clients.consumer.internals"
_CLASSES: Final = {
    "subscribing": "ShareConsumerImpl",
    "remark": "ShareConsumerImpl",
    "coordinator_found": "CoordinatorRequestManager",
    "coordinator_lost": "CoordinatorRequestManager",
    "heartbeat_failed": "ShareHeartbeatRequestManager",
    "poll_timeout_exceeded": "ShareHeartbeatRequestManager",
}
_MEMBERSHIP: Final = "ShareMembershipManager"
_VERSIONS: Final = "org.apache.kafka.common.utils.internals.AppInfoParser"
_LEFT_EPOCH: Final = -1
_OUT_OF_THE_GROUP: Final = {
    "UNKNOWN_MEMBER_ID": "because member {member} is unknown.",
    "FENCED_MEMBER_EPOCH": "for member {member} because epoch {epoch} is fenced.",
}
"""Words about a heartbeat whose sender is no member any more."""


class JavaShareLog(JavaLog):
    """The layout of :class:`JavaLog`. Members have epochs and states; no rebalance is logged."""

    _owned: tuple[str, ...] = ()
    _reconciliations = 0
    _out: str = "UNSUBSCRIBED"
    """The state from which the member joins next."""

    def started(self, at_ms: int) -> list[str]:
        self.member, self.generation, self._owned, self._reconciliations = "", -1, (), 0
        self._out = "UNSUBSCRIBED"
        version = ".".join(map(str, self.version))
        return [f"[{self._stamp(at_ms)}] INFO Kafka version: {version}.0 ({_VERSIONS})"]

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        prefix = f"[ShareConsumer clientId={self.client_id}, groupId={self.group_id}] "
        named = f"{_PACKAGE}.{_CLASSES.get(template.kind, _MEMBERSHIP)}"
        return f"[{self._stamp(at_ms)}] {template.level} {prefix}{text} ({named})"

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.Subscribing():
                yield "subscribing", "share", {"topics": ", ".join(event.topics)}
            case events.CoordinatorFound():
                self.coordinator = (
                    f"Coordinator(key='{self.group_id}', nodeId={event.node_id}, host='{event.host}', "
                    f"port={event.port}, errorCode=0, errorMessage='')"
                )
                yield "coordinator_found", "", {}
            case events.CoordinatorLost():
                yield "coordinator_lost", "", {"problem": event.cause}
            case events.GroupJoined():
                yield from member_states(event.member_id, 0, self._out, "JOINING")
                yield from member_states(event.member_id, event.generation, "JOINING", "STABLE")
            case events.PartitionsAssigned() if event.partitions:
                yield from self._reconciled(event, tuple(sorted({*self._owned, *_names(event.partitions)})))
            case events.PartitionsRevoked() if event.partitions:
                given_up = _names(event.partitions)
                yield from self._reconciled(event, tuple(each for each in self._owned if each not in given_up))
            case events.GroupLeft() if event.notified:
                yield from member_states(event.member_id, event.generation, "STABLE", "PREPARE_LEAVING")
                yield from member_states(event.member_id, _LEFT_EPOCH, "PREPARE_LEAVING", "LEAVING", "UNSUBSCRIBED")
                self._owned, self._out = (), "UNSUBSCRIBED"
            case events.HeartbeatFailed() if event.problem in _OUT_OF_THE_GROUP:
                problem = _OUT_OF_THE_GROUP[event.problem].format(member=event.member_id, epoch=event.generation)
                yield "heartbeat_failed", "share", {"problem": f"{problem} in 0ms: {event.problem}"}
            case events.Fenced():
                yield from member_states(event.member_id, event.generation, "STABLE", "FENCED")
                self._owned, self._out = (), "FENCED"
            case events.PollTimeoutExceeded():
                yield "poll_timeout_exceeded", "", {}
                yield from member_states(event.member_id, event.generation, "STABLE", "PREPARE_LEAVING")
                yield from member_states(event.member_id, _LEFT_EPOCH, "PREPARE_LEAVING", "LEAVING", "STALE")
                self._owned, self._out = (), "STALE"
            case events.ConsumerClosed():
                yield "remark", "closed", {}

    def _reconciled(self, event: events.MemberEvent, wanted: tuple[str, ...]) -> Iterator[Line]:
        owned, self._owned = self._owned, wanted
        rows = {
            "Member:": event.member_id,
            "Assigned partitions:": _listed(wanted),
            "Current owned partitions:": _listed(owned),
            "Added partitions (assigned - owned):": _listed(each for each in wanted if each not in owned),
            "Revoked partitions (owned - assigned):": _listed(each for each in owned if each not in wanted),
        }
        update = "".join(f"\n\t{name:42} {value}" for name, value in rows.items())
        yield from member_states(event.member_id, event.generation, "STABLE", "RECONCILING")
        yield "reconciling", "", {"local_epoch": self._reconciliations, "update": f"{update}\n"}
        self._reconciliations += 1
        yield from member_states(event.member_id, event.generation, "RECONCILING", "ACKNOWLEDGING", "STABLE")


def member_states(member: str, epoch: int, *states: str) -> Iterator[Line]:
    """A line for each step from state to state."""
    for before, after in pairwise(states):
        yield "member_state", "", {"member": member, "member_epoch": epoch, "state_before": before, "state": after}


def _names(partitions: PartitionsByTopic) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for topic, number in pairs(partitions))


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
