"""The lines of a broker's log about streams groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from rejoin.journal.events import consumer_groups as modern
from rejoin.journal.events import coordinator as events
from rejoin.journal.events import streams_groups as streams
from rejoin.journal.kafka_logs.consumer_groups import EXPIRED
from rejoin.journal.kafka_logs.lines import line
from rejoin.journal.kafka_logs.share_groups import SILENT_BUMPS
from rejoin.journal.kafka_logs.streams_groups import ENDPOINTS_UNKNOWN, described_text, tasks_text
from rejoin.journal.kafka_logs.template import Template, Version

Lines: TypeAlias = Iterator[tuple[Template, dict[str, Any]]]
"""Lines to write, with what they quote."""

STREAMS: Final = "streams"
_NOT_READY: Final = -1
"""The validated topology epoch of a group that lacks topics."""


class StreamsGroupLog:
    """Writer of one broker's lines about streams groups. It is fed with every event from the start."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._validated: dict[str, int] = {}
        """Topology epoch of each group that is ready."""
        self._hashes: dict[str, str] = {}
        self._speaking: dict[str, str] = {}
        """The member of each group whose heartbeat was handled last."""

    def _line(self, kind: str, variant: str = STREAMS, **values: Any) -> Lines:
        template = line(kind, self._version, variant)
        if template is not None:
            yield template, {"protocol": STREAMS, **values}

    def lines(self, event: events.GroupEvent) -> Lines:
        """Log lines for an event of a streams group."""
        member = getattr(event, "member_id", None)
        if isinstance(member, str):
            self._speaking[event.group_id] = member
        match event:
            case events.MemberJoined():
                return self._line("modern_joined", _variant(event), **_who(event))
            case events.MemberRejoined() if not event.changed:
                # Kafka: a heartbeat with epoch 0 of a member that is known has no line.
                return iter(())
            case events.StaticMemberReplaced():
                return self._line("modern_replaced", **_who(event), old=event.old_member_id)
            case events.MemberRemoved():
                return self._removed(event)
            case modern.StaticMemberLeft():
                return self._line("modern_away", **_who(event))
            case modern.GroupEpochBumped():
                return self._bumped(event)
            case events.GroupLoaded():
                return self._line("loaded_modern", "", members=len(event.members))
            case events.GroupDeleted():
                self._validated.pop(event.group_id, None)
                self._hashes.pop(event.group_id, None)
                self._speaking.pop(event.group_id, None)
            case streams.StreamsGroupEvent():
                return self._own(event)
        return iter(())

    def _refused(self, event: streams.StreamsHeartbeatRefused) -> Lines:
        """Kafka: only what ends in an exception has a line. Differs: it has not the whole request."""
        if event.reason != "endpoints":
            return iter(())
        request = " userEndpoint=Endpoint(host='localhost', port=0)"
        return self._line("streams_failed", "", member=event.member_id, request=request, problem=ENDPOINTS_UNKNOWN)

    def _own(self, event: streams.StreamsGroupEvent) -> Lines:
        match event:
            case streams.StreamsTopologyInitialized():
                member = self._speaking.get(event.group_id, "")
                return self._line("streams_topology", member=member, topology_epoch=event.topology_epoch)
            case streams.StreamsMemberDescribed():
                described = event.model_dump(exclude={"group_id", "member_id", "group_instance_id", "changed_fields"})
                text = described_text(event.member_id, instance_id=event.group_instance_id, **described)
                return self._line("streams_described", member=event.member_id, described=text)
            case streams.StreamsTopologyConfigured():
                return self._configured(event)
            case streams.StreamsTargetComputed():
                return self._line("modern_assigned", "", epoch=event.generation, assignor=event.assignor, took_ms=0)
            case streams.StreamsMemberAssigned():
                return self._assigned(event)
            case streams.StreamsShutdownRequested():
                return self._line("streams_shutdown", member=event.member_id)
            case streams.StreamsHeartbeatRefused():
                return self._refused(event)
        return iter(())

    def _configured(self, event: streams.StreamsTopologyConfigured) -> Lines:
        epoch = event.topology_epoch
        self._validated[event.group_id] = epoch if event.status is None else _NOT_READY
        about: dict[str, Any] = {"member": event.member_id, "topology_epoch": epoch, "took_ms": 0}
        yield from self._line("streams_configuring", **about)
        if event.status is None:
            yield from self._line("streams_configured", "ready", **about)
        elif event.status == "MISSING_INTERNAL_TOPICS":
            topics = (event.reason or "").partition(": ")[2].rstrip(".")
            yield from self._line("streams_configured", "missing", **about, topics=topics)
        else:
            yield from self._line("streams_configured", "failed", **about, why=event.reason)

    def _bumped(self, event: modern.GroupEpochBumped) -> Lines:
        group_id, cause = event.group_id, event.cause
        member = cause.member_id or self._speaking.get(group_id, "")
        if event.metadata_hash != self._hashes.get(group_id, "0"):
            yield from self._line("modern_metadata", member=member, metadata_hash=event.metadata_hash)
            self._hashes[group_id] = event.metadata_hash
        if cause.cause == "settings-changed":
            # Differs: the settings themselves are in no event.
            yield from self._line("streams_settings", member=member, settings="{}")
        if cause.cause not in (*SILENT_BUMPS, "rebalance-expiry"):
            values: dict[str, Any] = {"member": member, "epoch": event.generation, "metadata_hash": event.metadata_hash}
            values["topology_epoch"] = self._validated.get(group_id, _NOT_READY)
            yield from self._line("modern_bumped", **values)

    def _assigned(self, event: streams.StreamsMemberAssigned) -> Lines:
        epoch = event.member_epoch
        return self._line(
            "streams_assigned",
            member=event.member_id,
            member_epoch=epoch,
            local_epoch=epoch if event.previous_member_epoch is None else event.previous_member_epoch,
            state=event.member_state,
            assigned=tasks_text(event.active, event.standby, event.warmup, epoch),
            pending=tasks_text(event.revoking_active, event.revoking_standby, {}, epoch),
        )

    def _removed(self, event: events.MemberRemoved) -> Lines:
        match event.cause:
            case "left":
                return self._line("modern_left", _variant(event), **_who(event))
            case "session-expiry":
                return self._line("modern_fenced", member=event.member_id, why=f"{EXPIRED}.")
            case "rebalance-expiry":
                # Differs: the epoch and the timeout are in no event.
                return self._line("modern_stuck", "", member=event.member_id, epoch=0, took_ms=0)
        return iter(())


def _variant(event: events.MemberJoined | events.MemberRemoved) -> str:
    return STREAMS if event.group_instance_id is None else "streams-static"


def _who(
    event: events.MemberJoined | events.MemberRemoved | events.StaticMemberReplaced | modern.StaticMemberLeft,
) -> dict[str, Any]:
    return {"member": event.member_id, "instance": event.group_instance_id}
