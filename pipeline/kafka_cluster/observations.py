"""Changes between snapshots of a group: rebalances, members that came and went, lag in records and in time.

Kafka's protocol shows states and assignments, but not why: a member that is gone may have left, or its session may have
expired. What lies between two snapshots is concluded, so it is ``inferred``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.kafka_cluster.progress import PartitionProgress
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup, ClusterMember
from rejoin.pipeline.vocabulary import INFERRED
from rejoin.pipeline.why.story import GroupStatus, GroupStory
from rejoin.protocol.types import TopicPartition

Row = dict[str, Any]

LIVE_CLUSTER: Final = "cluster"
"""The source of rebalances that were observed over Kafka's protocol."""
REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
MOST_REBALANCES: Final = 2_000
LONGEST_GAP_MS: Final = 120_000
"""The watch was paused between snapshots that are further apart."""
_CHAIN_GAP_MS: Final = 60_000


@dataclass(slots=True)
class ObservedGroup:
    """One group over all snapshots."""

    group_id: str
    run_id: str
    last: ClusterGroup | None = None
    since_ms: int | None = None
    rebalances: deque[Row] = field(default_factory=lambda: deque(maxlen=MOST_REBALANCES))
    seen: int = 0
    """Number of rebalances observed, including those that are no longer kept."""
    open: Row | None = None
    sessions: dict[str, Row] = field(default_factory=dict)
    ended: deque[Row] = field(default_factory=lambda: deque(maxlen=MOST_REBALANCES))
    balances: deque[Row] = field(default_factory=lambda: deque(maxlen=MOST_REBALANCES))
    progress: dict[TopicPartition, PartitionProgress] = field(default_factory=dict)

    def follow(self, snapshot: ClusterGroup) -> Row | None:
        """Take in the next snapshot; returns the rebalance that has ended since the last one, if any."""
        before = self.last
        if before is not None and snapshot.at_ms <= before.at_ms:
            return None
        if before is None or before.state != snapshot.state:
            self.since_ms = snapshot.at_ms
        came, gone = self._members(before, snapshot)
        self._offsets(snapshot)
        done = self._rebalance(before, snapshot, came, gone)
        if done is not None or before is None:
            self._balance(snapshot)
        self.last = snapshot
        return done

    def _members(
        self, before: ClusterGroup | None, snapshot: ClusterGroup
    ) -> tuple[list[ClusterMember], list[ClusterMember]]:
        """Members that joined and members that are gone since the last snapshot."""
        known = {member.member_id: member for member in before.members} if before is not None else {}
        now = {member.member_id: member for member in snapshot.members}
        came = [member for member_id, member in now.items() if member_id not in known]
        gone = [member for member_id, member in known.items() if member_id not in now]
        successors = {member.group_instance_id for member in came if member.group_instance_id}
        for member in gone:
            end = "replaced" if member.group_instance_id in successors else "left"
            session = self.sessions.pop(member.member_id, None)
            if session is not None:
                self.ended.append({**session, "ended_at_ms": snapshot.at_ms, "end": end})
        for member in came:
            self.sessions[member.member_id] = {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "joined_at_ms": None if before is None else snapshot.at_ms,
                "ended_at_ms": None,
                "end": "open",
                "protocols": [snapshot.protocol] if snapshot.protocol else None,
                "topics": sorted({partition.topic for partition in member.partitions}) or None,
                "group_protocol": "consumer" if snapshot.group_type == "consumer" else None,
                "confidence": INFERRED,
            }
        return came, gone

    def _rebalance(
        self,
        before: ClusterGroup | None,
        snapshot: ClusterGroup,
        came: list[ClusterMember],
        gone: list[ClusterMember],
    ) -> Row | None:
        if before is None:
            if snapshot.state in REBALANCING:
                self.open = self._begun(snapshot.at_ms, None, snapshot, [], [])
            return None
        moved = _moved(before, snapshot)
        if snapshot.state in REBALANCING:
            if self.open is None:
                self.open = self._begun(snapshot.at_ms, before, snapshot, came, gone)
            else:
                _name_cause(self.open, came, gone)
            return None
        if self.open is None:
            changed = came or gone or moved or (before.epoch is not None and before.epoch != snapshot.epoch)
            if not changed or snapshot.state not in ("Stable", "Empty"):
                return None
            # It began and ended between two snapshots; after a pause of the watch it is not known when.
            began_at_ms = before.at_ms if snapshot.at_ms - before.at_ms <= LONGEST_GAP_MS else snapshot.at_ms
            self.open = self._begun(began_at_ms, before, snapshot, came, gone)
        else:
            _name_cause(self.open, came, gone)
        return self._ended(snapshot, moved)

    def _begun(
        self,
        at_ms: int,
        before: ClusterGroup | None,
        snapshot: ClusterGroup,
        came: list[ClusterMember],
        gone: list[ClusterMember],
    ) -> Row:
        row: Row = {
            "rebalance_id": f"{self.run_id}/{self.group_id}/{LIVE_CLUSTER}/{self.seen + 1}",
            "source": LIVE_CLUSTER,
            "prepared_at_ms": at_ms,
            "ended_at_ms": None,
            "unavailable_ms": None,
            "generation_from": None if before is None else before.epoch,
            "generation_to": None,
            "outcome": "open",
            "cause": "unknown",
            "cause_member_id": None,
            "initial": before is not None and not before.members,
            "members_before": None if before is None else [member.member_id for member in before.members],
            "protocol": snapshot.protocol,
            "owned_before": None if before is None else len(before.owners),
            "owners_before": {} if before is None else before.owners,
            "confidence": INFERRED,
            "group_type": snapshot.group_type,
        }
        _name_cause(row, came, gone)
        return row

    def _ended(self, snapshot: ClusterGroup, moved: int) -> Row:
        assert self.open is not None
        row = self.open
        self.open = None
        owners = row.pop("owners_before")
        before = set(row["members_before"] or ())
        after = [member.member_id for member in snapshot.members]
        row |= {
            "ended_at_ms": snapshot.at_ms,
            "unavailable_ms": snapshot.at_ms - row["prepared_at_ms"],
            "outcome": "emptied" if not snapshot.members else "completed",
            "generation_to": snapshot.epoch,
            "members_after": after,
            "joined": [each for each in after if each not in before],
            "left": [each for each in before if each not in after],
            "moved": max(moved, _changed(owners, snapshot.owners)),
            "protocol": snapshot.protocol or row["protocol"],
        }
        previous = self.rebalances[-1] if self.rebalances else None
        gap_ms = None if previous is None else row["prepared_at_ms"] - previous["ended_at_ms"]
        self.seen += 1
        row["chain"] = self.seen if gap_ms is None or gap_ms > _CHAIN_GAP_MS or previous is None else previous["chain"]
        self.rebalances.append(row)
        return row

    def _balance(self, snapshot: ClusterGroup) -> None:
        counts = {member.member_id: len(member.partitions) for member in snapshot.members}
        if not counts or snapshot.state in REBALANCING:
            return
        if self.balances and self.balances[-1]["until_ms"] is None:
            self.balances[-1]["until_ms"] = snapshot.at_ms
        self.balances.append(
            {
                "at_ms": snapshot.at_ms,
                "until_ms": None,
                "generation": snapshot.epoch,
                "protocol": snapshot.protocol,
                "members": len(counts),
                "partitions": sum(counts.values()),
                "least": min(counts.values()),
                "most": max(counts.values()),
                "idle_members": sum(not number for number in counts.values()),
                "most_member_id": max(counts, key=lambda member: (counts[member], member)),
            }
        )

    def _offsets(self, snapshot: ClusterGroup) -> None:
        owners = snapshot.owners
        for partition, offsets in snapshot.offsets.items():
            progress = self.progress.setdefault(partition, PartitionProgress())
            progress.follow(snapshot.at_ms, offsets, owners.get(partition))
        for partition in self.progress.keys() - snapshot.offsets.keys():
            del self.progress[partition]

    # -- what is made of it

    def status(self) -> GroupStatus:
        """The group's status at the last snapshot."""
        last = self.last
        if last is None:
            return GroupStatus(self.group_id)
        behind = [lag for each in self.progress.values() if (lag := each.lag_ms()) is not None]
        return GroupStatus(
            self.group_id,
            state=last.state,
            since_ms=self.since_ms if self.seen or self.open else None,
            generation=last.epoch,
            members=len(last.members),
            protocol=last.protocol,
            lag=last.lag,
            lag_ms=max(behind) if behind else None,
            rebalances=self.seen + (self.open is not None),
        )

    def names(self) -> dict[str, str]:
        """Member id to what people call it."""
        rows = [*self.ended, *self.sessions.values()]
        return {row["member_id"]: row["group_instance_id"] or row["client_id"] or row["member_id"] for row in rows}

    def story(self, notes: Iterable[str] = ()) -> GroupStory:
        """The status, rebalances and findings of the group."""
        rows = [*self.rebalances]
        if self.open is not None:
            rows.append({name: value for name, value in self.open.items() if name != "owners_before"})
        return GroupStory(self.status(), rows, self.findings(), self.names(), list(notes), costs_are_upper_bounds=True)

    def progress_rows(self) -> list[Row]:
        """Movement of the committed offsets of partitions with an owner."""
        rows = (each.as_row(partition) for partition, each in sorted(self.progress.items()))
        return [row for row in rows if row is not None]

    def findings(self) -> list[Row]:
        """Findings of the rules, the worst first."""
        if self.last is None:
            return []
        lengths: dict[int, int] = {}
        for row in self.rebalances:
            lengths[row["chain"]] = lengths.get(row["chain"], 0) + 1
        rows: Mapping[str, Iterable[Mapping[str, Any]]] = {
            "rebalance": [{**row, "chain_length": lengths[row["chain"]]} for row in self.rebalances],
            "session": [*self.ended, *self.sessions.values()],
            "balance": list(self.balances),
            "progress": self.progress_rows(),
        }
        run = RunContext(run_id=self.run_id, end_ms=self.last.at_ms)
        return list(rows_of(GroupHistory.of(run, self.group_id, rows)))


def _name_cause(row: Row, came: list[ClusterMember], gone: list[ClusterMember]) -> None:
    """Name as the cause the change that was observed."""
    if row["cause"] != "unknown":
        return
    instances = {member.group_instance_id for member in gone if member.group_instance_id}
    choices: list[tuple[str, Callable[[], ClusterMember | None]]] = [
        ("static-metadata", lambda: next((each for each in came if each.group_instance_id in instances), None)),
        ("leave", lambda: gone[0] if gone else None),
        ("join-new", lambda: came[0] if came else None),
    ]
    for cause, find in choices:
        member = find()
        if member is not None:
            row["cause"], row["cause_member_id"] = cause, member.member_id
            row["cause_group_instance_id"], row["cause_client_id"] = member.group_instance_id, member.client_id
            return


def _moved(before: ClusterGroup, snapshot: ClusterGroup) -> int:
    return _changed(before.owners, snapshot.owners)


def _changed(before: Mapping[TopicPartition, ClusterMember], after: Mapping[TopicPartition, ClusterMember]) -> int:
    """Partitions that have another owner than before."""
    return sum(
        partition in before and before[partition].member_id != member.member_id for partition, member in after.items()
    )
