"""A live cluster: how its groups stand now, over Kafka's protocol alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.live_cluster.observations import ObservedGroup
from rejoin.pipeline.live_cluster.polling import ClusterPoller, ClusterProblem, Look, polling
from rejoin.pipeline.live_cluster.snapshots import ClusterGroup
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group

LOOKS_S: Final = 1.0
"""Between two looks."""
NOTE: Final = (
    "a cluster shows how its groups are, not how they came there: rejoin watch --bootstrap-server ... --out DIR keeps "
    "it, and rejoin why GROUP DIR then knows"
)

T = TypeVar("T")


class ClusterSource:
    """The cluster behind ``HOST:PORT,...``. A story looks at its group for some seconds."""

    def __init__(self, servers: str, config: str | None = None, seconds: float = 2.0) -> None:
        self._servers = servers
        self._config = config
        self._seconds = seconds

    def groups(self) -> list[GroupStatus]:
        """All groups, as one look shows them."""
        look = _run(self._look())
        return [_observed(group).status() for _, group in sorted(look.groups.items())]

    def story(self, group_id: str) -> GroupStory:
        """What two or more looks show."""
        return _run(self._story(group_id))

    def findings(self) -> list[Row]:
        """What is wrong with groups at one look, the worst first."""
        look = _run(self._look())
        return sorted((row for group in look.groups.values() for row in _observed(group).findings()), key=order)

    async def _look(self) -> Look:
        async with polling(self._servers, self._config) as poller:
            return await poller.look()

    async def _story(self, group_id: str) -> GroupStory:
        async with polling(self._servers, self._config, [group_id]) as poller:
            observed = ObservedGroup(group_id, "now")
            until = time.monotonic() + self._seconds
            while True:
                look = await poller.look()
                if group_id not in look.groups:
                    raise await _missing(poller, group_id, look, self._servers, self._config)
                observed.follow(look.groups[group_id])
                if time.monotonic() + LOOKS_S > until:
                    return observed.story([*look.problems, NOTE])
                await asyncio.sleep(LOOKS_S)


async def _missing(poller: ClusterPoller, group_id: str, look: Look, servers: str, config: str | None) -> SourceProblem:
    if look.problems:
        return SourceProblem(f"{servers}: {look.problems[0]}")
    async with polling(servers, config) as everything:
        known, _ = await everything.group_ids()
    return unknown_group(group_id, known, servers)


def _observed(group: ClusterGroup) -> ObservedGroup:
    observed = ObservedGroup(group.group_id, "now")
    observed.follow(group)
    return observed


def _run(asked: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(asked)
    except ClusterProblem as problem:
        raise SourceProblem(str(problem)) from None
