"""Tasks and topics of a streams group as people see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.state import StreamsGroupState
from rejoin.coordinator.core.groups.streams.model.tasks import Task
from rejoin.coordinator.core.views import InternalTopicView, SubtopologyView, TaskView
from rejoin.protocol.streams.topology import Subtopology

OWNERS: Final = ("active", "revoking", "target")
COPIES: Final = ("standby", "target_standby", "warmup")
NOT_CONFIGURED: Final = "The topology is compared with the topics of the cluster in the next heartbeat."


def not_ready(group: StreamsGroup) -> str | None:
    """The reason why the topology cannot run, or none."""
    configured = group.memory.configured
    if configured is not None and configured.status is not None:
        return configured.detail
    return NOT_CONFIGURED if group.state is StreamsGroupState.NOT_READY else None


def subtopology_views(group: StreamsGroup) -> list[SubtopologyView]:
    """The parts of the topology."""
    configured = group.memory.configured
    counts = {} if configured is None or configured.tasks is None else configured.tasks
    return [
        SubtopologyView(
            subtopology_id=each.subtopology_id,
            source_topics=list(each.source_topics),
            repartition_source_topics=[topic.name for topic in each.repartition_source_topics],
            repartition_sink_topics=list(each.repartition_sink_topics),
            changelog_topics=[topic.name for topic in each.state_changelog_topics],
            tasks=counts.get(each.subtopology_id),
        )
        for each in _subtopologies(group)
    ]


def internal_topic_views(group: StreamsGroup, partition_count: Callable[[str], int]) -> list[InternalTopicView]:
    """Repartition and changelog topics as they are now, by the subtopology that reads them or writes them."""
    return [
        InternalTopicView(
            topic=topic.name,
            kind=kind,
            subtopology_id=each.subtopology_id,
            partitions=partition_count(topic.name) or None,
        )
        for each in _subtopologies(group)
        for kind, topics in (
            ("repartition", each.repartition_source_topics),
            ("changelog", each.state_changelog_topics),
        )
        for topic in topics
    ]


def task_views(group: StreamsGroup) -> list[TaskView]:
    """Every task by subtopology and partition: those of the topology, and those that members have. Costs O(tasks)."""
    found: dict[Task, dict[str, Any]] = {}

    def task(one: Task) -> dict[str, Any]:
        if one not in found:
            found[one] = dict.fromkeys(OWNERS) | {name: [] for name in COPIES}
        return found[one]

    configured = group.memory.configured
    if configured is not None and configured.is_ready:
        for subtopology, count in (configured.tasks or {}).items():
            for partition in range(count):
                task((subtopology, partition))
    for member_id, member in group.members.items():
        current, target = member.current, group.target_of(member_id)
        for one in _each(current.assigned.active):
            task(one)["active"] = member_id
        for one in _each(current.pending.active):
            task(one)["revoking"] = member_id
        for one in _each(target.active):
            task(one)["target"] = member_id
        for one in _each(current.assigned.standby):
            task(one)["standby"].append(member_id)
        for one in _each(target.standby):
            task(one)["target_standby"].append(member_id)
        for one in _each(current.assigned.warmup):
            task(one)["warmup"].append(member_id)
    return [
        TaskView.model_construct(subtopology_id=each[0], partition=each[1], **found[each]) for each in sorted(found)
    ]


def _each(tasks: Mapping[str, Iterable[int]]) -> Iterable[Task]:
    return ((subtopology, partition) for subtopology, partitions in tasks.items() for partition in partitions)


def _subtopologies(group: StreamsGroup) -> tuple[Subtopology, ...]:
    return () if group.topology is None else group.topology.subtopologies
