"""Which consumer owned a partition when, as the consumers saw it, and when none did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.journal.events.client import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from rejoin.journal.events.simulation import ConsumerCrashed, ConsumerFailed, ConsumerStarted, ConsumerStopped
from rejoin.simulation.kernel import EventHandlers, Millis


class GroupPartition(NamedTuple):
    """A partition as one group reads it."""

    group_id: str
    topic: str
    partition: int


class OwnershipInterval(NamedTuple):
    """A consumer owned a partition from ``start`` to ``end``."""

    partition: GroupPartition
    client_id: str
    start: Millis
    end: Millis


@dataclass(slots=True)
class PartitionOwners:
    """The owners of a partition, in the order in which they got it, and how long it had none."""

    owners: dict[str, Millis] = field(default_factory=dict)
    free_since: Millis | None = 0
    unowned_ms: Millis = 0
    worst_ms: Millis = 0
    is_gone: bool = False
    """True from when its topic was deleted: then it needs no owner."""


@dataclass(slots=True)
class ClientState:
    """A consumer: what it owns, and since when it has been stopped by a rebalance."""

    group_id: str
    owned: dict[GroupPartition, None] = field(default_factory=dict)
    stopped_since: Millis | None = None
    had_any: bool = False


class Ownership:
    """Follows the events. ``keep``: remember every interval of ownership, for the chart."""

    def __init__(self, *, keep: bool = False) -> None:
        self.partitions: dict[GroupPartition, PartitionOwners] = {}
        self.clients: dict[str, ClientState] = {}
        self.stopped_ms: dict[str, Millis] = {}
        """By group: consumer-milliseconds in which a consumer that had owned something waited for a rebalance."""
        self.held: list[OwnershipInterval] = []
        self.closed_gaps: list[tuple[GroupPartition, Millis]] = []
        """Partitions that have an owner again, and how long they had none; the reader clears the list."""
        self._keep = keep
        self.handlers: EventHandlers = {
            PartitionsAssigned: self._assigned,
            PartitionsRevoked: self._given_up,
            PartitionsLost: self._given_up,
            ConsumerStarted: self._begun,
            ConsumerCrashed: self._ended,
            ConsumerStopped: self._ended,
            ConsumerFailed: self._ended,
        }
        """Handlers by event class; other events do not matter here."""

    def expect(self, group_id: str, topic: str, partitions: int, now: Millis) -> None:
        """From now on these partitions should have an owner in the group."""
        for index in range(partitions):
            partition = GroupPartition(group_id, topic, index)
            if partition not in self.partitions:
                self.partitions[partition] = PartitionOwners(free_since=now)

    def end(self, topic: str, now: Millis) -> None:
        """Partitions of a topic need no owner from now on: it was deleted."""
        for partition, state in self.partitions.items():
            if partition.topic == topic and not state.is_gone:
                if state.free_since is not None:
                    self._count_gap(state, now)
                state.free_since, state.is_gone = None, True

    def _assigned(self, event: PartitionsAssigned, now: Millis) -> None:
        client = self._client(event.client_id, event.group_id)
        if client.stopped_since is not None:
            self._stopped(client, now)
        for topic, indexes in event.partitions.items():
            for index in indexes:
                self._take(GroupPartition(client.group_id, topic, index), event.client_id, client, now)
        client.had_any = client.had_any or bool(client.owned)

    def _given_up(self, event: PartitionsRevoked | PartitionsLost, now: Millis) -> None:
        client = self._client(event.client_id, event.group_id)
        for topic, indexes in event.partitions.items():
            for index in indexes:
                self._release(GroupPartition(client.group_id, topic, index), event.client_id, client, now)
        if client.had_any and not client.owned and client.stopped_since is None:
            client.stopped_since = now

    def _begun(self, event: ConsumerStarted, _: Millis) -> None:
        self.clients[event.client_id] = ClientState(event.group_id)

    def _ended(self, event: ConsumerCrashed | ConsumerStopped | ConsumerFailed, now: Millis) -> None:
        self._gone(event.client_id, now)

    def finish(self, now: Millis) -> None:
        """The end: close what is open."""
        for client_id in list(self.clients):
            self._gone(client_id, now)
        for state in self.partitions.values():
            if state.free_since is not None:
                self._count_gap(state, now)
                state.free_since = now

    def _client(self, client_id: str, group_id: str | None) -> ClientState:
        found = self.clients.get(client_id)
        if found is None:
            found = self.clients[client_id] = ClientState(group_id or "")
        return found

    def _stopped(self, client: ClientState, now: Millis) -> None:
        assert client.stopped_since is not None
        spent = now - client.stopped_since
        self.stopped_ms[client.group_id] = self.stopped_ms.get(client.group_id, 0) + spent
        client.stopped_since = None

    def _gone(self, client_id: str, now: Millis) -> None:
        client = self.clients.pop(client_id, None)
        if client is None:
            return
        if client.stopped_since is not None:
            self._stopped(client, now)
        for partition in list(client.owned):
            self._release(partition, client_id, client, now)

    def _take(self, partition: GroupPartition, client_id: str, client: ClientState, now: Millis) -> None:
        state = self.partitions.setdefault(partition, PartitionOwners(free_since=now))
        client.owned[partition] = None
        if state.free_since is not None:
            self.closed_gaps.append((partition, now - state.free_since))
            self._count_gap(state, now)
            state.free_since = None
        state.owners[client_id] = now

    def _release(self, partition: GroupPartition, client_id: str, client: ClientState, now: Millis) -> None:
        state = self.partitions.get(partition)
        client.owned.pop(partition, None)
        if state is None or client_id not in state.owners:
            return
        since = state.owners.pop(client_id)
        if self._keep and now > since:
            self.held.append(OwnershipInterval(partition, client_id, since, now))
        if not state.owners and not state.is_gone:
            state.free_since = now

    @staticmethod
    def _count_gap(state: PartitionOwners, now: Millis) -> None:
        assert state.free_since is not None
        gap = now - state.free_since
        state.unowned_ms += gap
        state.worst_ms = max(state.worst_ms, gap)
