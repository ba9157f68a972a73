"""A running Kafka cluster: the current status of its groups, over Kafka's protocol alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.polling import (
    ClusterPoller,
    ClusterProblem,
    ClusterSnapshot,
    check_connection,
    polling,
)
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group

LOOKS_S: Final = 1.0
"""Between two snapshots."""
NOTE: Final = (
    "a cluster shows how its groups are, not how they came there: rejoin watch --bootstrap-server ... --out DIR keeps "
    "it, and rejoin why GROUP DIR then knows"
)

T = TypeVar("T")


class ClusterSource:
    """The cluster behind ``HOST:PORT,...``. A story snapshots of its group for some seconds."""

    def __init__(self, servers: str, config: str | None = None, seconds: float = 2.0) -> None:
        """Raises SourceProblem."""
        try:
            check_connection(servers, config)
        except ClusterProblem as problem:
            raise SourceProblem(str(problem)) from None
        self._servers = servers
        self._config = config
        self._seconds = seconds

    def groups(self) -> list[GroupStatus]:
        """All groups, as one snapshot shows them."""
        snapshot = _run(self._poll())
        return [_observed(group).status() for _, group in sorted(snapshot.groups.items())]

    def story(self, group_id: str) -> GroupStory:
        """The group as two or more snapshots show it."""
        return _run(self._story(group_id))

    def findings(self) -> list[Row]:
        """Findings about the groups of one snapshot, the worst first."""
        snapshot = _run(self._poll())
        return sorted((row for group in snapshot.groups.values() for row in _observed(group).findings()), key=order)

    async def _poll(self) -> ClusterSnapshot:
        async with polling(self._servers, self._config) as poller:
            return await poller.poll()

    async def _story(self, group_id: str) -> GroupStory:
        async with polling(self._servers, self._config, [group_id]) as poller:
            observed = ObservedGroup(group_id, "now")
            until = time.monotonic() + self._seconds
            while True:
                snapshot = await poller.poll()
                if group_id not in snapshot.groups:
                    raise await _missing(poller, group_id, snapshot, self._servers, self._config)
                observed.follow(snapshot.groups[group_id])
                if time.monotonic() + LOOKS_S > until:
                    return observed.story([*snapshot.problems, NOTE])
                await asyncio.sleep(LOOKS_S)


async def _missing(
    poller: ClusterPoller, group_id: str, snapshot: ClusterSnapshot, servers: str, config: str | None
) -> SourceProblem:
    if snapshot.problems:
        return SourceProblem(f"{servers}: {snapshot.problems[0]}")
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
