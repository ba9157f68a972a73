"""Follows a cluster: one poll after the other, what they lead to, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.kafka_cluster.broker_logs import LogTails
from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.polling import ClusterPoller
from rejoin.pipeline.kafka_cluster.store import ClusterStore
from rejoin.pipeline.why.events import findings_of, rebalances_of, sessions_of
from rejoin.pipeline.why.rows import names_of
from rejoin.pipeline.why.story import GroupStatus, GroupStory

Row = dict[str, Any]

FINDINGS_EVERY_MS: Final = 10_000
"""Rules are run so often at the most, for groups that have changed and for those whose offsets stand."""


class PollResult(NamedTuple):
    """The result of one poll."""

    rebalances: list[Row]
    """Rebalances that have ended, with their ``group_id``."""
    new_findings: list[Row]
    problems: list[str]
    missing: Sequence[str] = ()
    """Groups that are asked for by name and that the cluster does not have."""


class ClusterWatch:
    """All groups of a cluster over time."""

    def __init__(self, poller: ClusterPoller, store: ClusterStore | None = None, logs: LogTails | None = None) -> None:
        self._poller = poller
        self._store = store
        self._logs = logs
        self.groups: dict[str, ObservedGroup] = {} if store is None else store.observed()
        self.gone: set[str] = set()
        """Groups that were there before and are no longer listed."""
        self._findings: dict[str, list[Row]] = {group_id: self._judged(group_id) for group_id in self.groups}
        self._known = {_key(row) for row in self.findings()}
        self._judged_at: dict[str, int] = {}
        self._logged: dict[str, int] = {}
        """Rebalances of each group that its logs have shown."""
        self._of_logs: dict[str, tuple[list[Row], list[Row]]] = {}
        """Events of a group with the rebalances that were made of them."""

    async def poll(self) -> PollResult:
        """Poll the cluster once. Raises ClusterProblem and OSError."""
        problems = self._logs.read_on() if self._logs is not None else []
        snapshot = await self._poller.poll()
        done: list[Row] = []
        for group_id, each in snapshot.groups.items():
            group = self.groups.setdefault(group_id, ObservedGroup(group_id, "cluster"))
            row = group.follow(each)
            logged = self._from_logs(group_id)
            if logged is not None:
                done += [{**row, "group_id": group_id} for row in logged]
            elif row is not None:
                done.append({**row, "group_id": group_id})
            if row is not None or logged or snapshot.at_ms - self._judged_at.get(group_id, 0) >= FINDINGS_EVERY_MS:
                self._judged_at[group_id] = snapshot.at_ms
                self._findings[group_id] = self._judged(group_id)
        if not snapshot.problems and not self._poller.is_restricted:
            self.gone = self.groups.keys() - snapshot.groups.keys()
        if self._store is not None:
            self._store.keep(list(snapshot.groups.values()))
        return PollResult(done, list(self._new()), [*problems, *snapshot.problems], snapshot.missing)

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        return sorted((row for rows in self._findings.values() for row in rows), key=order)

    def statuses(self) -> list[GroupStatus]:
        """Statuses of the groups, the latest change first."""
        found = [group.status() for group_id, group in self.groups.items() if group_id not in self.gone]
        return sorted(found, key=lambda each: (-(each.since_ms or 0), each.group_id))

    def story(self, group_id: str) -> GroupStory:
        """All about a group: why it rebalanced from the logs, where they have it."""
        group = self.groups[group_id]
        events = self._events(group_id)
        if not events:
            return group.story()
        names = names_of(sessions_of(group_id, events))
        rebalances, found = self._rebalances(group_id, events), self._judged(group_id)
        return GroupStory(group.status(), rebalances, found, names, costs_are_upper_bounds=True)

    def _judged(self, group_id: str) -> list[Row]:
        group, events = self.groups[group_id], self._events(group_id)
        if not events:
            return group.findings()
        end_ms = max([events[-1]["at_ms"], 0 if group.last is None else group.last.at_ms])
        return findings_of(group_id, events, self._rebalances(group_id, events), end_ms, group.progress_rows())

    def _events(self, group_id: str) -> list[Row]:
        return [] if self._logs is None else self._logs.events(group_id)

    def _rebalances(self, group_id: str, events: list[Row]) -> list[Row]:
        """Computed from a group's events, again only when there are new ones."""
        known = self._of_logs.get(group_id)
        if known is None or known[0] is not events:
            known = self._of_logs[group_id] = (events, rebalances_of(group_id, events))
        return known[1]

    def _from_logs(self, group_id: str) -> list[Row] | None:
        """The rebalances that logs show to have ended since; none where they say nothing of the group."""
        events = self._events(group_id)
        if not events:
            return None
        ended = [row for row in self._rebalances(group_id, events) if row["ended_at_ms"] is not None]
        before = self._logged.get(group_id, 0)
        self._logged[group_id] = len(ended)
        return ended[before:]

    def _new(self) -> Iterable[Row]:
        for row in self.findings():
            if _key(row) not in self._known:
                self._known.add(_key(row))
                yield row


def _key(row: Row) -> tuple[Any, ...]:
    """A finding stays the same while its numbers grow."""
    return row["group_id"], row["finding"], tuple(row["members"] or ())
