"""A node's part in the sharing of partitions, by topic partition: which leases it has, takes, renews and gives back.

No I/O and no clock, like the cores: what happens is handed in with the node's own time, what shall be done comes out.
The store carries each request out by its own clock; ``Beat``, ``Take`` and ``GiveBack`` say what it must promise.

What holds at any time:

- A node leads a partition only until ``valid_until`` by its own clock: the length of a lease, less a margin for clocks
  that do not go alike, counted from *before* the request was sent that took or renewed it. The store counts from when
  that request arrived, so it lets no other node have the partition earlier.
- Everything is decided from what the store shows, by rules that are the same on each node, so nodes that see the same
  want different partitions. Where they see different things the store decides, and all look again.
- What is given back was given up before; only then can another take it. Each take-over raises the epoch by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, Millis, NodeInfo
from rejoin.protocol.types import TopicPartition

MARGIN_PARTS: Final = 10
"""A tenth of a lease is left for clocks that do not go alike."""
RENEWALS: Final = 3
"""So often a lease could be renewed before it runs out."""


# --- what happens


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing but time."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something may have changed in the store."""


@dataclass(frozen=True, slots=True)
class BeatResult:
    """A ``Beat`` was carried out: the leases that were renewed, and the view after it."""

    renewed: tuple[TopicPartition, ...]
    view: LeadershipView


@dataclass(frozen=True, slots=True)
class TakeResult:
    """A ``Take`` was carried out: what was had, with its new epoch."""

    epochs: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GiveBackResult:
    """A ``GiveBack`` was carried out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A ``Beat`` was refused: another process has registered under this node's id and is taken to be alive."""

    by: NodeInfo


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The store did not answer: what was asked for may have been done or not."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Another node shall lead a partition."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Drain:
    """This node is about to stop."""


LeaseInput: TypeAlias = Tick | Nudge | BeatResult | TakeResult | GiveBackResult | Refusal | Unreachable | Resign | Drain


# --- what shall be done


@dataclass(frozen=True, slots=True)
class Beat:
    """Say that this node is alive, renew these leases (partition to epoch), and look around.

    The store refuses a node id that is another incarnation's whose time has not run out. It renews a lease only if it
    is still this incarnation's, in this epoch, and has not run out.
    """

    held: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Take:
    """Take these partitions, each if it is free: never had, given back, run out, or this incarnation's own."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Give these back (partition to epoch). ``leave``: and take this node out of the list of nodes."""

    held: dict[TopicPartition, int]
    leave: bool = False


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead a partition from now on."""

    partition: TopicPartition
    epoch: int


@dataclass(frozen=True, slots=True)
class StopLeading:
    """Do not lead a partition any more. ``lapsed``: since its lease could not be renewed in time."""

    partition: TopicPartition
    lapsed: bool = False


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The cluster is now known to be so."""

    view: LeadershipView


@dataclass(frozen=True, slots=True)
class NodeIdConflict:
    """Another process has registered under this node's id: nothing can be led before it is gone."""

    by: NodeInfo


Request: TypeAlias = Beat | Take | GiveBack
"""What the store is asked to do."""

Effect: TypeAlias = Beat | Take | GiveBack | Lead | StopLeading | ViewChange | NodeIdConflict


@dataclass(slots=True)
class Lease:
    """A partition that this node leads."""

    epoch: int
    valid_until: Millis


class Leases:
    """One node's leases. At most one request is under way; its end comes as one of the happenings."""

    def __init__(self, node_id: int, incarnation: str, partitions: Sequence[TopicPartition], lease_ms: Millis) -> None:
        self.node_id = node_id
        self.incarnation = incarnation
        self.lease_ms = lease_ms
        self.held: dict[TopicPartition, Lease] = {}
        self.view = LeadershipView()
        """As the store showed it last."""
        self.registered = False
        self.left = False
        self._draining = False
        self._partitions = tuple(partitions)
        self._own_ms = lease_ms - max(1, lease_ms // MARGIN_PARTS)
        self._beat_ms = max(1, lease_ms // RENEWALS)
        self._retry_ms = max(1, lease_ms // 10)
        self._under_way: Request | None = None
        self._sent_at: Millis = 0
        self._nudged = False
        self._beat_at: Millis = 0
        self._seen_at: Millis = 0
        self._not_before: Millis = 0
        self._wanted: tuple[TopicPartition, ...] = ()
        self._to_give: dict[TopicPartition, int] = {}

    # --- the door

    def step(self, what: LeaseInput, now: Millis) -> list[Effect]:
        """Take in what happened; what shall be done comes back, in order."""
        effects: list[Effect] = []
        self._lapse(now, effects)
        match what:
            case Nudge():
                self._nudged = True
                self._beat_at = min(self._beat_at, now)
            case BeatResult():
                self._beaten(what, now, effects)
            case TakeResult():
                self._taken(what, now, effects)
            case GiveBackResult():
                self._given(now)
            case Refusal():
                self._refused(what, now, effects)
            case Unreachable():
                self._under_way = None
                self._wanted = ()
                self._not_before = now + self._retry_ms
            case Resign():
                self._give_up(what.partition, effects)
            case Drain():
                self._draining = True
                for partition in list(self.held):
                    self._give_up(partition, effects)
            case Tick():
                pass
        self._go_on(now, effects)
        return effects

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Tick`` at the latest."""
        at = [lease.valid_until for lease in self.held.values()]
        if self._under_way is None and not self.left:
            at_once = self._to_give or self._wanted or self._draining
            at.append(self._not_before if at_once else max(self._not_before, self._beat_at))
        return min(at, default=None)

    def valid_until(self) -> Millis | None:
        """The instant from which not all that is led is led by right any more; none where nothing is led."""
        return min((lease.valid_until for lease in self.held.values()), default=None)

    def seen(self, now: Millis) -> LeadershipView:
        """The view as it is by now: without a newer one from the store, those in it run out of time."""
        return self.view.later(self.seen_ms_ago(now))

    def seen_ms_ago(self, now: Millis) -> Millis:
        """How old the view is."""
        return max(0, now - self._seen_at)

    def next_run_out(self, now: Millis) -> Millis | None:
        """When ``seen`` next shows a lease of another node no longer."""
        others = (lease for lease in self.view.leases if lease.incarnation != self.incarnation)
        ends = (self._seen_at + lease.ms_left for lease in others if lease.ms_left is not None)
        return min((end for end in ends if end > now), default=None)

    def cluster(self, broker: Broker, view: LeadershipView, passed_ms: Millis = 0) -> ClusterSeen:
        """Who is there and who leads what: others as the store showed them in ``view``, itself as it knows.

        ``passed_ms`` is how long ago that was. Leases run out meanwhile; who is there stays, as long as nothing newer
        is known: a node that is gone looks like one that cannot reach the store.
        """
        brokers = {node.node_id: node.broker for node in view.workers()}
        if self.registered:
            brokers[self.node_id] = broker
        leaders = {
            lease.partition: lease.node_id
            for lease in view.leases
            if (lease.ms_left or 0) > passed_ms and lease.incarnation != self.incarnation
        }
        leaders |= dict.fromkeys(self.held, self.node_id)
        return ClusterSeen(tuple(each for _, each in sorted(brokers.items())), dict(sorted(leaders.items())))

    # --- ends of requests

    def _lapse(self, now: Millis, effects: list[Effect]) -> None:
        for partition, lease in list(self.held.items()):
            if lease.valid_until <= now:
                del self.held[partition]
                effects.append(StopLeading(partition, lapsed=True))

    def _beaten(self, what: BeatResult, now: Millis, effects: list[Effect]) -> None:
        asked, self._under_way = self._under_way, None
        assert isinstance(asked, Beat), "only a Beat ends like this"
        self.registered = True
        self.view = what.view
        self._seen_at = now
        self._beat_at = now if self._nudged else min(self._sent_at + self._beat_ms, self._next_run_out(now))
        self._nudged = False
        renewed = frozenset(what.renewed)
        for partition, epoch in asked.held.items():
            lease = self.held.get(partition)
            if lease is None or lease.epoch != epoch:
                continue
            if partition in renewed:
                lease.valid_until = self._sent_at + self._own_ms
            else:
                del self.held[partition]
                effects.append(StopLeading(partition, lapsed=True))
        self._lapse(now, effects)
        effects.append(ViewChange(self.view))
        if not self._draining:
            self._plan(effects)

    def _next_run_out(self, now: Millis) -> Millis:
        """When the time of another node, or of a lease of another, is over unless it is prolonged."""
        left = [lease.ms_left or 0 for lease in self.view.leases if lease.incarnation != self.incarnation]
        left += [node.ms_left for node in self.view.nodes if node.incarnation != self.incarnation]
        return now + min((ms for ms in left if ms > 0), default=self.lease_ms) + 1

    def _taken(self, what: TakeResult, now: Millis, effects: list[Effect]) -> None:
        asked, self._under_way = self._under_way, None
        assert isinstance(asked, Take), "only a Take ends like this"
        # What was taken shall show in the view. What was not is another's by now, or an append is in flight there.
        self._beat_at = now if len(what.epochs) == len(asked.partitions) else now + self._retry_ms // 2
        valid_until = self._sent_at + self._own_ms
        for partition, epoch in sorted(what.epochs.items()):
            if self._draining:
                self._to_give[partition] = epoch
            elif valid_until > now:
                self.held[partition] = Lease(epoch, valid_until)
                effects.append(Lead(partition, epoch))

    def _given(self, now: Millis) -> None:
        asked, self._under_way = self._under_way, None
        assert isinstance(asked, GiveBack), "only a GiveBack ends like this"
        for partition, epoch in asked.held.items():
            if self._to_give.get(partition) == epoch:
                del self._to_give[partition]
        self._beat_at = now
        if asked.leave:
            self.left = True
            self.registered = False

    def _refused(self, what: Refusal, now: Millis, effects: list[Effect]) -> None:
        self._under_way = None
        self.registered = False
        for partition in list(self.held):
            del self.held[partition]
            effects.append(StopLeading(partition, lapsed=True))
        self._to_give.clear()
        self._beat_at = now + min(self._beat_ms, max(1, what.by.ms_left + 1))
        effects.append(NodeIdConflict(what.by))

    # --- what next

    def _go_on(self, now: Millis, effects: list[Effect]) -> None:
        if self._under_way is not None or self.left or now < self._not_before:
            return
        request: Request
        if self._to_give or self._draining:
            request = GiveBack(dict(sorted(self._to_give.items())), leave=self._draining)
        elif self._wanted:
            request = Take(self._wanted)
            self._wanted = ()
        elif now >= self._beat_at:
            self._nudged = False
            request = Beat({partition: lease.epoch for partition, lease in sorted(self.held.items())})
        else:
            return
        self._under_way = request
        self._sent_at = now
        effects.append(request)

    def _give_up(self, partition: TopicPartition, effects: list[Effect]) -> None:
        lease = self.held.pop(partition, None)
        if lease is not None:
            effects.append(StopLeading(partition))
            self._to_give[partition] = lease.epoch

    # --- sharing

    def _plan(self, effects: list[Effect]) -> None:
        """Find out what to take, or else what is more than this node's part.

        What is free goes to those that have least, one after the other; not to who gave it back, if there is another.
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
            if lease.incarnation == self.incarnation and partition not in self.held and partition not in self._to_give:
                # TakeResult, but the answer was lost, or given up by this node's clock and not run out by the store's.
                wanted.append(partition)
        for partition, lease in free:
            given_by = lease.node_id if lease is not None and lease.ms_left is None else None
            others = [node_id for node_id in counts if node_id != given_by]
            taker = min(others or counts, key=lambda node_id: (counts[node_id], node_id))
            counts[taker] += 1
            if taker == self.node_id:
                wanted.append(partition)
        self._wanted = tuple(sorted(wanted))
        if not free:
            self._give_surplus(counts, effects)

    def _give_surplus(self, counts: dict[int, int], effects: list[Effect]) -> None:
        """Give up what others should have, until no node has two more than another. What was held longest goes."""
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
            self._give_up(partition, effects)
