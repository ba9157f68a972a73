"""The events as a broker's ``server.log`` would have them, in the words of a chosen Kafka version.

Up to 3.9 the coordinator is the one written in Scala, from 4.0 on the one written in Java. What brokers log at DEBUG
only is left out, and so is what they do not log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import singledispatchmethod
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.control.kafka_logs.versions import Version
from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import Cause
from rejoin.protocol.partitioner import partition_for

JAVA_SINCE: Final = (4, 0)

COORDINATOR: Final = "kafka.coordinator.group.GroupCoordinator"
MANAGER: Final = "kafka.coordinator.group.GroupMetadataManager"
GROUP_METADATA: Final = "kafka.coordinator.group.GroupMetadata"
JAVA_MANAGER: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager"
JAVA_SHARD: Final = "org.apache.kafka.coordinator.group.GroupCoordinatorShard"
JAVA_OFFSETS: Final = "org.apache.kafka.coordinator.group.OffsetMetadataManager"
JAVA_RUNTIME: Final = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"

NOT_PROVIDED: Final = "not provided"


class Said(NamedTuple):
    """A line before its time and prefix are put to it."""

    text: str
    logger: str = ""
    level: str = "INFO"
    partition: int | None = None


Lines: TypeAlias = Iterator[Said]


def stamp(at: Millis) -> str:
    """An instant as log4j prints it; the broker's clock is set to UTC."""
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S,") + f"{at % 1_000:03d}"


class BrokerLog:
    """Writes the lines of one broker. Fed with every event from the start, it knows what the lines quote."""

    def __init__(self, version: Version, broker_id: int, offsets_partitions: int) -> None:
        self._version = version
        self._is_java = version >= JAVA_SINCE
        self._broker_id = broker_id
        self._offsets_partitions = offsets_partitions
        self._states: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._joined: dict[tuple[str, str], events.MemberJoined] = {}
        self._pending: set[tuple[str, str]] = set()
        self._sync_expired: dict[str, list[str]] = {}
        self._left: dict[str, list[str]] = {}
        self._at: Millis | None = None
        self._not_stored: dict[str, str] = {}

    def lines(self, event: Event, at: Millis) -> list[str]:
        """What a broker logs about an event; nothing for many."""
        if at != self._at:
            # Who leaves with one request leaves at one instant.
            self._left.clear()
            self._at = at
        written = [self._write(said, event, at) for said in self._say(event)]
        self._remember(event)
        return written

    def _write(self, said: Said, event: Event, at: Millis) -> str:
        logger = said.logger or (JAVA_MANAGER if self._is_java else COORDINATOR)
        prefix = ""
        if self._is_java:
            partition = said.partition
            if partition is None and isinstance(event, events.GroupEvent):
                partition = self._partition(event.group_id)
            where = "" if logger == JAVA_RUNTIME else f" topic=__consumer_offsets partition={partition}"
            prefix = f"[GroupCoordinator id={self._broker_id}{where}] "
        elif logger == COORDINATOR:
            prefix = f"[GroupCoordinator {self._broker_id}]: "
        elif logger == MANAGER:
            prefix = f"[GroupMetadataManager brokerId={self._broker_id}] "
        return f"[{stamp(at)}] {said.level} {prefix}{said.text} ({logger})"

    def _remember(self, event: Event) -> None:
        match event:
            case events.GroupStateChanged():
                self._states[event.group_id] = event.state
                self._generations[event.group_id] = event.generation
            case events.GroupCreated() | events.GroupLoaded():
                self._partitions[event.group_id] = event.offsets_partition
                if isinstance(event, events.GroupLoaded):
                    self._states[event.group_id] = event.state
                    self._generations[event.group_id] = event.generation
            case events.MemberIdHandedOut():
                self._pending.add((event.group_id, event.member_id))
            case events.MemberJoined():
                self._pending.discard((event.group_id, event.member_id))
                self._joined[event.group_id, event.member_id] = event
            case events.StaticMemberReplaced():
                before = self._joined.pop((event.group_id, event.old_member_id), None)
                if before is not None:
                    self._joined[event.group_id, event.member_id] = before
            case events.MemberRemoved():
                self._joined.pop((event.group_id, event.member_id), None)
                if event.cause == "sync-expiry":
                    self._sync_expired.setdefault(event.group_id, []).append(event.member_id)
                elif event.cause == "left":
                    self._left.setdefault(event.group_id, []).append(event.member_id)
            case events.PendingMemberRemoved() if event.cause == "left":
                self._left.setdefault(event.group_id, []).append(event.member_id)
            case events.AssignmentStoreFailed():
                self._not_stored[event.group_id] = event.error
            case events.RebalanceStarted():
                self._sync_expired.pop(event.group_id, None)
            case events.PartitionResigned():
                for group_id in [g for g, partition in self._partitions.items() if partition == event.partition]:
                    self._forget(group_id)
            case events.GroupDeleted():
                self._forget(event.group_id)

    def _forget(self, group_id: str) -> None:
        for known in (self._partitions, self._generations, self._states):
            known.pop(group_id, None)

    # --- small words

    def _partition(self, group_id: str) -> int:
        return partition_for(group_id, self._offsets_partitions)

    def _place(self, group_id: str) -> str:
        """Where Scala names the offsets partition in the text; Java has it in the prefix."""
        return f" (__consumer_offsets-{self._partition(group_id)})"

    def _instance(self, instance_id: str | None) -> str:
        if self._is_java:
            return instance_id or "null"
        return f"Some({instance_id})" if instance_id else "None"

    def _set(self, members: Iterable[str]) -> str:
        named = ", ".join(members)
        return f"[{named}]" if self._is_java else f"Set({named})"

    def _client_reason(self, reason: str | None) -> str:
        return f"; client reason: {reason or NOT_PROVIDED}" if self._version >= (3, 2) else ""

    @property
    def _dot(self) -> str:
        return "." if self._is_java else ""

    def _state(self, group_id: str) -> str:
        return self._states.get(group_id, "Empty")

    def _metadata(self, event: events.MemberRemoved) -> str:
        joined = self._joined.get((event.group_id, event.member_id))
        session, rebalance = (joined.session_timeout_ms, joined.rebalance_timeout_ms) if joined else (0, 0)
        protocols = ", ".join(joined.protocols if joined else ())
        return (
            f"MemberMetadata(memberId={event.member_id}, groupInstanceId={self._instance(event.group_instance_id)}, "
            f"clientId={event.client_id}, clientHost={event.client_host}, sessionTimeoutMs={session}, "
            f"rebalanceTimeoutMs={rebalance}, supportedProtocols=List({protocols}))"
        )

    # --- why a rebalance begins

    def _reason(self, cause: Cause, group_id: str, state: str) -> str:
        version, member, instance = self._version, cause.member_id, self._instance(cause.group_instance_id)
        told = self._client_reason(cause.client_reason)
        upper = version >= (3, 0)
        during = f" during {state}" if version >= (2, 8) else ""
        updating = f"Updating metadata for member {member}{during}{told}"
        static = f"Updating metadata for static member {member} with instance id {instance}{told}"
        protocol = (
            f"Group's selectedProtocol will change because static member {member} with instance id {instance} joined "
            f"with change of protocol{told}"
        )
        by_class: dict[str, Callable[[], str]] = {
            "join-new": lambda: f"Adding new member {member}{self._with_instance(instance)}{told}",
            "rejoin-metadata": lambda: updating,
            "rejoin-leader": lambda: (
                f"{'Leader' if upper else 'leader'} {member} re-joining group during {state}{told}"
                if version >= (2, 8)
                else updating
            ),
            "static-metadata": lambda: static if version >= (2, 5) else updating,
            "static-protocol": lambda: protocol if version >= (2, 6) else static if version >= (2, 5) else updating,
            "leave": lambda: (
                f"explicit `LeaveGroup` request for ({', '.join(self._left.get(group_id, [member or '']))}) members."
                if self._is_java
                else f"{'Removing' if upper else 'removing'} member {member} on LeaveGroup{told}"
            ),
            "session-expiry": lambda: f"removing member {member} on heartbeat expiration{self._dot}",
            "sync-expiry": lambda: (
                f"Removing {self._set(self._sync_expired.get(group_id, [member or '']))} "
                "on pending sync request expiration"
            ),
            "store-failure": lambda: self._store_failure(group_id, member),
            "over-capacity": lambda: self._over_capacity(group_id),
        }
        return by_class[cause.cause]()

    def _with_instance(self, instance: str) -> str:
        if self._version >= (2, 5):
            return f" with group instance id {instance}"
        return f" with group instanceid {instance}" if self._version >= (2, 3) else ""

    def _store_failure(self, group_id: str, member: str | None) -> str:
        word = "Error" if self._version >= (3, 0) else "error"
        if self._version >= (3, 5):
            word = f"{word} {self._not_stored.get(group_id, 'UNKNOWN_SERVER_ERROR')}"
        space = "" if self._is_java else " "  # Java's message really lacks it
        return f"{word} when storing group assignment{space}during SyncGroup (member: {member}){self._dot}"

    def _over_capacity(self, group_id: str) -> str:
        which = f"group {group_id}" if self._is_java else "group"
        word = "Rebalancing" if self._version >= (3, 2) else "Rebalacing"  # so spelt there
        return (
            f"Freshly-loaded {which} is over capacity. {word} in order to give a chance for consumers to commit offsets"
        )

    # --- what is said about each event

    @singledispatchmethod
    def _say(self, event: Event) -> Lines:
        return iter(())

    @_say.register
    def _(self, event: events.RebalanceStarted) -> Lines:
        group, generation = event.group_id, event.generation
        if self._version < (2, 2):
            yield Said(f"Preparing to rebalance group {group} with old generation {generation}{self._place(group)}")
            return
        reason = self._reason(event.cause, group, event.previous_state)
        place = "" if self._is_java else self._place(group)
        # Kafka prints the state after the transition, so it is always this one.
        yield Said(
            f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation}{place} "
            f"(reason: {reason}){self._dot}"
        )

    @_say.register
    def _(self, event: events.JoinPhaseEnded) -> Lines:
        group, version = event.group_id, self._version
        if event.did_not_rejoin and version >= (2, 7):
            word = "removed" if version >= (2, 8) else "remove"
            yield Said(f"Group {group} {word} dynamic members who haven't joined: {self._set(event.did_not_rejoin)}")
        place = "" if self._is_java else self._place(group)
        count = f" with {len(event.members)} members" if version >= (2, 8) else ""
        yield Said(f"Stabilized group {group} generation {event.generation}{place}{count}{self._dot}")

    @_say.register
    def _(self, event: events.JoinPhaseRepeated) -> Lines:
        if self._version >= (2, 3):
            text = f"Group {event.group_id} could not complete rebalance because no members rejoined{self._dot}"
            yield Said(text, level="ERROR")

    @_say.register
    def _(self, event: events.AssignmentReceived) -> Lines:
        group, version = event.group_id, self._version
        leader = f" {event.leader}" if version >= (3, 0) else ""
        count = f". The group has {event.member_count} members, {event.static_member_count} of which are static."
        told = count if version >= (2, 8) else ""
        yield Said(f"Assignment received from leader{leader} for group {group} for generation {event.generation}{told}")
        if event.without_assignment and version >= (2, 5):
            missing = self._set(event.without_assignment)
            whose = f"Setting empty assignments for members {missing} of {group}"
            yield Said(f"{whose} for generation {event.generation}{self._dot}", level="WARN")

    @_say.register
    def _(self, event: events.GroupEmptied) -> Lines:
        place = "" if self._is_java else self._place(event.group_id)
        yield Said(f"Group {event.group_id} with generation {event.generation} is now empty{place}{self._dot}")

    @_say.register
    def _(self, event: events.GroupDeleted) -> Lines:
        if event.reason == "requested":
            logger = JAVA_SHARD if self._is_java else COORDINATOR
            total = f"A total of {event.offset_count} offsets were removed."
            yield Said(f"The following groups were deleted: {event.group_id}. {total}", logger)
        elif not self._is_java:
            generation = self._generations.get(event.group_id, 0)
            yield Said(f"Group {event.group_id} transitioned to Dead in generation {generation}", MANAGER)

    @_say.register
    def _(self, event: events.MemberRemoved) -> Lines:
        group, member, version = event.group_id, event.member_id, self._version
        if event.cause == "session-expiry":
            yield Said(f"Member {member} in group {group} has failed, removing it from the group{self._dot}")
        elif event.cause == "left":
            if self._is_java:
                text = f"[Group {group}] Member {member} has left group through explicit `LeaveGroup` request"
                yield Said(text + self._client_reason(event.client_reason))
            elif version >= (3, 2):
                text = f"Member {self._metadata(event)} has left group {group} through explicit `LeaveGroup`"
                yield Said(text + self._client_reason(event.client_reason))
            elif version >= (3, 0):
                yield Said(
                    f"Member {self._metadata(event)} has left group {group} through explicit `LeaveGroup` request"
                )
            elif version >= (2, 4):
                who = f"Member[group.instance.id {self._instance(event.group_instance_id)}, member.id {member}]"
                yield Said(f"{who} in group {group} has left, removing it from the group")
            elif version >= (2, 2):
                yield Said(f"Member {member} in group {group} has left, removing it from the group")

    @_say.register
    def _(self, event: events.PendingMemberRemoved) -> Lines:
        group, member, version = event.group_id, event.member_id, self._version
        if event.cause == "session-expiry" and version >= (2, 2):
            yield Said(f"Pending member {member} in group {group} has been removed after session timeout expiration.")
        elif event.cause == "left" and self._is_java:
            text = f"[Group {group}] Pending member {member} has left group through explicit `LeaveGroup` request"
            yield Said(text + self._client_reason(None))
        elif event.cause == "left" and version >= (3, 0):
            yield Said(
                f"Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request"
            )
        elif event.cause == "left" and version >= (2, 2):
            yield Said(f"Pending member {member} is leaving group {group}.")

    @_say.register
    def _(self, event: events.MemberIdHandedOut) -> Lines:
        group, member, state = event.group_id, event.member_id, self._state(event.group_id)
        if self._version < (2, 5):
            return
        if self._version < (3, 0):
            who = f"Dynamic Member with unknown member id joins group {group} in {state} state."
            yield Said(f"{who} Created a new member id {member} for this member and add to the group.")
            return
        who = f"Dynamic member with unknown member id joins group {group} in {state} state."
        word = "requesting" if self._is_java else "request"
        yield Said(f"{who} Created a new member id {member} and {word} the member to rejoin with this id.")

    @_say.register
    def _(self, event: events.MemberJoined) -> Lines:
        group, member, state, version = event.group_id, event.member_id, event.state, self._version
        if event.group_instance_id is not None:
            if version >= (3, 0):
                who = f"Static member with groupInstanceId={event.group_instance_id} and unknown member id joins group"
                word = "added" if self._is_java else "add"
                created = f"Created a new member id {member} for this member and {word} to the group."
                yield Said(f"{who} {group} in {state} state. {created}")
            elif version >= (2, 5):
                who = self._instance(event.group_instance_id)
                yield Said(f"Adding new static member {who} to group {group} with member id {member}.")
        elif (group, member) in self._pending:
            if self._is_java:
                who = f"Pending dynamic member with id {member} joins group {group}"
                yield Said(f"{who} in {state} state. Adding to the group now.")
        elif self._is_java:
            who = f"Dynamic member with unknown member id joins group {group} in state {state}."
            yield Said(f"{who} Created a new member id {member} and added the member to the group.")
        elif version >= (2, 5):
            who = f"Dynamic Member with unknown member id joins group {group} in {state} state."
            yield Said(f"{who} Created a new member id {member} for this member and add to the group.")

    @_say.register
    def _(self, event: events.StaticMemberReplaced) -> Lines:
        group, version, instance = event.group_id, self._version, self._instance(event.group_instance_id)
        if version >= (3, 0):
            known = event.group_instance_id
            who = f"Static member with groupInstanceId={known} and unknown member id joins group {group}"
            yield Said(
                f"{who} in {event.state} state. Replacing previously mapped member {event.old_member_id} with this "
                "groupInstanceId."
            )
        elif version >= (2, 5):
            yield Said(
                f"Static member {instance} of group {group} with unknown member id rejoins, assigning new member id "
                f"{event.member_id}, while old member id {event.old_member_id} will be removed."
            )
        elif version >= (2, 3):
            yield Said(
                f"Static member {instance} with unknown member id rejoins, assigning new member id {event.member_id}, "
                f"while old member {event.old_member_id} will be removed."
            )
        if event.state == "Stable" and not event.rebalance:
            yield from self._no_rebalance(event.state)

    def _no_rebalance(self, state: str) -> Lines:
        if self._is_java:
            yield Said(
                "Static member which joins during Stable stage and doesn't affect the selected protocol will not "
                "trigger a rebalance."
            )
        elif self._version >= (2, 6):
            yield Said(
                "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger "
                "rebalance."
            )
        elif self._version >= (2, 3):
            yield Said(f"Static member joins during {state} stage will not trigger rebalance.")

    @_say.register
    def _(self, event: events.MemberFenced) -> Lines:
        member, instance, current = event.member_id, event.group_instance_id, event.current_member_id
        operation = event.api[0].lower() + event.api[1:]
        if self._version >= (3, 0):
            word = "existing" if self._is_java else "current"
            text = f"Request memberId={member} for static member with groupInstanceId={instance} is fenced by {word} "
            yield Said(
                f"{text}memberId={current} during operation {operation}", "" if self._is_java else GROUP_METADATA
            )
        elif self._version >= (2, 3):
            known = f"given member.id {member} is identified as a known static member {instance},"
            but = f"but not matching the expected member.id {current}"
            more = (
                f" {but} during {operation}, will respond with instance fenced error"
                if self._version >= (2, 5)
                else but
            )
            yield Said(known + more, GROUP_METADATA, "ERROR")

    @_say.register
    def _(self, event: events.GroupCreated) -> Lines:
        if event.simple and self._is_java:
            yield Said(
                f"[GroupId {event.group_id}] Creating a simple consumer group via manual offset commit.", JAVA_OFFSETS
            )
        elif event.simple:
            yield Said(f"Creating simple consumer group {event.group_id} via manual offset commit.")

    @_say.register
    def _(self, event: events.GroupLoaded) -> Lines:
        if self._is_java:
            yield Said(f"Loaded classic group {event.group_id} with {len(event.members)} members.")
        else:
            yield Said(f"Loading group metadata for {event.group_id} with generation {event.generation}")

    @_say.register
    def _(self, event: events.OffsetsDeleted) -> Lines:
        if event.reason == "expired" and not self._is_java:
            yield Said(f"Removed {len(event.offsets)} expired offsets in 0 milliseconds.", MANAGER)

    @_say.register
    def _(self, event: events.PartitionElected) -> Lines:
        place, version = f"__consumer_offsets-{event.partition}", self._version
        if self._is_java:
            yield Said(f"Scheduling loading of metadata from {place} with epoch {event.epoch}", JAVA_RUNTIME)
            return
        epoch = ""
        if version >= (2, 8):
            yield Said(f"Elected as the group coordinator for partition {event.partition} in epoch {event.epoch}")
            epoch = f" for epoch {event.epoch}"
        yield Said(f"Scheduling loading of offsets and group metadata from {place}{epoch}", MANAGER)

    @_say.register
    def _(self, event: events.PartitionLoaded) -> Lines:
        place, took = f"__consumer_offsets-{event.partition}", event.load_ms
        if self._is_java:
            yield Said(
                f"Finished loading of metadata from {place} with epoch {event.epoch} in {took}ms where 0ms was spent "
                f"in the scheduler. Loaded {event.records} records which total to 0 bytes.",
                JAVA_RUNTIME,
            )
            return
        more = (
            f" for epoch {event.epoch}, of which 0 milliseconds was spent in the scheduler"
            if self._version >= (2, 8)
            else ""
        )
        yield Said(f"Finished loading offsets and group metadata from {place} in {took} milliseconds{more}.", MANAGER)

    @_say.register
    def _(self, event: events.PartitionResigned) -> Lines:
        place = f"__consumer_offsets-{event.partition}"
        groups = [group_id for group_id, partition in self._partitions.items() if partition == event.partition]
        if self._is_java:
            epoch = f"OptionalInt[{event.epoch}]"
            yield Said(f"Scheduling unloading of metadata for {place} with epoch {epoch}", JAVA_RUNTIME)
            yield Said(f"Started unloading metadata for {place} with epoch {epoch}.", JAVA_RUNTIME)
            for group_id in groups:
                generation = self._generations.get(group_id, 0)
                text = f"[GroupId={group_id}] Unloading group metadata for generation {generation}."
                yield Said(text, partition=event.partition)
            yield Said(f"Finished unloading metadata for {place} with epoch {epoch}.", JAVA_RUNTIME)
            return
        epoch = ""
        if self._version >= (2, 8):
            yield Said(f"Resigned as the group coordinator for partition {event.partition} in epoch {event.epoch}")
            epoch = f" for coordinator epoch {event.epoch}"
        yield Said(f"Scheduling unloading of offsets and group metadata from {place}", MANAGER)
        for group_id in groups:
            yield Said(f"Unloading group metadata for {group_id} with generation {self._generations.get(group_id, 0)}")
        yield Said(
            f"Finished unloading {place}{epoch}. Removed 0 cached offsets and {len(groups)} cached groups.", MANAGER
        )
