"""Records of share groups: none is lost or has two holders, deliveries are counted, and a stored verdict is final."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.coordinator.core.views import GroupView, RecordRunView, ShareStateView
from rejoin.journal.events.coordinator import MemberRemoved
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of
from rejoin.simulation.search.observed_shares import FINAL_STATES, LoggedShare, ObservedShares

_STATES: Final = {"AVAILABLE": 0, "ACQUIRED": 1, "ACKNOWLEDGED": 2, "ARCHIVING": 3, "ARCHIVED": 4}
_SLACK_MS: Final = 1_000
_LATE_MS: Final = 1_500
"""Checks look every second, and what a timer could not write it tries again after half of one."""


def _shares(observed: Observations) -> ObservedShares:
    assert observed.shares is not None, "these checks are for runs with share groups"
    return observed.shares


# --- after each step


def a_record_has_two_holders(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A member is given a record whose lock another holds, or it itself."""
    shares = _shares(observed)
    fresh = {key for key, _ in shares.loaded(step)}
    here: dict[tuple[SharePartitionKey, int], str] = {}
    for key, member, first, last, _ in shares.deliveries_of(step):
        holds = {} if key in fresh else shares.term(step.node, key).holds
        for offset in range(first, last + 1):
            if (key, offset) in here:
                yield f"offset {offset} of {key}: {here[key, offset]} and {member} at one instant"
            here[key, offset] = member
            hold = holds.get(offset)
            if hold is not None and not hold.is_given_up and step.now < hold.until:
                yield f"offset {offset} of {key}: {hold.member} holds it until {hold.until}, {member} is given it"


def a_delivery_is_not_counted(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A delivery has no higher count than the one before."""
    shares = _shares(observed)
    fresh = {key for key, _ in shares.loaded(step)}
    for key, _, first, last, count in shares.deliveries_of(step):
        counts = {} if key in fresh else shares.term(step.node, key).counts
        for offset in range(first, last + 1):
            before = counts.get(offset, 0)
            if count <= before:
                yield f"offset {offset} of {key}: delivery {count} after delivery {before}"


def a_record_is_delivered_beyond_its_limit(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A record is delivered more often than the delivery count limit allows."""
    shares = _shares(observed)
    for key, member, first, last, count in shares.deliveries_of(step):
        if count > shares.delivery_limit:
            yield f"offsets {first} to {last} of {key}: delivery {count} of {shares.delivery_limit}, to {member}"


def a_share_epoch_falls(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A member is answered an older epoch than it has."""
    for exchange, response in step.replies(ShareGroupHeartbeatResponse):
        epoch = request_of(exchange, ShareGroupHeartbeatRequest).member_epoch
        if response.error_code is ErrorCode.NONE and 0 <= response.member_epoch < epoch:
            yield f"{response.member_id}: {response.member_epoch} after {epoch}"


def a_share_member_is_removed_that_beat_in_time(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(MemberRemoved):
        key = (step.node.name, step.node.incarnation, event.group_id, event.member_id)
        last, timeout = _shares(observed).beats.get(key), step.node.settings.group_share_session_timeout_ms
        if event.cause == "session-expiry" and last is not None and step.now - last < timeout:
            yield f"{event.member_id}: {step.now - last} ms after its last heartbeat, it has {timeout}"


def a_response_has_what_its_member_was_not_given(observed: Observations, step: ObservedStep) -> Iterator[str]:
    shares = _shares(observed)
    fresh = {
        (key, member, offset, count)
        for key, member, first, last, count in shares.deliveries_of(step)
        for offset in range(first, last + 1)
    }
    for key, member, first, last, count in shares.responses_of(step):
        for offset in range(first, last + 1):
            if (key, member, offset, count) not in fresh and (key, member, offset, count) not in shares.given:
                yield f"{member}: offset {offset} of {key}, delivery {count}"


def a_finished_record_is_delivered(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A record is delivered, though a verdict on it was answered as stored, and not by a later leader."""
    shares = _shares(observed)
    fresh = {key for key, _ in shares.loaded(step)}
    for key, member, first, last, _ in shares.deliveries_of(step):
        loaded_at = step.now if key in fresh else shares.term(step.node, key).loaded_at
        done = shares.done.get(key, {})
        for offset in range(first, last + 1):
            if offset in done and done[offset] <= loaded_at:
                yield f"offset {offset} of {key} is finished, and {member} is given it"


def a_verdict_is_answered_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    shares = _shares(observed)
    for _, verdicts in shares.verdicts_of(step):
        log = shares.log_of(verdicts.key)
        for offset in verdicts.accepted:
            if not log.is_final(offset):
                yield f"{verdicts.member}: offset {offset} of {verdicts.key} is {log.records.get(offset)} in the log"


def a_member_decides_about_a_record_of_another(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """A verdict is taken from a member that did not hold the record when it came."""
    shares = _shares(observed)
    for exchange, verdicts in shares.verdicts_of(step):
        found = shares.not_held.get(exchange, {}).get(verdicts.key)
        if found is not None:
            yield f"{verdicts.member} decides about offset {found[0]} of {verdicts.key}, which {found[1]} holds"


def a_request_with_another_session_epoch_is_accepted(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for member, epoch, error in _shares(observed).answers_to_wrong_epochs(step):
        if error is ErrorCode.NONE:
            yield f"{member}: epoch {epoch}"


def a_loaded_window_differs_from_the_log(observed: Observations, step: ObservedStep) -> Iterator[str]:
    """The state that was read from the share coordinator is not that which all records of the log make."""
    shares = _shares(observed)
    for key, event in shares.loaded(step):
        core = step.node.core
        view = None if core is None else core.share_state(event.group_id, event.topic, event.partition, step.now)
        log = shares.log_of(key)
        if view is None or event.start_offset < log.start:
            yield f"{key}: the start is {event.start_offset}, {log.start} in the log"
            continue
        there = {offset: each for offset, each in log.records.items() if offset >= view.start_offset}
        here = dict(_by_offset(view))
        for offset in sorted(there):
            run = here.get(offset)
            if run is None or not _agree(run, there[offset]):
                yield f"offset {offset} of {key}: {run}, the log has {there[offset]}"


def _by_offset(view: ShareStateView) -> Iterator[tuple[int, RecordRunView]]:
    for run in view.records:
        for offset in range(run.first_offset, run.last_offset + 1):
            yield offset, run


def _agree(run: RecordRunView, logged: tuple[int, int]) -> bool:
    """Whether a record in memory may come from the log: as it is there, or acquired since."""
    count, state = logged
    if run.state == "ACQUIRED":
        return state not in FINAL_STATES and run.delivery_count > count
    if state == _STATES["ARCHIVING"]:
        return run.state in ("ARCHIVING", "ARCHIVED")
    return (run.delivery_count, _STATES[run.state]) == (count, state)


# --- now and then


def a_lock_never_ends(observed: Observations) -> Iterator[str]:
    """A member holds a record for longer than the lock that it was given, renewals included."""
    shares = _shares(observed)
    now = observed.simulation.world.now
    for node in observed.simulation.cluster.nodes:
        if node.core is None or now < node.paused_until + _SLACK_MS:
            continue
        for key, partition in shares.partitions():
            view = node.core.share_state(key.group_id, *partition, now)
            if view is None:
                continue
            holds = shares.term(node, key).holds
            for offset, run in _by_offset(view):
                hold = holds.get(offset)
                if run.state == "ACQUIRED" and hold is not None and now > hold.latest + _SLACK_MS:
                    yield f"offset {offset} of {key}: {run.member_id} since before {hold.latest}"


def a_snapshot_differs_from_the_log(observed: Observations) -> Iterator[str]:
    """A snapshot of the share coordinator's memory is not what the records before it make."""
    yield from _shares(observed).broken_snapshots


def _groups(observed: Observations) -> Iterator[tuple[NodeActor, GroupView]]:
    """The groups of nodes that serve them."""
    cluster, now = observed.simulation.cluster, observed.simulation.world.now
    for group_id in observed.simulation.scenario.groups:
        for node in cluster.nodes:
            shard = node.shard(group_id)
            if node.core is None or now < node.paused_until or shard is None or not shard.is_active:
                continue
            view = node.core.describe_group(group_id)
            if view is not None and observed.leads_in_truth(node, group_id):
                yield node, view


def a_silent_share_member_stays(observed: Observations) -> Iterator[str]:
    shares, now = _shares(observed), observed.simulation.world.now
    for node, view in _groups(observed):
        timeout = node.settings.group_share_session_timeout_ms
        for member in view.members:
            last = shares.beats.get((node.name, node.incarnation, view.group_id, member.member_id))
            failed_at = observed.failed_appends.get(observed.simulation.cluster.partition_of(view.group_id), 0)
            if last is None or now - failed_at < _LATE_MS:
                continue
            late = now - max(last, observed.resumed(node))
            if late > timeout + _LATE_MS:
                yield f"{member.member_id}: silent for {late} ms, it has {timeout}"


# --- at the end


def a_shared_record_is_lost(observed: Observations) -> Iterator[str]:
    """A record counts as finished, though no member decided about it and it was not delivered to the limit."""
    shares = _shares(observed)
    for key, partition in shares.partitions():
        asked, delivered = shares.asked.get(key, set()), shares.deliveries.get(key, {})
        log = shares.log_of(key)
        for offset in range(_end(observed, partition)):
            if log.is_final(offset) and offset not in asked and delivered.get(offset, 0) < shares.delivery_limit:
                yield f"offset {offset} of {key}: {delivered.get(offset, 0)} deliveries, no verdict"


def a_shared_record_is_left(observed: Observations) -> Iterator[str]:
    """Long after the last fault, a record is not finished."""
    shares = _shares(observed)
    for key, partition in shares.partitions():
        if not observed.simulation.members_of(key.group_id):
            continue
        views = [
            view
            for node in observed.simulation.cluster.nodes
            if node.core is not None
            for view in [node.core.share_state(key.group_id, *partition, observed.simulation.world.now)]
            if view is not None
        ]
        left = _left(shares.log_of(key), views, _end(observed, partition))
        if left:
            yield f"offsets {left[:5]} of {key}, {len(left)} together"


def _left(log: LoggedShare, views: list[ShareStateView], end: int) -> list[int]:
    """Offsets that are finished neither in the log nor in the memory of the leader."""
    finished: set[int] = set()
    for view in views:
        finished.update(range(view.start_offset))
        finished.update(offset for offset, run in _by_offset(view) if _STATES[run.state] in FINAL_STATES)
    return [offset for offset in range(end) if not log.is_final(offset) and offset not in finished]


def _end(observed: Observations, partition: TopicPartition) -> int:
    entries: Sequence[object] = observed.simulation.disk.log(observed.simulation.cluster.log_of(partition)).records
    ends = [each.next_offset for each in entries if isinstance(each, BatchEntry)]
    return max(ends, default=0)


def a_share_group_does_not_settle(observed: Observations) -> Iterator[str]:
    """The faults are over, and a group is not made of the processes that run."""
    for _, view in _groups(observed):
        there = {each.member_id for each in view.members}
        wanted = {
            process.core.describe().member_id
            for process in observed.simulation.members_of(view.group_id)
            if process.core is not None
        }
        if there != wanted:
            yield f"the group {view.group_id} has the members {sorted(there)}, and should have {sorted(wanted)}"
