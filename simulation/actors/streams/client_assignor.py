"""The assignor of an application that uses the classic protocol: its leader assigns tasks, and partitions by them.

Modelled on Kafka's StreamsPartitionAssignor. Tasks stay where they are as far as the load allows. A stateful task does
not move to an instance that lacks its state while its owner is there: the instance gets a warm-up task first, and a
probing rebalance looks whether that has caught up (KIP-441). Active tasks that change owners are withheld until the old
owner has revoked them, as in any cooperative rebalance. Standby and warm-up tasks, which in Kafka are in the user data
of an assignment, are kept in a plan that all instances share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.assignors.base import Assignments, ClusterView, MemberSubscription
from rejoin.client.core.group.streams.tasks import StreamsTasks, TaskId, by_subtopology
from rejoin.coordinator.core.groups.streams.assignors.base import SubtopologyTasks, TaskMember
from rejoin.coordinator.core.groups.streams.assignors.sticky import StickyTaskAssignor
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.streams.application import Application, ClassicPlan

ACCEPTABLE_RECOVERY_LAG: Final = 10_000
"""``acceptable.recovery.lag``: changelog records that an instance may lack and still get a task."""

MAX_WARMUP_REPLICAS: Final = 2
"""``max.warmup.replicas``: warm-up tasks of the whole application at once."""


@dataclass(frozen=True, slots=True)
class ThreadClaim:
    """One thread, as it describes itself to the leader."""

    client_id: str
    process_id: str
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    lags: Mapping[TaskId, int]

    def encoded(self) -> bytes:
        lags = [[*task, lag] for task, lag in self.lags.items()]
        parts = [self.client_id, self.process_id, [*map(list, self.active)], [*map(list, self.standby)], lags]
        return json.dumps(parts, separators=(",", ":")).encode()

    @classmethod
    def decoded(cls, data: bytes) -> ThreadClaim:
        client_id, process_id, active, standby, lags = json.loads(data)
        return cls(
            client_id,
            process_id,
            tuple(TaskId(*each) for each in active),
            tuple(TaskId(*each) for each in standby),
            {TaskId(subtopology, index): lag for subtopology, index, lag in lags},
        )


class StreamsPartitionAssignor(Assignor):
    """The assignor of one thread. ``claim`` describes the thread; ``make_topics`` makes missing internal topics."""

    name = "stream"
    protocols = (RebalanceProtocol.COOPERATIVE,)
    checked = False

    def __init__(
        self,
        application: Application,
        plan: ClassicPlan,
        claim: Callable[[], ThreadClaim],
        make_topics: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._application = application
        self._plan = plan
        self._claim = claim
        self._make_topics = make_topics

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        return self._claim().encoded()

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        claims = {
            member_id: ThreadClaim.decoded(each.subscription.user_data or b"") for member_id, each in members.items()
        }
        counts = self._partition_counts(cluster)
        self._make_topics(counts)
        targets = self._targets(claims, counts)
        warmups = self._keep_until_warm(claims, targets)
        held = {task: member_id for member_id, claim in claims.items() for task in claim.active}
        self._plan.standby = {
            claims[member_id].client_id: StreamsTasks((), tasks.standby, warmups.get(member_id, ()))
            for member_id, tasks in targets.items()
        }
        self._plan.prober = self._claim().client_id if warmups else None
        return {
            member_id: [
                partition
                for task in tasks.active
                if held.get(task, member_id) == member_id
                for partition in self._partitions(task, counts)
            ]
            for member_id, tasks in targets.items()
        }

    def _partition_counts(self, cluster: ClusterView) -> dict[str, int]:
        """Partitions of each topic; a repartition topic has as many as the largest topic of those who write it."""
        code = self._application.code
        counts = {topic: cluster.partition_counts.get(topic, 0) for topic in code.source_topics}
        for _ in code.subtopologies:
            for part in code.subtopologies:
                most = max((counts.get(topic, 0) for topic in part.topics), default=0)
                for topic in part.writes:
                    counts[topic] = max(counts.get(topic, 0), most)
        return counts

    def _targets(self, claims: Mapping[str, ThreadClaim], counts: Mapping[str, int]) -> dict[str, StreamsTasks]:
        code = self._application.code
        members = {
            member_id: TaskMember(
                claim.process_id, by_subtopology(claim.active), by_subtopology(claim.standby), _offsets(claim)
            )
            for member_id, claim in claims.items()
        }
        parts = {
            part.subtopology_id: SubtopologyTasks(
                max((counts.get(topic, 0) for topic in part.topics), default=0), bool(part.stores)
            )
            for part in code.subtopologies
        }
        found = StickyTaskAssignor().assign(members, parts, code.standby_replicas)
        return {member_id: StreamsTasks(_tasks(each.active), _tasks(each.standby)) for member_id, each in found.items()}

    def _keep_until_warm(
        self, claims: Mapping[str, ThreadClaim], targets: dict[str, StreamsTasks]
    ) -> dict[str, tuple[TaskId, ...]]:
        """Leave tasks with their owners whose new owners lack the state; returns the warm-up tasks of those."""
        owners = {task: member_id for member_id, claim in claims.items() for task in claim.active}
        warmups: dict[str, tuple[TaskId, ...]] = {}
        moves = [(task, member_id) for member_id, tasks in targets.items() for task in tasks.active]
        for task, member_id in sorted(moves):
            owner = owners.get(task, member_id)
            if owner == member_id or not self._application.is_stateful(task):
                continue
            lag = claims[member_id].lags.get(task, self._application.end(task))
            if lag <= ACCEPTABLE_RECOVERY_LAG:
                continue
            new, old = targets[member_id], targets[owner]
            targets[member_id] = new._replace(active=tuple(each for each in new.active if each != task))
            targets[owner] = StreamsTasks(
                tuple(sorted((*old.active, task))), tuple(each for each in old.standby if each != task)
            )
            is_there = task in targets[member_id].standby
            if not is_there and sum(map(len, warmups.values())) < MAX_WARMUP_REPLICAS:
                warmups[member_id] = (*warmups.get(member_id, ()), task)
        return warmups

    def _partitions(self, task: TaskId, counts: Mapping[str, int]) -> list[TopicPartition]:
        topics = self._application.code.part(task.subtopology).topics
        return [TopicPartition(topic, task.partition) for topic in topics if task.partition < counts.get(topic, 0)]


def _tasks(tasks: Mapping[str, Any]) -> tuple[TaskId, ...]:
    return tuple(sorted(TaskId(part, index) for part, indexes in tasks.items() for index in indexes))


def _offsets(claim: ThreadClaim) -> dict[str, dict[int, int]]:
    """Offsets as an assignor compares them: the less a thread lacks, the more."""
    found: dict[str, dict[int, int]] = {}
    for (subtopology, index), lag in claim.lags.items():
        found.setdefault(subtopology, {})[index] = -lag
    return found
