"""The lines of a broker's log about groups with epochs: of consumers, from Kafka 4.0 on, share and streams groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from rejoin.coordinator.control.broker_log_writer.streams_groups import STREAMS, StreamsGroupLog
from rejoin.journal.events import consumer_groups as modern
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.events.share_partitions import SharePartitionEvent, SharePersisterFailed
from rejoin.journal.events.streams_groups import StreamsGroupEvent
from rejoin.journal.kafka_logs.consumer_groups import EXPIRED, NOT_JOINED, NOT_SYNCED
from rejoin.journal.kafka_logs.lines import line
from rejoin.journal.kafka_logs.reasons import NOT_PROVIDED
from rejoin.journal.kafka_logs.share_groups import NO_TOPIC_ID, SILENT_BUMPS, assignor_text, share_line
from rejoin.journal.kafka_logs.template import Template, Version

Lines: TypeAlias = Iterator[tuple[Template, dict[str, Any]]]
"""Lines to write, with what they quote."""

CONSUMER: Final = "consumer"
SHARE: Final = "share"
_WITH_EPOCHS: Final = (CONSUMER, SHARE, STREAMS)
"""Types of groups that have epochs and no join phase."""
_FENCED_BECAUSE: Final = {
    "session-expiry": EXPIRED,
    "did-not-rejoin": NOT_JOINED,
    "sync-expiry": NOT_SYNCED,
}


class ConsumerGroupLog:
    """Writer of one broker's lines about groups with epochs. It is fed with every event from the start."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._epochs: dict[str, int] = {}
        """Of each group that has epochs."""
        self._hashes: dict[str, str] = {}
        """Of the metadata that each share group was last assigned with."""
        self._classic: set[tuple[str, str]] = set()
        """Members that speak the classic protocol."""
        self._stuck: dict[tuple[str, str], modern.RevocationRequested] = {}
        self._streams = StreamsGroupLog(version)
        self._kinds: dict[str, str] = {}
        """Of every group that is there."""

    def has(self, group_id: str) -> bool:
        """Whether a group has epochs."""
        return group_id in self._epochs

    def lines(self, event: Event) -> Lines | None:
        """Log lines for an event of a group with epochs; None for an event of another kind of group."""
        if not isinstance(event, events.GroupEvent):
            return None
        if isinstance(event, SharePartitionEvent):
            return self._lines_of_share_partition(event)
        if isinstance(event, StreamsGroupEvent):
            # A group whose first member is refused never comes to be.
            return self._streams.lines(event)
        before = self._kinds.get(event.group_id)
        self._remember_kind(event)
        is_followed = self._follow(event)
        if isinstance(event, events.GroupCreated) and before not in (None, event.group_type):
            variant = "downgrade" if before == CONSUMER else "upgrade" if before == "classic" else STREAMS
            return self._line("converted_empty", variant, protocol=event.group_type)
        if not is_followed:
            return None
        kind = self._kinds.get(event.group_id, CONSUMER)
        if kind == STREAMS:
            lines: Lines = self._streams.lines(event)
        else:
            lines = self._lines_of_share_group(event) if kind == SHARE else self._lines(event)
        return ((template, {"protocol": kind, **values}) for template, values in lines)

    def _remember_kind(self, event: events.GroupEvent) -> None:
        match event:
            case events.GroupCreated() | events.GroupLoaded() | modern.GroupConverted():
                self._kinds[event.group_id] = event.group_type
            case events.GroupDeleted():
                self._kinds.pop(event.group_id, None)
                self._hashes.pop(event.group_id, None)

    def _follow(self, event: events.GroupEvent) -> bool:
        """Whether the event is about a consumer group, or makes it one or none."""
        match event:
            case events.GroupCreated() | events.GroupLoaded() if event.group_type in _WITH_EPOCHS:
                self._epochs[event.group_id] = event.generation if isinstance(event, events.GroupLoaded) else 0
            case modern.GroupConverted():
                self._epochs.pop(event.group_id, None)
                if event.group_type == CONSUMER:
                    self._epochs[event.group_id] = event.generation
                    self._classic |= {(event.group_id, member_id) for member_id in event.members}
                return True
            case modern.ConversionRefused():
                return True
            case events.GroupCreated() | events.GroupLoaded() | events.GroupDeleted():
                self._epochs.pop(event.group_id, None)
                return False
            case events.RebalanceStarted() if event.group_type != CONSUMER:
                # Kafka: a group that is converted back begins to rebalance as a classic one within the same request.
                return False
            case events.MemberJoined() if event.member_type not in _WITH_EPOCHS:
                self._classic.add((event.group_id, event.member_id))
            case modern.GroupEpochBumped():
                self._epochs[event.group_id] = event.generation
            case modern.RevocationRequested():
                self._stuck[event.group_id, event.member_id] = event
        return self.has(event.group_id)

    def _line(self, kind: str, variant: str = "", **values: Any) -> Lines:
        template = line(kind, self._version, variant)
        if template is not None:
            yield template, values

    def unloading(self, group_ids: Iterable[str], partition: int) -> Lines:
        """The broker no longer leads the offsets partition of these groups."""
        for group_id in group_ids:
            self._kinds.pop(group_id, None)
            if self.has(group_id):
                yield from self._line(
                    "unloading_modern", group=group_id, partition=partition, epoch=self._epochs[group_id]
                )

    def _lines(self, event: events.GroupEvent) -> Lines:
        match event:
            case events.MemberJoined():
                kind = "dynamic" if event.group_instance_id is None else "static"
                return self._line("modern_joined", kind, **_who(event), member_protocol=event.member_type)
            case events.MemberRejoined() if event.group_instance_id is None and (
                event.member_type != CONSUMER or not event.changed
            ):
                # Kafka: JoinGroup and a heartbeat with epoch 0 of a dynamic member are logged as those of a new one.
                return self._line("modern_joined", "dynamic", **_who(event), member_protocol=event.member_type)
            case events.MemberIdHandedOut():
                return self._line("modern_id", member=event.member_id)
            case events.StaticMemberReplaced():
                who = {"old": event.old_member_id, "member_protocol": event.member_type}
                return self._line("modern_replaced", **_who(event), **who)
            case events.MemberRemoved():
                return self._removed(event)
            case modern.StaticMemberLeft():
                return self._line("modern_away", **_who(event))
            case events.MemberFenced():
                return self._line("fenced", "modern", **_who(event), current=event.current_member_id)
            case modern.GroupEpochBumped():
                return self._line("modern_bumped", epoch=event.generation, metadata_hash=event.metadata_hash)
            case modern.TargetAssignmentComputed():
                return self._line("modern_assigned", epoch=event.generation, assignor=event.assignor, took_ms=0)
            case modern.GroupConverted():
                variant = "upgrade" if event.group_type == CONSUMER else "downgrade"
                return self._line("converted", variant, protocol=event.group_type)
            case modern.ConversionRefused():
                return self._line("not_converted", self._refusal(event))
            case events.GroupLoaded():
                return self._line("loaded_modern", members=len(event.members))
        return iter(())

    def _lines_of_share_partition(self, event: SharePartitionEvent) -> Lines:
        """Kafka: the leader says at INFO and above only that the state could not be read or stored; Differs: its line
        has the topic id."""
        if isinstance(event, SharePersisterFailed):
            template = share_line("share_failed", self._version, event.operation)
            if template is not None:
                yield template, {"topic": event.topic, "number": event.partition, "topic_id": NO_TOPIC_ID}

    def _lines_of_share_group(self, event: events.GroupEvent) -> Lines:
        """Kafka: at INFO share groups also log subscriptions and metadata; Differs: not what each member has."""
        match event:
            case modern.GroupEpochBumped():
                if event.metadata_hash != self._hashes.get(event.group_id, "0"):
                    yield from self._line("modern_metadata", "share", metadata_hash=event.metadata_hash)
                    self._hashes[event.group_id] = event.metadata_hash
                if event.cause.cause not in SILENT_BUMPS:
                    yield from self._lines(event)
            case modern.TargetAssignmentComputed():
                assignor = assignor_text(event.assignor)
                yield from self._line("modern_assigned", epoch=event.generation, assignor=assignor, took_ms=0)
            case events.MemberJoined():
                yield from self._lines(event)
                if event.topics:
                    topics = ", ".join(event.topics)
                    yield from self._line("modern_subscribed", "share", member=event.member_id, topics=topics)
            case _:
                yield from self._lines(event)

    def _refusal(self, event: modern.ConversionRefused) -> str:
        """Which of the lines of refusals it is."""
        is_downgrade = event.group_type != CONSUMER and event.reason != "classic-member"
        return f"downgrade-{event.reason}" if is_downgrade else event.reason

    def _removed(self, event: events.MemberRemoved) -> Lines:
        kind = "dynamic" if event.group_instance_id is None else "static"
        if event.cause == "left":
            if event.client_reason is None and (event.group_id, event.member_id) not in self._classic:
                return self._line("modern_left", kind, **_who(event))
            return self._line(
                "left", f"modern-{kind}", **_who(event), client_reason=event.client_reason or NOT_PROVIDED
            )
        stuck = self._stuck.get((event.group_id, event.member_id))
        if event.cause == "rebalance-expiry" and stuck is not None:
            return self._line(
                "modern_stuck", **_who(event), epoch=stuck.member_epoch, took_ms=stuck.rebalance_timeout_ms
            )
        why = _FENCED_BECAUSE.get(event.cause)
        return iter(()) if why is None else self._line("modern_fenced", **_who(event), why=why)


def _who(
    event: events.MemberJoined
    | events.MemberRejoined
    | events.MemberRemoved
    | events.StaticMemberReplaced
    | events.MemberFenced
    | modern.StaticMemberLeft,
) -> dict[str, Any]:
    return {"member": event.member_id, "instance": event.group_instance_id}
