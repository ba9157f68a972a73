"""The replicas of a partition beside its leader: how far each has got, and which are in sync.

Kafka: Partition, Replica.
"""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.coordinator.core.inputs import Millis, PartitionRegistration


class Followers:
    """A leader's view of its followers. Without followers the leader is the only in-sync replica."""

    __slots__ = ("_behind_since", "_end_offsets", "_silent", "are_any", "isr", "replicas", "wanted_isr")

    def __init__(self, registration: PartitionRegistration | None, leader: int) -> None:
        replicas = () if registration is None else registration.replicas
        self.isr: tuple[int, ...] = () if registration is None else registration.isr
        self.wanted_isr: tuple[int, ...] | None = None
        """The in-sync replicas that the controller was asked for, until it answers."""
        self._end_offsets: dict[int, int] = {replica: 0 for replica in replicas if replica != leader}
        self.are_any = bool(self._end_offsets)
        """Whether there is a replica beside the leader."""
        self.replicas = len(self._end_offsets) + 1
        """How many there are, the leader included."""
        self._behind_since: dict[int, Millis] = {}
        self._silent: tuple[int, ...] = ()

    def is_enough(self, min_insync_replicas: int) -> bool:
        """Whether enough replicas are in sync. Kafka: Partition.effectiveMinIsr."""
        if not self._end_offsets:
            return True
        return max(1, len(self.isr)) >= min(min_insync_replicas, self.replicas)

    def high_watermark(self, end_offset: int) -> int:
        """The end of what all replicas in sync have; ``end_offset`` is that of the leader."""
        if not self._end_offsets:
            return end_offset
        return min([end_offset, *(end for replica, end in self._end_offsets.items() if replica in self.isr)])

    # --- what happens to them

    def alter(self, registration: PartitionRegistration) -> None:
        """The controller has decided on the replicas, and on those in sync. One that is new has nothing yet."""
        if registration.leader in registration.replicas:
            followers = (each for each in registration.replicas if each != registration.leader)
            self._end_offsets = {each: self._end_offsets.get(each, 0) for each in followers}
            self._behind_since = {each: at for each, at in self._behind_since.items() if each in self._end_offsets}
            self.are_any = bool(self._end_offsets)
            self.replicas = len(self._end_offsets) + 1
        self.isr = registration.isr
        self.wanted_isr = None

    def appended(self, end_offset: int, now: Millis) -> None:
        """The leader's log ends there from now on: its followers are behind until they have fetched that."""
        for replica, end in self._end_offsets.items():
            if end < end_offset:
                self._behind_since.setdefault(replica, now)

    def fetched(self, end_offsets: Mapping[int, int], silent: tuple[int, ...], end_offset: int) -> None:
        """Followers have got so far; some do not fetch now."""
        self._silent = silent
        for replica, end in end_offsets.items():
            if replica in self._end_offsets:
                self._end_offsets[replica] = end
                if end >= end_offset:
                    self._behind_since.pop(replica, None)

    # --- who can be read from

    def readable_from(self, offset: int, now: Millis) -> list[tuple[int, int, Millis]]:
        """The followers in sync that have a log up to an offset: their ids, ends, and how long they have been behind.

        Kafka: ReplicaManager.findPreferredReadReplica.
        """
        return [
            (replica, end, now - self._behind_since.get(replica, now))
            for replica, end in self._end_offsets.items()
            if replica in self.isr and end >= offset
        ]

    # --- who is in sync

    @property
    def are_behind(self) -> bool:
        """Whether any follower has not all that the leader has."""
        return bool(self._behind_since)

    def next_expiry(self, lag_ms: Millis) -> Millis | None:
        """When the first follower in sync will have been behind for too long, or none."""
        if self.wanted_isr is not None:
            return None
        since = [at for replica, at in self._behind_since.items() if replica in self.isr]
        return min(since) + lag_ms if since else None

    def shrunk(self, now: Millis, lag_ms: Millis) -> tuple[int, ...]:
        """The replicas in sync without those that have been behind for too long."""
        # Differs: Kafka looks only twice within that time, so it takes up to half as long again.
        return tuple(each for each in self.isr if self._behind_since.get(each, now) + lag_ms > now)

    def grown(self, high_watermark: int) -> tuple[int, ...]:
        """The replicas in sync with those that have caught up. Kafka: Partition.isFollowerInSync."""
        out = (each for each in self._end_offsets if each not in self.isr and each not in self._silent)
        return (*self.isr, *(each for each in out if self._end_offsets[each] >= high_watermark))
