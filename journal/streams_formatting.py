"""Formats events of streams groups as one line of text. See ``formatting``."""

from __future__ import annotations

from functools import singledispatch

from rejoin.journal.events.streams_groups import (
    StreamsGroupEvent,
    StreamsHeartbeatRefused,
    StreamsInternalTopicsCreated,
    StreamsMemberAssigned,
    StreamsMemberDescribed,
    StreamsShutdownRequested,
    StreamsTargetComputed,
    StreamsTaskOffsetsReported,
    StreamsTopologyConfigured,
    StreamsTopologyInitialized,
    TasksBySubtopology,
)

REFUSED_BECAUSE = {
    "other-topology": "its topology is not that of the group",
    "invalid-topology": "its topology cannot run",
    "unknown-task": "it names a task that the topology does not have",
    "endpoints": "topics are missing, so the partitions behind endpoints are not known",
    "other-type": "the group speaks another protocol",
    "turned-off": "streams groups are turned off",
    "size": "the group is as large as group.streams.max.size",
}


@singledispatch
def streams_line(event: StreamsGroupEvent) -> str:
    """The event in one line, without its group."""
    raise TypeError(f"no line for {event.name}")


def tasks_text(active: TasksBySubtopology, standby: TasksBySubtopology) -> str:
    """Tasks as Kafka names them: subtopology and partition."""
    shown = [f"{each}_{task}" for each, tasks in active.items() for task in tasks]
    shown += [f"{each}_{task} (standby)" for each, tasks in standby.items() for task in tasks]
    return " ".join(shown) or "no tasks"


@streams_line.register
def _(event: StreamsTopologyInitialized) -> str:
    return f"topology of epoch {event.topology_epoch}, with subtopologies {' '.join(event.subtopologies) or '-'}"


@streams_line.register
def _(event: StreamsTopologyConfigured) -> str:
    if event.status is None:
        return f"topology of epoch {event.topology_epoch} can run"
    return f"not ready: {event.status}: {event.reason}"


@streams_line.register
def _(event: StreamsInternalTopicsCreated) -> str:
    topics = " ".join(event.topics)
    if event.error is None:
        return f"internal topics created: {topics}"
    return f"internal topics not created: {topics}: {event.error}{f' ({event.reason})' if event.reason else ''}"


@streams_line.register
def _(event: StreamsTargetComputed) -> str:
    targets = {
        member_id: tasks_text(event.active_targets.get(member_id, {}), event.standby_targets.get(member_id, {}))
        for member_id in event.active_targets
    }
    shown = ", ".join(f"{member_id} {tasks}" for member_id, tasks in targets.items()) or "no member's tasks change"
    return f"target of epoch {event.generation} by {event.assignor}: {shown}"


@streams_line.register
def _(event: StreamsMemberDescribed) -> str:
    changed = f"changed {', '.join(event.changed_fields)}; " if event.changed_fields else ""
    process = f"{changed}process {event.process_id or '-'}, topology epoch {event.topology_epoch}"
    endpoint = f", endpoint {event.user_endpoint}" if event.user_endpoint else ""
    return f"{event.member_id} {process}{endpoint}"


@streams_line.register
def _(event: StreamsMemberAssigned) -> str:
    state = event.member_state.lower().replace("_", " ")
    tasks = tasks_text(event.active, event.standby)
    text = f"{event.member_id} is at epoch {event.member_epoch} ({state}) with {tasks}"
    if event.revoking_active or event.revoking_standby:
        text += f", revokes {tasks_text(event.revoking_active, event.revoking_standby)}"
    return text


@streams_line.register
def _(event: StreamsShutdownRequested) -> str:
    return f"{event.member_id} asked for the shutdown of the application"


@streams_line.register
def _(event: StreamsHeartbeatRefused) -> str:
    return f"{event.member_id} refused ({event.error}): {REFUSED_BECAUSE[event.reason]}"


@streams_line.register
def _(event: StreamsTaskOffsetsReported) -> str:
    count = sum(map(len, (event.task_offsets or event.task_end_offsets or {}).values()))
    return f"{event.member_id} reported offsets of {count} {'task' if count == 1 else 'tasks'}"
