"""The leases of one node, by topic partition: which ones it holds, acquires, renews and releases.

No I/O and no clock, like the cores: inputs come with the node's own time, effects are returned.
The store carries out each request by its own clock; ``Renew``, ``Acquire`` and ``Release`` say what it must promise.

Invariants:

- A node leads a partition only until ``valid_until`` by its own clock: the length of a lease, less a margin for clock
  drift, counted from *before* it sent the request that acquired or renewed the lease. The store counts from when that
  request arrived, so no other node can acquire the partition earlier.
- Every node applies the same rules to the view of the store, so nodes with the same view want different partitions.
  Where their views differ, the store decides, and each node reads the view again.
- A node stops leading a partition before it releases the lease. Each acquisition raises the epoch by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, Millis, NodeInfo
from rejoin.protocol.types import TopicPartition

MARGIN_PARTS: Final = 10
"""One part in this many of a lease is kept as a margin for clock drift."""
RENEWALS: Final = 3
"""How many times a lease can be renewed before it expires."""


# --- inputs


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class StoreChanged:
    """Something may have changed in the store."""


@dataclass(frozen=True, slots=True)
class RenewResult:
    """A ``Renew`` was carried out: the renewed leases, and the view after it."""

    renewed: tuple[TopicPartition, ...]
    view: LeadershipView


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """An ``Acquire`` was carried out: the acquired partitions with their new epochs."""

    epochs: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A ``Release`` was carried out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A ``Renew`` was refused: another process is registered under this node's id and counts as alive."""

    by: NodeInfo


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The store did not answer. The request may have been carried out."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Another node should lead a partition."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Drain:
    """This node is about to stop."""


LeaseInput: TypeAlias = (
    Tick | StoreChanged | RenewResult | AcquireResult | ReleaseResult | Refusal | Unreachable | Resign | Drain
)


# --- effects


@dataclass(frozen=True, slots=True)
class Renew:
    """Register this node as alive, renew these leases (partition to epoch), and read the view.

    The store refuses a node id that another live incarnation has registered. It renews a lease only if this incarnation
    still holds it, in this epoch, and it has not expired.
    """

    held: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Acquire:
    """Acquire those of these partitions that are free: never held, released, expired, or this incarnation's own."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Release these leases (partition to epoch). ``leave`` also removes this node from the list of nodes."""

    held: dict[TopicPartition, int]
    leave: bool = False


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead a partition from now on."""

    partition: TopicPartition
    epoch: int


@dataclass(frozen=True, slots=True)
class StopLeading:
    """Stop leading a partition. ``expired``: its lease was not renewed in time."""

    partition: TopicPartition
    expired: bool = False


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The store has returned a newer view of the cluster."""

    view: LeadershipView


@dataclass(frozen=True, slots=True)
class NodeIdConflict:
    """Another process is registered under this node's id. This node can lead nothing while that one is alive."""

    by: NodeInfo


Request: TypeAlias = Renew | Acquire | Release
"""A request to the store."""

Effect: TypeAlias = Renew | Acquire | Release | Lead | StopLeading | ViewChange | NodeIdConflict


@dataclass(slots=True)
class Lease:
    """A partition that this node leads."""

    epoch: int
    valid_until: Millis


class Leases:
    """One node's leases. At most one request is in flight; its result comes back as an input."""

    def __init__(self, node_id: int, incarnation: str, partitions: Sequence[TopicPartition], lease_ms: Millis) -> None:
        self.node_id = node_id
        self.incarnation = incarnation
        self.lease_ms = lease_ms
        self.held: dict[TopicPartition, Lease] = {}
        self.view = LeadershipView()
        """The last view that the store returned."""
        self.registered = False
        self.left = False
        self._draining = False
        self._partitions = tuple(partitions)
        self._own_ms = lease_ms - max(1, lease_ms // MARGIN_PARTS)
        self._renew_interval_ms = max(1, lease_ms // RENEWALS)
        self._retry_ms = max(1, lease_ms // 10)
        self._in_flight: Request | None = None
        self._sent_at: Millis = 0
        self._store_changed = False
        self._renew_at: Millis = 0
        self._view_at: Millis = 0
        self._not_before: Millis = 0
        self._wanted: tuple[TopicPartition, ...] = ()
        self._to_release: dict[TopicPartition, int] = {}

    # --- inputs and deadlines

    def step(self, what: LeaseInput, now: Millis) -> list[Effect]:
        """Handle an input and return the effects, in order."""
        effects: list[Effect] = []
        self._expire(now, effects)
        match what:
            case StoreChanged():
                self._store_changed = True
                self._renew_at = min(self._renew_at, now)
            case RenewResult():
                self._on_renewed(what, now, effects)
            case AcquireResult():
                self._on_acquired(what, now, effects)
            case ReleaseResult():
                self._on_released(now)
            case Refusal():
                self._on_refused(what, now, effects)
            case Unreachable():
                self._in_flight = None
                self._wanted = ()
                self._not_before = now + self._retry_ms
            case Resign():
                self._release(what.partition, effects)
            case Drain():
                self._draining = True
                for partition in list(self.held):
                    self._release(partition, effects)
            case Tick():
                pass
        self._send_next(now, effects)
        return effects

    def next_deadline(self) -> Millis | None:
        """When the next ``Tick`` is due."""
        at = [lease.valid_until for lease in self.held.values()]
        if self._in_flight is None and not self.left:
            at_once = self._to_release or self._wanted or self._draining
            at.append(self._not_before if at_once else max(self._not_before, self._renew_at))
        return min(at, default=None)

    def valid_until(self) -> Millis | None:
        """When the first of the held leases expires; none where none is held."""
        return min((lease.valid_until for lease in self.held.values()), default=None)

    def view_at(self, now: Millis) -> LeadershipView:
        """The last view, with the time that has passed taken off its nodes and leases."""
        return self.view.later(self.view_age_ms(now))

    def view_age_ms(self, now: Millis) -> Millis:
        """How old the view is."""
        return max(0, now - self._view_at)

    def next_expiry(self, now: Millis) -> Millis | None:
        """When the next lease of another node expires in ``view_at``."""
        others = (lease for lease in self.view.leases if lease.incarnation != self.incarnation)
        ends = (self._view_at + lease.ms_left for lease in others if lease.ms_left is not None)
        return min((end for end in ends if end > now), default=None)

    def cluster(self, broker: Broker, view: LeadershipView, age_ms: Millis = 0) -> ClusterSeen:
        """The brokers and the leaders: other nodes from ``view``, this node from its own leases.

        ``age_ms`` is the age of the view. Leases expire meanwhile. Brokers are kept until there is a newer view: a node
        that has stopped looks like one that cannot reach the store.
        """
        brokers = {node.node_id: node.broker for node in view.workers()}
        if self.registered:
            brokers[self.node_id] = broker
        leaders = {
            lease.partition: lease.node_id
            for lease in view.leases
            if (lease.ms_left or 0) > age_ms and lease.incarnation != self.incarnation
        }
        leaders |= dict.fromkeys(self.held, self.node_id)
        return ClusterSeen(tuple(each for _, each in sorted(brokers.items())), dict(sorted(leaders.items())))

    # --- results of requests

    def _expire(self, now: Millis, effects: list[Effect]) -> None:
        for partition, lease in list(self.held.items()):
            if lease.valid_until <= now:
                del self.held[partition]
                effects.append(StopLeading(partition, expired=True))

    def _on_renewed(self, what: RenewResult, now: Millis, effects: list[Effect]) -> None:
        asked, self._in_flight = self._in_flight, None
        assert isinstance(asked, Renew), "a RenewResult answers a Renew"
        self.registered = True
        self.view = what.view
        self._view_at = now
        self._renew_at = (
            now if self._store_changed else min(self._sent_at + self._renew_interval_ms, self._next_expiry(now))
        )
        self._store_changed = False
        renewed = frozenset(what.renewed)
        for partition, epoch in asked.held.items():
            lease = self.held.get(partition)
            if lease is None or lease.epoch != epoch:
                continue
            if partition in renewed:
                lease.valid_until = self._sent_at + self._own_ms
            else:
                del self.held[partition]
                effects.append(StopLeading(partition, expired=True))
        self._expire(now, effects)
        effects.append(ViewChange(self.view))
        if not self._draining:
            self._plan(effects)

    def _next_expiry(self, now: Millis) -> Millis:
        """When the next registration or lease of another node expires unless it is renewed."""
        left = [lease.ms_left or 0 for lease in self.view.leases if lease.incarnation != self.incarnation]
        left += [node.ms_left for node in self.view.nodes if node.incarnation != self.incarnation]
        return now + min((ms for ms in left if ms > 0), default=self.lease_ms) + 1

    def _on_acquired(self, what: AcquireResult, now: Millis, effects: list[Effect]) -> None:
        asked, self._in_flight = self._in_flight, None
        assert isinstance(asked, Acquire), "an AcquireResult answers an Acquire"
        # The view must show what was acquired. The rest is another node's by now, or an append is in flight there.
        self._renew_at = now if len(what.epochs) == len(asked.partitions) else now + self._retry_ms // 2
        valid_until = self._sent_at + self._own_ms
        for partition, epoch in sorted(what.epochs.items()):
            if self._draining:
                self._to_release[partition] = epoch
            elif valid_until > now:
                self.held[partition] = Lease(epoch, valid_until)
                effects.append(Lead(partition, epoch))

    def _on_released(self, now: Millis) -> None:
        asked, self._in_flight = self._in_flight, None
        assert isinstance(asked, Release), "a ReleaseResult answers a Release"
        for partition, epoch in asked.held.items():
            if self._to_release.get(partition) == epoch:
                del self._to_release[partition]
        self._renew_at = now
        if asked.leave:
            self.left = True
            self.registered = False

    def _on_refused(self, what: Refusal, now: Millis, effects: list[Effect]) -> None:
        self._in_flight = None
        self.registered = False
        for partition in list(self.held):
            del self.held[partition]
            effects.append(StopLeading(partition, expired=True))
        self._to_release.clear()
        self._renew_at = now + min(self._renew_interval_ms, max(1, what.by.ms_left + 1))
        effects.append(NodeIdConflict(what.by))

    # --- the next request

    def _send_next(self, now: Millis, effects: list[Effect]) -> None:
        if self._in_flight is not None or self.left or now < self._not_before:
            return
        request: Request
        if self._to_release or self._draining:
            request = Release(dict(sorted(self._to_release.items())), leave=self._draining)
        elif self._wanted:
            request = Acquire(self._wanted)
            self._wanted = ()
        elif now >= self._renew_at:
            self._store_changed = False
            request = Renew({partition: lease.epoch for partition, lease in sorted(self.held.items())})
        else:
            return
        self._in_flight = request
        self._sent_at = now
        effects.append(request)

    def _release(self, partition: TopicPartition, effects: list[Effect]) -> None:
        lease = self.held.pop(partition, None)
        if lease is not None:
            effects.append(StopLeading(partition))
            self._to_release[partition] = lease.epoch

    # --- balancing

    def _plan(self, effects: list[Effect]) -> None:
        """Choose the partitions to acquire or, where none is free, those to release.

        Each free partition goes to the node with the fewest; to the node that released it only if there is no other.
        """
        workers = self.view.workers()
        counts = {node.node_id: 0 for node in workers}
        if self.node_id not in counts:
            return
        free: list[tuple[TopicPartition, LeaseInfo | None]] = []
        wanted: list[TopicPartition] = []
        for partition in self._partitions:
            lease = self.view.by_partition.get(partition)
            if lease is None or not lease.is_live:
                free.append((partition, lease))
                continue
            if lease.node_id in counts:
                counts[lease.node_id] += 1
            if (
                lease.incarnation == self.incarnation
                and partition not in self.held
                and partition not in self._to_release
            ):
                # Acquired, but the answer was lost; or expired by this node's clock and not yet by the store's.
                wanted.append(partition)
        for partition, lease in free:
            released_by = lease.node_id if lease is not None and lease.ms_left is None else None
            others = [node_id for node_id in counts if node_id != released_by]
            taker = min(others or counts, key=lambda node_id: (counts[node_id], node_id))
            counts[taker] += 1
            if taker == self.node_id:
                wanted.append(partition)
        self._wanted = tuple(sorted(wanted))
        if not free:
            self._release_surplus(counts, effects)

    def _release_surplus(self, counts: dict[int, int], effects: list[Effect]) -> None:
        """Release partitions, longest held first, until no node has two more than another."""
        surplus = 0
        while True:
            most = max(counts, key=lambda node_id: (counts[node_id], -node_id))
            least = min(counts, key=lambda node_id: (counts[node_id], node_id))
            if counts[most] - counts[least] < 2:
                break
            counts[most] -= 1
            counts[least] += 1
            surplus += most == self.node_id
        for partition in list(self.held)[:surplus]:
            self._release(partition, effects)
