"""Plays sequences that Kafka's own group coordinator played with a streams group, and shows them in the same form."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any, Final

import orjson

from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.groups.streams.model.memory import TaskOffsets
from rejoin.coordinator.core.groups.streams.model.tasks import HeldTasks, Tasks
from rejoin.coordinator.core.inputs import TopicsChanged
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.records.topics import GROUP_RESOURCE, ConfigData, ConfigRecord
from tests import paths
from tests.coordinator.core.driver import GROUP, PARTITION
from tests.coordinator.core.groups.consumer_traces import TraceNode

TRACES: Final = paths.GOLDEN / "streams-groups" / "streams-groups.jsonl.gz"
CATEGORIES: Final = (
    "plain",
    "standby",
    "topics",
    "static",
    "process",
    "offsets",
    "interval",
    "endpoint",
    "convert",
    "mixed",
)


def traces(category: str) -> list[dict[str, Any]]:
    """The sequences of a category, in their order."""
    wanted = f'"category":"{category}"'.encode()
    with gzip.open(TRACES) as lines:
        return [orjson.loads(line) for line in lines if wanted in line]


class StreamsTraceNode(TraceNode):
    """A node with one offsets partition, to which the steps of one sequence happen."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        regexes = {"group.consumer.regex.refresh.interval.ms": 600_000}
        super().__init__({**trace, "settings": {**trace["settings"], **regexes}})

    def do_group_config(self, what: Mapping[str, Any]) -> None:
        known = self.node._topics.group_configs.get(GROUP, {})
        wanted = what["config"]
        records = [
            ConfigRecord(
                data=ConfigData(resource_type=GROUP_RESOURCE, resource_name=GROUP, name=name, value=wanted.get(name))
            )
            for name in dict.fromkeys((*known, *wanted))
        ]
        self.version += 1
        self.step(TopicsChanged(((self.version, tuple(records)),), self.version))

    def do_reload(self, what: Mapping[str, Any]) -> None:
        self.resign(PARTITION)
        if what["compacted"]:
            self._compact()
        self.elect(PARTITION)

    def _compact(self) -> None:
        """Leave only the last record of each key in the log."""
        log = self.logs.of(PARTITION)
        last = {}
        for at, record in enumerate(log.records):
            is_kept = isinstance(record, TransactionMarker)
            last[at if is_kept else (record.key.version, record.key.data)] = at
        log.records[:] = [log.records[at] for at in sorted(last.values())]

    # --- what there is

    def group_picture(self) -> dict[str, Any] | None:
        group = self.shard().groups.get(GROUP)
        return self._streams(group) if isinstance(group, StreamsGroup) else super().group_picture()

    def _streams(self, group: StreamsGroup) -> dict[str, Any]:
        memory = group.memory
        configured = memory.configured
        return {
            "type": "streams",
            "state": str(group.state),
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignment_timestamp": group.assignment_at,
            "metadata_hash": str(group.metadata_hash),
            "topology_epoch": None if group.topology is None else group.topology.epoch,
            "validated_topology_epoch": group.validated_topology_epoch,
            "stored_description_topology_epoch": group.stored_description_epoch,
            "failed_description_topology_epoch": group.failed_description_epoch,
            "last_assignment_configs": dict(group.assignment_configs),
            "endpoint_information_epoch": memory.endpoint_epoch,
            "shutdown_requested_by": memory.shutdown_requested_by,
            "refresh_deadline": group.refresh.at,
            "configured": None if configured is None else configured_picture(configured),
            "members": [member_picture(group, member) for _, member in sorted(group.members.items())],
        }


def configured_picture(configured: Any) -> dict[str, Any]:
    return {
        "topology_epoch": configured.topology_epoch,
        "status": None if configured.status is None else int(configured.status),
        "to_create": sorted(configured.to_create),
        "tasks": None if configured.tasks is None else dict(configured.tasks),
    }


def member_picture(group: StreamsGroup, member: StreamsMember) -> dict[str, Any]:
    metadata, current, endpoint = member.metadata, member.current, member.metadata.endpoint
    target = group.targets.get(member.member_id)
    return {
        "member_id": member.member_id,
        "instance_id": metadata.instance_id,
        "rack_id": metadata.rack_id,
        "process_id": metadata.process_id,
        "user_endpoint": None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        "client_tags": dict(metadata.tags),
        "topology_epoch": metadata.topology_epoch,
        "state": current.state.name,
        "member_epoch": current.epoch,
        "previous_member_epoch": current.previous_epoch,
        "rebalance_timeout_ms": metadata.rebalance_timeout_ms,
        "assigned": held_picture(current.assigned),
        "pending_revocation": held_picture(current.pending),
        "target": None if target is None else tasks_picture(target),
        "task_offsets": offsets_picture(group.memory.offsets.get(member.member_id, {})),
        "task_end_offsets": offsets_picture(group.memory.end_offsets.get(member.member_id, {})),
    }


def held_picture(held: HeldTasks) -> dict[str, Any]:
    active = {each: {str(task): epoch for task, epoch in tasks.items()} for each, tasks in held.active.items()}
    return {**tasks_picture(held.without_epochs()), "active": active}


def tasks_picture(tasks: Tasks) -> dict[str, Any]:
    kinds = {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}
    return {kind: {each: sorted(of) for each, of in found.items()} for kind, found in kinds.items()}


def offsets_picture(offsets: TaskOffsets) -> dict[str, dict[str, int]]:
    return {each: {str(task): offset for task, offset in of.items()} for each, of in offsets.items()}
