"""Bench of a streams group's member: its heartbeats as lines for tests, and what a coordinator answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.client.core.effects import CallListener, Effect, Send
from rejoin.client.core.group.streams.state import StreamsApplication
from rejoin.client.core.group.streams.tasks import TaskId, ids_of, tasks_of
from rejoin.client.core.inputs import Input
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupStatus,
    StreamsStatus,
    StreamsTopology,
)
from rejoin.protocol.streams.tasks import TaskIds
from rejoin.protocol.streams.topology import StreamsTopicInfo, Subtopology
from tests.client.core.bench import Bench
from tests.client.core.heartbeats import INTERVAL_MS, MEMBER_ID


def _topic(name: str) -> StreamsTopicInfo:
    return StreamsTopicInfo(name=name, partitions=0, replication_factor=-1, topic_configs=())


WORD_COUNT = StreamsApplication(
    "process",
    StreamsTopology(
        epoch=0,
        subtopologies=(
            Subtopology(
                subtopology_id="0",
                source_topics=("lines",),
                source_topic_regex=(),
                state_changelog_topics=(),
                repartition_sink_topics=("words",),
                repartition_source_topics=(),
                copartition_groups=(),
            ),
            Subtopology(
                subtopology_id="1",
                source_topics=(),
                source_topic_regex=(),
                state_changelog_topics=(_topic("counts"),),
                repartition_sink_topics=(),
                repartition_source_topics=(_topic("words"),),
                copartition_groups=(),
            ),
        ),
    ),
)
"""Subtopology 0 reads lines and writes words; subtopology 1 reads words and counts them."""


def tasks(*names: str) -> list[TaskId]:
    """Tasks by Kafka's names, such as ``1_0``."""
    return [TaskId(subtopology, int(index)) for subtopology, _, index in (name.partition("_") for name in names)]


def _shown(kind: str, ids: tuple[TaskIds, ...] | None) -> str:
    return "" if not ids else f"{kind}=[{' '.join(map(str, tasks_of(ids)))}]"


def shown_streams_heartbeat(request: StreamsGroupHeartbeatRequest) -> str:
    """A heartbeat of an application's thread: its epoch, and the fields that it has."""
    assert request.member_id == MEMBER_ID
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    assert len({each is None for each in lists}) == 1, "all three lists or none"
    offsets = request.task_offsets
    shown = [
        f"topology={len(request.topology.subtopologies)}" if request.topology else "",
        f"process={request.process_id}" if request.process_id else "",
        f"timeout={request.rebalance_timeout_ms}" if request.rebalance_timeout_ms != -1 else "",
        f"instance={request.instance_id}" if request.instance_id else "",
        f"endpoints={request.endpoint_information_epoch}" if request.endpoint_information_epoch > 0 else "",
        "owns" if request.active_tasks is not None else "",
        _shown("active", request.active_tasks),
        _shown("standby", request.standby_tasks),
        _shown("warmup", request.warmup_tasks),
        "" if not offsets else f"at={' '.join(f'{o.subtopology_id}_{o.partition}@{o.offset}' for o in offsets)}",
        "shutdown" if request.shutdown_application else "",
    ]
    return " ".join([f"streams heartbeat {request.member_epoch}", *filter(None, shown)])


def tasks_shown(effect: CallListener) -> str:
    """The tasks of a call of the listener, where it has any."""
    if effect.tasks is None:
        return ""
    kinds = zip(("active", "standby", "warmup"), effect.tasks, strict=True)
    named = "".join(f" {kind}=[{' '.join(map(str, found))}]" for kind, found in kinds if found)
    return f"{named}{'' if effect.is_group_ready else ' not ready'}"


def streams_response(
    error: ErrorCode,
    *,
    epoch: int = 0,
    active: Sequence[str] | None = None,
    standby: Sequence[str] = (),
    warmup: Sequence[str] = (),
    statuses: Mapping[StreamsStatus, str] | None = None,
    endpoints: int = 0,
    offsets_interval_ms: int = 60_000,
) -> StreamsGroupHeartbeatResponse:
    """A coordinator's answer to a heartbeat of a thread; without ``active``: the tasks are as before."""
    if error is not ErrorCode.NONE:
        return StreamsGroupHeartbeatResponse(error_code=error, error_message="said the bench")
    return StreamsGroupHeartbeatResponse(
        member_id=MEMBER_ID,
        member_epoch=epoch,
        heartbeat_interval_ms=INTERVAL_MS,
        task_offset_interval_ms=offsets_interval_ms,
        acceptable_recovery_lag=10,
        status=tuple(
            StreamsGroupStatus(status_code=code, status_detail=detail) for code, detail in (statuses or {}).items()
        ),
        active_tasks=None if active is None else ids_of(tasks(*active)),
        standby_tasks=None if active is None else ids_of(tasks(*standby)),
        warmup_tasks=None if active is None else ids_of(tasks(*warmup)),
        endpoint_information_epoch=endpoints,
    )


class StreamsBench(Bench):
    """One thread of an application and its scripted surroundings."""

    def __init__(self, application: StreamsApplication, **settings: Any) -> None:
        self.application = application
        super().__init__(**settings)

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "application": self.application}

    def _apply(self, effect: Effect) -> list[Input]:
        at = len(self.lines)
        inputs = super()._apply(effect)
        if isinstance(effect, CallListener):
            self.lines[at] += tasks_shown(effect)
        return inputs

    @staticmethod
    def _shown(name: str, send: Send) -> str:
        if isinstance(send.request, StreamsGroupHeartbeatRequest):
            return shown_streams_heartbeat(send.request)
        return Bench._shown(name, send)

    def response(self, send: Send, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> Response:
        if isinstance(send.request, StreamsGroupHeartbeatRequest):
            return streams_response(error, **fields)
        return super().response(send, error, **fields)
