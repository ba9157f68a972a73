"""A folder that ``rejoin watch --bootstrap-server`` wrote: looks at a cluster."""

from __future__ import annotations

from pathlib import Path

from rejoin.pipeline.cluster.observations import ObservedGroup
from rejoin.pipeline.cluster.store import read_looks
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, unknown_group


class WatchedSource:
    """Draws the conclusions of the watch again from what it kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

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
        """Those of all groups, the worst first."""
        return sorted((row for group in self._observed(None).values() for row in group.findings()), key=order)

    def _observed(self, group_id: str | None) -> dict[str, ObservedGroup]:
        groups: dict[str, ObservedGroup] = {}
        for look in read_looks(self._folder, group_id):
            groups.setdefault(look.group_id, ObservedGroup(look.group_id, str(self._folder))).follow(look)
        return groups
