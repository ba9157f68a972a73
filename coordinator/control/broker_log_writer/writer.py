"""The events as a broker's ``server.log`` would have them, in the words of a chosen Kafka version.

The words are in :mod:`rejoin.journal.kafka_logs`; here is which of them an event calls for, and what the lines quote.
What brokers log at DEBUG only is left out, and so is what they do not log.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatchmethod
from typing import Any, Final

from rejoin.coordinator.control.broker_log_writer.consumer_groups import ConsumerGroupLog, Lines
from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events import coordinator as events
from rejoin.journal.events import transactions
from rejoin.journal.events.base import Event
from rejoin.journal.kafka_logs.lines import COORDINATOR, JAVA_MANAGER, JAVA_RUNTIME, MANAGER, line
from rejoin.journal.kafka_logs.reasons import (
    CLIENT_REASON,
    CLIENT_REASON_SINCE,
    NOT_PROVIDED,
    WITH_CLIENT_REASON,
    reason_line,
)
from rejoin.journal.kafka_logs.request_lines import stamp
from rejoin.journal.kafka_logs.share_groups import SHARE_PARTITION
from rejoin.journal.kafka_logs.streams_groups import SERVICE
from rejoin.journal.kafka_logs.template import JAVA_SINCE, Template, Version
from rejoin.journal.kafka_logs.transactions import PREFIXES, transaction_line
from rejoin.protocol.partitioner import partition_for

_REPLACED_SINCE: Final = (3, 0)
"""From this version on, a line about a static member quotes its instance id as it is."""


class BrokerLog:
    """Writes the lines of one broker. Fed with every event from the start, it knows what the lines quote."""

    def __init__(
        self,
        version: Version,
        broker_id: int,
        offsets_partitions: int,
        transaction_partitions: int = 50,
        *,
        group_max_size: int = 2**31 - 1,
    ) -> None:
        self._version = version
        self._group_max_size = group_max_size
        self._transaction_partitions = transaction_partitions
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
        self._consumer_groups = ConsumerGroupLog(version)

    def lines(self, event: Event, at: Millis) -> list[str]:
        """Log lines of a broker for an event; none for many."""
        if at != self._at:
            # Members that leave with one request leave at one instant.
            self._left.clear()
            self._at = at
        lines = self._consumer_groups.lines(event)
        lines = self._lines(event) if lines is None else lines
        written = [self._write(template, values, event, at) for template, values in lines]
        if isinstance(event, transactions.ProducerFenced) and event.topic is not None and written:
            written.append(self._exception(event))
        self._remember(event)
        return written

    def _exception(self, event: transactions.ProducerFenced) -> str:
        """The line below that of a refused batch; its offset is not known here."""
        template = transaction_line("txn_fenced", self._version)
        assert template is not None, "every version has one"
        return template.format(self._version, {**event.model_dump(), "number": event.partition, "offset": 0})

    def _write(self, template: Template, values: dict[str, Any], event: Event, at: Millis) -> str:
        known = {"topic": "__consumer_offsets", **values}
        if isinstance(event, events.GroupEvent):
            known = {"group": event.group_id, "partition": self._partition(event.group_id), **known}
        logger = template.logger or (JAVA_MANAGER if self._is_java else COORDINATOR)
        prefix = ""
        if logger in PREFIXES:
            prefix = PREFIXES[logger].format(node=self._broker_id)
        elif self._is_java and logger != SHARE_PARTITION:
            where = (
                "" if logger in (JAVA_RUNTIME, SERVICE) else f" topic=__consumer_offsets partition={known['partition']}"
            )
            prefix = f"[GroupCoordinator id={self._broker_id}{where}] "
        elif logger == COORDINATOR:
            prefix = f"[GroupCoordinator {self._broker_id}]: "
        elif logger == MANAGER:
            prefix = f"[GroupMetadataManager brokerId={self._broker_id}] "
        return f"[{stamp(at)}] {template.level} {prefix}{template.format(self._version, known)} ({logger})"

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

    # --- what lines quote

    def _partition(self, group_id: str) -> int:
        return partition_for(group_id, self._offsets_partitions)

    def _instance(self, instance_id: str | None) -> str:
        if self._is_java:
            return instance_id or "null"
        return f"Some({instance_id})" if instance_id else "None"

    def _set(self, members: Iterable[str]) -> str:
        named = ", ".join(members)
        return f"[{named}]" if self._is_java else f"Set({named})"

    def _epoch(self, epoch: int) -> str:
        return f"OptionalInt[{epoch}]" if self._is_java else str(epoch)

    def _metadata(self, event: events.MemberRemoved) -> dict[str, Any]:
        joined = self._joined.get((event.group_id, event.member_id))
        return {
            "client_id": event.client_id,
            "client_host": event.client_host,
            "session_timeout_ms": joined.session_timeout_ms if joined else 0,
            "rebalance_timeout_ms": joined.rebalance_timeout_ms if joined else 0,
            "protocols": ", ".join(joined.protocols if joined else ()),
        }

    def _reason(self, event: events.RebalanceStarted) -> str:
        cause, group_id = event.cause, event.group_id
        template = reason_line(cause.cause, self._version)
        member = cause.member_id or ""
        text = template.format(
            self._version,
            {
                "group": group_id,
                "member": cause.member_id,
                "instance": self._instance(cause.group_instance_id),
                "state": event.previous_state,
                "members": len(event.members or ()),
                "capacity": self._group_max_size,
                "several": ", ".join(self._left.get(group_id, [member])),
                "set": self._set(self._sync_expired.get(group_id, [member])),
                "error": self._not_stored.get(group_id, "UNKNOWN_SERVER_ERROR"),
            },
        )
        names_one = cause.cause in WITH_CLIENT_REASON and "several" not in template.fields(self._version)
        if names_one and self._version >= CLIENT_REASON_SINCE:
            text += f"{CLIENT_REASON}{cause.client_reason or NOT_PROVIDED}"
        return text

    def _line(self, kind: str, variant: str = "", **values: Any) -> Lines:
        """The line of a kind, if this version prints one."""
        template = line(kind, self._version, variant)
        if template is not None:
            yield template, values

    # --- which lines an event calls for

    @singledispatchmethod
    def _lines(self, event: Event) -> Lines:
        return iter(())

    @_lines.register
    def _(self, event: events.RebalanceStarted) -> Lines:
        # Kafka: this is printed after the transition, so the state is always this one.
        reason = self._reason(event) if self._version >= (2, 2) else ""
        return self._line("preparing", state="PreparingRebalance", generation=event.generation, reason=reason)

    @_lines.register
    def _(self, event: events.JoinPhaseEnded) -> Lines:
        if event.did_not_rejoin:
            yield from self._line("did_not_join", set=self._set(event.did_not_rejoin))
        yield from self._line("stabilized", generation=event.generation, members=len(event.members))

    @_lines.register
    def _(self, event: events.JoinPhaseRepeated) -> Lines:
        return self._line("nobody_joined")

    @_lines.register
    def _(self, event: events.AssignmentReceived) -> Lines:
        yield from self._line(
            "assigned",
            leader=event.leader,
            generation=event.generation,
            members=event.member_count,
            static_members=event.static_member_count,
        )
        if event.without_assignment:
            missing = self._set(event.without_assignment)
            yield from self._line("without_assignment", set=missing, generation=event.generation)

    @_lines.register
    def _(self, event: events.GroupEmptied) -> Lines:
        return self._line("emptied", generation=event.generation)

    @_lines.register
    def _(self, event: events.GroupDeleted) -> Lines:
        if event.reason == "requested":
            return self._line("deleted", list=event.group_id, offsets=event.offset_count)
        return self._line("dead", generation=self._generations.get(event.group_id, 0))

    @_lines.register
    def _(self, event: events.MemberRemoved) -> Lines:
        if event.cause == "session-expiry":
            return self._line("failed", member=event.member_id)
        if event.cause == "left":
            return self._line(
                "left",
                member=event.member_id,
                instance=self._instance(event.group_instance_id),
                scala_instance=self._instance(event.group_instance_id),
                client_reason=event.client_reason or NOT_PROVIDED,
                **self._metadata(event),
            )
        return iter(())

    @_lines.register
    def _(self, event: events.PendingMemberRemoved) -> Lines:
        if event.cause == "session-expiry":
            return self._line("pending_expired", member=event.member_id)
        if event.cause == "left":
            return self._line("pending_left", member=event.member_id, client_reason=NOT_PROVIDED)
        return iter(())

    @_lines.register
    def _(self, event: events.MemberIdHandedOut) -> Lines:
        state = self._states.get(event.group_id, "Empty")
        kind = "id_handed_out" if line("id_handed_out", self._version) is not None else "id_created"
        return self._line(kind, member=event.member_id, state=state)

    @_lines.register
    def _(self, event: events.MemberJoined) -> Lines:
        values = {"member": event.member_id, "state": event.state}
        if event.group_instance_id is not None:
            instance = self._instance(event.group_instance_id)
            return self._line("joined", "static", instance=event.group_instance_id, scala_instance=instance, **values)
        if (event.group_id, event.member_id) in self._pending:
            return self._line("joined", "pending", **values)
        return self._line("joined", "dynamic", **values) if self._is_java else self._line("id_created", **values)

    @_lines.register
    def _(self, event: events.StaticMemberReplaced) -> Lines:
        known = event.group_instance_id
        yield from self._line(
            "replaced",
            instance=known if self._version >= _REPLACED_SINCE else self._instance(known),
            state=event.state,
            old=event.old_member_id,
            member=event.member_id,
        )
        if event.state == "Stable" and not event.rebalance:
            yield from self._line("no_rebalance", state=event.state)

    @_lines.register
    def _(self, event: events.MemberFenced) -> Lines:
        return self._line(
            "fenced",
            member=event.member_id,
            instance=event.group_instance_id,
            current=event.current_member_id,
            operation=event.api[0].lower() + event.api[1:],
        )

    @_lines.register
    def _(self, event: events.GroupCreated) -> Lines:
        return self._line("simple") if event.simple else iter(())

    @_lines.register
    def _(self, event: events.GroupLoaded) -> Lines:
        kind = "loaded_classic" if self._is_java else "loading"
        return self._line(kind, members=len(event.members), generation=event.generation)

    @_lines.register
    def _(self, event: events.OffsetsDeleted) -> Lines:
        return (
            self._line("remark", "expired", offsets=len(event.offsets), took_ms=0)
            if event.reason == "expired"
            else iter(())
        )

    @_lines.register
    def _(self, event: events.PartitionElected) -> Lines:
        values: dict[str, Any] = {"partition": event.partition, "epoch": event.epoch}
        yield from self._line("elected", **values)
        yield from self._line("load_begins", **values)

    @_lines.register
    def _(self, event: events.PartitionLoaded) -> Lines:
        return self._line(
            "load_ends",
            partition=event.partition,
            epoch=event.epoch,
            load_ms=event.load_ms,
            scheduler_ms=0,
            records=event.records,
            bytes=0,
        )

    @_lines.register
    def _(self, event: events.PartitionResigned) -> Lines:
        groups = [group_id for group_id, partition in self._partitions.items() if partition == event.partition]
        values: dict[str, Any] = {"partition": event.partition, "epoch": self._epoch(event.epoch)}
        yield from self._line("resigned", **values)
        yield from self._line("remark", "unloading", **values)
        yield from self._line("unload_begins", **values)
        for group_id in groups:
            if self._consumer_groups.has(group_id):
                continue
            generation = self._generations.get(group_id, 0)
            yield from self._line("unloading", group=group_id, partition=event.partition, generation=generation)
        yield from self._consumer_groups.unloading(groups, event.partition)
        yield from self._line("unload_ends", **values, offsets=0, groups=len(groups))

    # --- transactions

    def _of_transactions(self, kind: str, variant: str = "", **values: Any) -> Lines:
        template = transaction_line(kind, self._version, variant)
        if template is not None:
            yield template, values

    @_lines.register
    def _(self, event: transactions.ProducerIdInitialized) -> Lines:
        name = event.transactional_id
        if name is None:
            return iter(())
        partition = partition_for(name, self._transaction_partitions)
        return self._of_transactions("txn_initialized", **event.model_dump(), partition=partition)

    @_lines.register
    def _(self, event: transactions.TransactionPrepared) -> Lines:
        if event.ended_by == "timeout":
            return self._of_transactions("txn_timed_out", transactional_id=event.transactional_id)
        if event.ended_by == "fencing":
            # Kafka: the producer that fences has to ask again.
            name = event.transactional_id
            return self._of_transactions("txn_not_initialized", transactional_id=name, error="CONCURRENT_TRANSACTIONS")
        return iter(())

    @_lines.register
    def _(self, event: transactions.ProducerFenced) -> Lines:
        if event.api == "InitProducerId":
            name, error = event.transactional_id, event.error
            return self._of_transactions("txn_not_initialized", transactional_id=name, error=error)
        if event.topic is None or event.transactional_id is not None:
            # Kafka: of those that are refused before the log is asked nothing is said.
            return iter(())
        return self._of_transactions("txn_append_refused", topic=event.topic, number=event.partition)

    @_lines.register
    def _(self, event: transactions.TransactionsLoaded) -> Lines:
        known: dict[str, Any] = {"partition": event.partition, "coordinator_epoch": event.coordinator_epoch}
        yield from self._of_transactions("txn_remark", "elected", **known)
        yield from self._of_transactions("txn_remark", "loading", **known)
        ids, at = event.transactional_ids, event.partition
        yield from self._of_transactions("txn_loaded", partition=at, records=ids, load_ms=0, scheduler_ms=0)
        yield from self._of_transactions("txn_remark", "loaded", **known)
