"""Snapshots of a cluster: those that ``rejoin watch --bootstrap-server`` kept, and offset files of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.offset_files import BadOffsets, snapshots_of_files
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup
from rejoin.pipeline.kafka_cluster.store import read_snapshots
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group


class WatchedSource:
    """Draws the conclusions of the watch again from what it kept."""

    def __init__(self, folder: Path, files: Sequence[Path] = ()) -> None:
        """With ``files``, they are what is read, see :mod:`rejoin.pipeline.kafka_cluster.offset_files`."""
        self._folder = folder
        self._files = files

    def groups(self) -> list[GroupStatus]:
        """All groups that were looked at."""
        return [group.status() for _, group in sorted(self._observed(None).items())]

    def story(self, group_id: str) -> GroupStory:
        """All about one group."""
        found = self._observed(group_id)
        if group_id not in found:
            raise unknown_group(group_id, sorted(self._observed(None)), str(self._folder))
        return found[group_id].story()

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        return sorted((row for group in self._observed(None).values() for row in group.findings()), key=order)

    def _observed(self, group_id: str | None) -> dict[str, ObservedGroup]:
        groups: dict[str, ObservedGroup] = {}
        for snapshot in self._snapshots(group_id):
            groups.setdefault(snapshot.group_id, ObservedGroup(snapshot.group_id, str(self._folder))).follow(snapshot)
        return groups

    def _snapshots(self, group_id: str | None) -> Iterable[ClusterGroup]:
        if not self._files:
            return read_snapshots(self._folder, group_id)
        try:
            snapshots = snapshots_of_files(self._files)
        except BadOffsets as problem:
            raise SourceProblem(str(problem)) from None
        return [snapshot for snapshot in snapshots if group_id in (None, snapshot.group_id)]
