"""A streams group from the heartbeats of its members: tasks in place of partitions (KIP-1071)."""

from __future__ import annotations

from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.exchanges.epochs import HeartbeatHistory
from rejoin.pipeline.reading.broker_logs.exchanges.progress import Partitions, SeenMember
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import numbers, objects, partition_rows
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED

_ROLES: Final = {"active": "activeTasks", "standby": "standbyTasks", "warmup": "warmupTasks"}
_OFFSETS: Final = {"task_offsets": "taskOffsets", "task_end_offsets": "taskEndOffsets"}


class StreamsHistory(HeartbeatHistory):
    """A streams group: its tasks move one by one, and there are no rebalances."""

    group_type = "streams"
    has_rebalances = False
    _tasks: dict[str, dict[str, Partitions]]
    _process: dict[str, str]

    def _see_subscription(self, each: SourcedExchange, member_id: str, member: SeenMember, *, is_new: bool) -> None:
        if not hasattr(self, "_tasks"):
            self._tasks, self._process = {}, {}
        request = each.exchange.request
        topology = request.get("topology")
        if isinstance(request.get("processId"), str):
            self._process[member_id] = request["processId"]
        epoch = topology.get("epoch") if isinstance(topology, dict) else None
        if is_new:
            endpoint = request.get("userEndpoint")
            tags = [f"{tag.get('key')}={tag.get('value')}" for tag in objects(request.get("clientTags"))]
            self._emit(
                each,
                "streams_member_described",
                member_id=member_id,
                group_instance_id=member.instance,
                client_id=each.exchange.client_id,
                client_host=each.exchange.client_host,
                process_id=self._process.get(member_id),
                rack_id=request.get("rackId"),
                topology_epoch=epoch if type(epoch) is int else None,
                rebalance_timeout_ms=member.timeout_ms,
                user_endpoint=f"{endpoint.get('host')}:{endpoint.get('port')}" if isinstance(endpoint, dict) else None,
                client_tags=tags,
                changed_fields=[],
            )
            if self._epoch is None and isinstance(topology, dict):
                ids = [str(one.get("subtopologyId")) for one in objects(topology.get("subtopologies"))]
                self._emit(each, "streams_topology_initialized", INFERRED, topology_epoch=epoch, subtopologies=ids)
        if request.get("shutdownApplication") is True:
            about = {"member_id": member_id, "group_instance_id": member.instance}
            self._emit(each, "streams_shutdown_requested", EXACT, **about)
        sums = {name: _sums(request.get(field)) for name, field in _OFFSETS.items()}
        if sums["task_offsets"]:
            self._emit(each, "streams_task_offsets_reported", EXACT, member_id=member_id, **sums)

    def _given(self, each: SourcedExchange) -> Partitions | None:
        lists = [each.exchange.response.get(field) for field in _ROLES.values()]
        if not any(isinstance(one, list) for one in lists):
            return None
        return frozenset(
            (f"{role}/{task.get('subtopologyId')}", number)
            for role, tasks in zip(_ROLES, lists, strict=True)
            for task in objects(tasks)
            for number in numbers(task.get("partitions"))
        )

    def _reconciled(self, each: SourcedExchange, member_id: str, member: SeenMember) -> None:
        roles: dict[str, Any] = {
            role: partition_rows(
                sorted((name[len(role) + 1 :], task) for name, task in member.has if name.startswith(f"{role}/"))
            )
            for role in _ROLES
        }
        self._emit(
            each,
            "streams_member_assigned",
            INFERRED,
            **self._who(member_id, member),
            process_id=self._process.get(member_id),
            **roles,
        )


def _sums(value: object) -> list[dict[str, Any]] | None:
    found = [
        {"topic": str(each.get("subtopologyId")), "partition": each["partition"], "offset": each["offset"]}
        for each in objects(value)
        if type(each.get("partition")) is int and type(each.get("offset")) is int
    ]
    return found or None
