"""Violations of a streams group: tasks with two owners or none, epochs that fall, memory that is not in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rejoin.coordinator.core.groups.streams.model.state import StreamsGroupState, StreamsMemberState
from rejoin.coordinator.core.views import ConsumerGroupView, StreamsMemberView
from rejoin.journal.events.coordinator import MemberRemoved
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rejoin.protocol.records.groups.streams_groups import StreamsGroupCurrentMemberAssignmentValue
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of
from rejoin.simulation.search.streaming.observed import ObservedStreams, members_of, tasks_of
from rejoin.simulation.search.streaming.thread import Task, flat

NONE: Final = ErrorCode.NONE
LATE_MS: Final = 1_500
"""Checks look every second."""


def _streams(observed: Observations) -> ObservedStreams:
    assert observed.streams is not None, "these checks are for runs with streams groups"
    return observed.streams


def _group_id(observed: Observations) -> str:
    return _streams(observed).group_id


def _partition(observed: Observations) -> TopicPartition:
    return observed.simulation.cluster.partition_of(_group_id(observed))


def _changed(observed: Observations, step: ObservedStep) -> Iterator[ConsumerGroupView]:
    """The group, if this step looked at it and the node serves it."""
    if step.concerns(_group_id(observed)) and _partition(observed) not in observed.undecided:
        view = _streams(observed).view(step.node)
        if view is not None:
            yield view


def _held(member: StreamsMemberView) -> Iterator[Task]:
    """Tasks of any kind that a member has or has to give up, each once."""
    yield from (
        flat(member.assignment or {})
        | flat(member.pending_revocation)
        | flat(member.standby_tasks)
        | flat(member.pending_standby_revocation)
    )


# --- after every step


def an_active_task_has_two_owners(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """Two members have an active task, or one has it that another has not given up; whatever their epochs are."""
    for view in _changed(observed, step):
        owners: dict[Task, str] = {}
        for member in members_of(view):
            for task in flat(member.assignment or {}) | flat(member.pending_revocation):
                if owners.setdefault(task, member.member_id) != member.member_id:
                    yield f"{task} of {owners[task]} and {member.member_id}"


def a_process_has_a_task_twice(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """Two members of one process have a task, in whatever role."""
    for view in _changed(observed, step):
        found: Counter[tuple[str, Task]] = Counter()
        for member in members_of(view):
            found.update((member.process_id, task) for task in _held(member))
        for (process_id, task), count in found.items():
            if count > 1:
                yield f"{task} is held by {count} members of {process_id}"


def a_reconciled_thread_differs_from_its_target(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A member that is STABLE at the group's target has other tasks than the target."""
    for view in _changed(observed, step):
        for member in members_of(view):
            if member.member_state != StreamsMemberState.STABLE.name or member.member_epoch != view.assignment_epoch:
                continue
            if not flat(member.assignment or {}) <= flat(member.target) and _is_led_by_target(observed, step):
                yield f"{member.member_id} at epoch {member.member_epoch}"


def _is_led_by_target(observed: Observations, step: ObservedStep) -> bool:
    # Kafka: with warm-ups, members are led to targets of the epoch as they were when it began.
    return step.node.settings.group_streams_num_warmup_replicas == 0


def a_streams_epoch_falls(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A member is answered an older epoch than it has, or its group has an older one than was answered."""
    for exchange, response in step.replies(StreamsGroupHeartbeatResponse):
        request = request_of(exchange, StreamsGroupHeartbeatRequest)
        if response.error_code is NONE and 0 <= response.member_epoch < request.member_epoch:
            yield f"{request.member_id}: {response.member_epoch} after {request.member_epoch}"
    for view in _changed(observed, step):
        before = _streams(observed).acknowledged
        if (view.group_epoch or 0) < before and observed.leads_in_truth(step.node, _group_id(observed)):
            yield f"epoch {view.group_epoch} after {before}"


def a_streams_epoch_is_answered_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for _, response in step.replies(StreamsGroupHeartbeatResponse):
        stored = _streams(observed).stored_epochs.get(response.member_id, ())
        if response.error_code is NONE and response.member_epoch > 0 and response.member_epoch not in stored:
            yield f"{response.member_id}: {response.member_epoch}"


def a_thread_with_another_epoch_is_accepted(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(StreamsGroupHeartbeatResponse):
        error = _streams(observed).verdicts.pop(exchange, NONE)
        if error is not NONE and response.error_code is NONE:
            request = request_of(exchange, StreamsGroupHeartbeatRequest)
            yield f"{request.member_id} with epoch {request.member_epoch}, which is {error.name}"


def a_thread_is_removed_that_beat_in_time(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(MemberRemoved):
        last = _streams(observed).beats.get((step.node.name, step.node.incarnation, event.member_id))
        timeout = step.node.settings.group_streams_session_timeout_ms
        if event.cause == "session-expiry" and last is not None and step.now - last < timeout:
            yield f"{event.member_id}: {step.now - last} ms after its last heartbeat, it has {timeout}"


# --- now and then


def an_active_task_runs_twice(observed: Observations) -> Iterator[str]:
    """A thread takes an active task that another thread of the group still runs."""
    yield from _streams(observed).double_runs


def an_honest_thread_is_refused(observed: Observations) -> Iterator[str]:
    for thread in _streams(observed).application.threads:
        yield from thread.refusals


def _active(observed: Observations) -> Iterator[tuple[NodeActor, ConsumerGroupView]]:
    for node in observed.simulation.cluster.nodes:
        if node.is_up and node.paused_until <= observed.simulation.world.now:
            view = _streams(observed).view(node)
            if view is not None:
                yield node, view


def _is_written_again(observed: Observations) -> bool:
    """Whether what a timer writes has failed a moment ago: it is tried again every 500 ms."""
    failed_at = observed.failed_appends.get(_partition(observed))
    return failed_at is not None and observed.simulation.world.now - failed_at < LATE_MS


def a_silent_thread_stays(observed: Observations) -> Iterator[str]:
    streams = _streams(observed)
    for node, view in _active(observed):
        timeout = node.settings.group_streams_session_timeout_ms
        for member in members_of(view):
            last = streams.signs.get((node.name, node.incarnation, member.member_id))
            if last is None or member.member_id in streams.ghosts or _is_written_again(observed):
                continue
            late = observed.simulation.world.now - max(last, observed.resumed(node))
            if late > timeout + LATE_MS:
                yield f"{member.member_id}: silent for {late} ms, it has {timeout}"


def a_thread_never_gives_up_its_tasks(observed: Observations) -> Iterator[str]:
    """A member keeps tasks for longer than its rebalance timeout, and the others wait."""
    streams, now = _streams(observed), observed.simulation.world.now
    there = set()
    for node, view in _active(observed):
        for member in members_of(view):
            # Kafka: timers are not brought back when a change fails that has cancelled them.
            is_revoking = member.member_state == StreamsMemberState.UNREVOKED_TASKS.name and member.member_epoch > 0
            if not is_revoking or _partition(observed) in observed.failed_appends:
                continue
            pending = flat(member.pending_revocation) | flat(member.pending_standby_revocation)
            key = (node.name, node.incarnation, member.member_id, member.member_epoch, pending)
            there.add(key)
            since = max(streams.revoking.setdefault(key, now), observed.resumed(node))
            if now - since > member.rebalance_timeout_ms + LATE_MS:
                yield f"{member.member_id}: {now - since} ms, it has {member.rebalance_timeout_ms}"
    for key in [each for each in streams.revoking if each not in there]:
        del streams.revoking[key]


def a_streams_group_differs_from_its_log(observed: Observations) -> Iterator[str]:
    """Memory is not what the records of the log say, read anew here."""
    streams = _streams(observed)
    for node, view in _active(observed):
        shard = node.shard(_group_id(observed))
        if shard is None or shard.appends_in_flight or not observed.leads_in_truth(node, _group_id(observed)):
            continue
        logged = streams.logged
        if logged is None:
            yield "the group is not in its log"
            continue
        members = {each.member_id: each for each in members_of(view)}
        here = (view.group_epoch, view.assignment_epoch, set(members))
        there = (logged.epoch, logged.assignment_epoch, logged.members)
        if here != there:
            yield f"{here} against {there}"
        for member_id, member in members.items():
            if member.process_id != logged.processes.get(member_id):
                yield f"{member_id}: process {member.process_id} against {logged.processes.get(member_id)}"
            value, target = logged.current.get(member_id), logged.targets.get(member_id)
            if value is not None and _in_memory(member) != _in_log(value):
                yield f"{member_id}: {_in_memory(member)} against {_in_log(value)}"
            wanted = (frozenset(), frozenset()) if target is None else _both(target.active_tasks, target.standby_tasks)
            if (flat(member.target), flat(member.target_standby)) != wanted:
                yield f"{member_id}: another target than in the log"


def _both(active: object, standby: object) -> tuple[frozenset[Task], frozenset[Task]]:
    assert isinstance(active, tuple), "records have tuples of tasks"
    assert isinstance(standby, tuple), "records have tuples of tasks"
    return tasks_of(active), tasks_of(standby)


def _in_memory(member: StreamsMemberView) -> tuple[object, ...]:
    return (
        member.member_epoch,
        member.previous_member_epoch,
        member.member_state,
        flat(member.assignment or {}),
        flat(member.standby_tasks),
        flat(member.pending_revocation),
        flat(member.pending_standby_revocation),
    )


def _in_log(value: StreamsGroupCurrentMemberAssignmentValue) -> tuple[object, ...]:
    return (
        value.member_epoch,
        value.previous_member_epoch,
        StreamsMemberState(value.state).name,
        tasks_of(value.active_tasks),
        tasks_of(value.standby_tasks),
        tasks_of(value.active_tasks_pending_revocation),
        tasks_of(value.standby_tasks_pending_revocation),
    )


# --- at the end


def a_streams_group_does_not_settle(observed: Observations) -> Iterator[str]:
    """The faults are over, and the group is not Stable with each thread that is up."""
    streams = _streams(observed)
    leading = streams.leading()
    if leading is None:
        if not any(each.is_up for each in streams.application.threads):
            return
        yield "the group is gone, and its threads are up"
        return
    _, view = leading
    there = {each.member_id for each in members_of(view)} - streams.ghosts
    wanted = {each.member_id for each in streams.application.threads if each.is_up}
    if there != wanted:
        yield f"the group has the members {sorted(there)}, and should have {sorted(wanted)}"
    elif wanted and view.state != StreamsGroupState.STABLE.value and not streams.ghosts:
        yield f"the group is {view.state}"


def a_task_is_lost(observed: Observations) -> Iterator[str]:
    """The faults are over, and a task does not run exactly once, or lacks standbys that other processes could have."""
    streams = _streams(observed)
    application, leading = streams.application, streams.leading()
    if leading is None or streams.ghosts:
        return
    threads = [each for each in application.threads if each.is_up]
    if not threads:
        return
    running = Counter(task for each in threads for task in each.active)
    for task in sorted(application.tasks()):
        if running[task] != 1:
            yield f"{task} runs {running[task]} times"
    for task in sorted(running.keys() - application.tasks()):
        yield f"{task} runs, and does not exist"
    replicas = _replicas(observed, leading[0])
    processes = len({each.process_id for each in threads})
    standbys = Counter(task for each in threads for task in each.standby)
    for task in sorted(application.tasks()):
        wanted = min(replicas, processes - 1) if task[0] in application.stateful else 0
        if standbys[task] != wanted:
            yield f"{task} has {standbys[task]} standbys, and should have {wanted}"


def _replicas(observed: Observations, node: NodeActor) -> int:
    own = observed.simulation.cluster.group_settings.get(_group_id(observed), {}).get("streams.num.standby.replicas")
    return int(own) if own is not None else node.settings.group_streams_num_standby_replicas


def a_thread_runs_other_tasks_than_it_has(observed: Observations) -> Iterator[str]:
    """The faults are over, and a thread runs something else than its group has for it."""
    streams = _streams(observed)
    leading = streams.leading()
    members = {} if leading is None else {each.member_id: each for each in members_of(leading[1])}
    for thread in streams.application.threads:
        member = members.get(thread.member_id)
        if member is None or not thread.is_up:
            continue
        has = (flat(member.assignment or {}), flat(member.standby_tasks))
        if (thread.active, thread.standby) != has:
            yield f"{thread.member_id} runs {sorted(thread.active)} and has {sorted(has[0])}"
