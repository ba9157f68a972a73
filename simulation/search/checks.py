"""What must never happen, one function each, named for it.

A check of a step is given the step and what is remembered, and yields what is wrong. A check of the whole looks at
everybody, now and then and at the end. The checks say again, in other words, what the specification says; they do not
ask the code that they check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.groups.classic.state import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.journal.events.coordinator import (
    CoreFailed,
    GroupCreated,
    GroupEmptied,
    GroupLoaded,
    JoinPhaseEnded,
    MemberRemoved,
    RebalanceCompleted,
)
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rejoin.simulation.search.evidence import Evidence, Step, request_of

StepCheck: TypeAlias = Callable[[Evidence, Step], Iterator[str]]
WholeCheck: TypeAlias = Callable[[Evidence], Iterator[str]]

PATIENCE_MS: Final = 8_000
"""Longer than an append may take: whoever waits for longer is parked, or forgotten."""

MOST_IN_FLIGHT: Final = 50
"""Asynchronous commits pile up while the log is slow; more than these are never let go."""

NONE: Final = ErrorCode.NONE


# --- after every step of a node


def the_core_fails(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(CoreFailed):
        yield f"{event.doing}: {event.problem}"


def a_request_is_answered_twice(evidence: Evidence, step: Step) -> Iterator[str]:
    seen: list[object] = []
    for effect in step.effects:
        if isinstance(effect, Reply):
            if any(token is effect.token for token in seen) or evidence.was_answered(effect.token):
                yield f"{type(effect.response).__name__} for one that has its answer"
            seen.append(effect.token)


def a_generation_goes_back(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.effects:
        if isinstance(event, (JoinPhaseEnded, GroupEmptied)):
            before = evidence.generations.get((step.node.name, event.group_id))
            if before is not None and event.generation != before + 1:
                yield f"{event.group_id}: generation {event.generation} after {before}"
            evidence.generations[step.node.name, event.group_id] = event.generation
        elif isinstance(event, GroupLoaded):
            evidence.generations[step.node.name, event.group_id] = event.generation
        elif isinstance(event, GroupCreated):
            evidence.generations[step.node.name, event.group_id] = 0


def a_completed_generation_is_forgotten(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.effects:
        if isinstance(event, RebalanceCompleted):
            evidence.completed[event.group_id] = max(event.generation, evidence.completed.get(event.group_id, 0))
        elif isinstance(event, GroupLoaded) and evidence.leads_in_truth(step.node, event.group_id):
            # Whoever was asleep while it read may know less, and can write nothing of it.
            complete = evidence.completed.get(event.group_id, 0)
            if event.generation < complete:
                yield f"{event.group_id}: loaded as {event.generation}, but {complete} was complete"


def a_generation_has_two_leaders(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(JoinGroupResponse):
        if response.error_code is NONE and response.members and not response.skip_assignment:
            key = (*step.place(request_of(exchange, JoinGroupRequest).group_id), response.generation_id)
            leader = evidence.leaders.setdefault(key, response.member_id)
            if leader != response.member_id:
                yield f"{key[-2]}: both {leader} and {response.member_id} lead generation {key[-1]}"


def a_generation_has_no_leader(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        told = [
            response.member_id
            for exchange, response in step.replies(JoinGroupResponse)
            if response.error_code is NONE and response.members and response.generation_id == event.generation
            if request_of(exchange, JoinGroupRequest).group_id == event.group_id
        ]
        if told != [event.leader]:
            yield f"{event.group_id}: {event.leader} should assign generation {event.generation}, told are {told}"


def a_partition_has_two_owners_in_a_generation(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        if response.error_code is not NONE or not response.assignment:
            continue
        key = (*step.place(request.group_id), request.generation_id)
        owners = evidence.owners.setdefault(key, {})
        who = request.group_instance_id or request.member_id
        for partition in decode_assignment(response.assignment).partitions:
            owner = owners.setdefault(partition, who)
            if owner != who:
                yield f"{partition.topic}-{partition.partition}: both {owner} and {who} in generation {key[-1]}"


def a_member_gets_what_the_leader_did_not_give(evidence: Evidence, step: Step) -> Iterator[str]:
    what = step.received(SyncGroupRequest)
    if what is not None and what.assignments:
        group = step.group(what.group_id)
        if group is not None and group.leader == what.member_id and group.generation == what.generation_id:
            key = (*step.place(what.group_id), what.generation_id)
            evidence.given.setdefault(key, {each.member_id: each.assignment for each in what.assignments})
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        given = evidence.given.get((*step.place(request.group_id), request.generation_id))
        if response.error_code is not NONE or given is None or request.group_instance_id is not None:
            continue  # a static member may have another id by now than the leader knew
        if response.assignment != given.get(request.member_id, b""):
            yield f"{request.member_id} in generation {request.generation_id}"


def somebody_outside_is_told_that_it_owns_something(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        group = step.group(request.group_id)
        if response.error_code is NONE and (group is None or request.member_id not in group.members):
            yield f"{request.member_id} is not a member of {request.group_id}"


def a_generation_is_handed_out_before_it_is_stored(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        if response.error_code is NONE:
            record = evidence.newest_group(request.group_id)
            stored = -1 if record is None or record.value is None else record.value.data.generation
            if stored < request.generation_id:
                yield f"{request.group_id}: generation {request.generation_id} is not in the log, only {stored}"


def a_commit_is_acknowledged_before_it_is_stored(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        request = request_of(exchange, OffsetCommitRequest)
        wanted = {(t.name, p.partition_index): p.committed_offset for t in request.topics for p in t.partitions}
        for topic in response.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if partition.error_code is NONE and wanted[place] not in evidence.written(request.group_id, *place):
                    yield f"{topic.name}-{partition.partition_index}={wanted[place]} is not in the log"


def an_outsider_commits(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(OffsetCommitResponse):
        request = request_of(exchange, OffsetCommitRequest)
        error = evidence.commit_verdicts.pop(exchange, NONE)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if error is not NONE and NONE in codes:
            yield f"{request.member_id} of generation {request.generation_id_or_member_epoch}, which is {error.name}"


def a_heartbeat_is_answered_wrongly(evidence: Evidence, step: Step) -> Iterator[str]:
    what = step.received(HeartbeatRequest)
    if what is None or not step.serves(what.group_id):
        return
    expected = evidence.expected_heartbeat(step, what)
    for _, response in step.replies(HeartbeatResponse):
        if response.error_code is not expected:
            yield f"{what.member_id}: {response.error_code.name}, expected {expected.name}"


def a_member_is_removed_that_beat_in_time(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(MemberRemoved):
        heard = evidence.beats.get((step.node.name, step.node.life, event.group_id, event.member_id))
        timeout = evidence.session_timeout(event.group_id)
        if event.cause == "session-expiry" and heard is not None and step.now - heard < timeout:
            yield f"{event.member_id}: {step.now - heard} ms after its last heartbeat, it has {timeout}"


def a_member_is_given_no_time_to_rejoin(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        timeout = evidence.rebalance_timeout(event.group_id)
        if event.did_not_rejoin and event.join_ms < timeout:
            yield f"{', '.join(event.did_not_rejoin)}: the join phase ended after {event.join_ms} of {timeout} ms"


def a_first_rebalance_does_not_wait_for_more_members(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        began, cut_short = evidence.initial.pop((step.node.name, event.group_id), (None, False))
        delay = step.node.settings.group_initial_rebalance_delay_ms
        if began is not None and not cut_short and step.now - began < delay:
            yield f"{event.group_id}: generation {event.generation} after {step.now - began} of {delay} ms"


def a_protocol_is_chosen_that_is_not_the_majoritys(evidence: Evidence, step: Step) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        group = step.group(event.group_id)
        if group is None:
            continue
        lists = [list(member.protocols) for member in group.members.values()]
        shared = [name for name in lists[0] if all(name in names for names in lists)] if lists else []
        votes = [next(name for name in names if name in shared) for names in lists if shared]
        best = max((votes.count(name) for name in shared), default=0)
        if lists and (event.protocol not in shared or votes.count(event.protocol) < best):
            yield f"{event.group_id}: {event.protocol} of {lists}"


def a_member_is_added_under_no_id(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(JoinGroupResponse):
        request = request_of(exchange, JoinGroupRequest)
        if response.error_code is NONE and not request.member_id and request.group_instance_id is None:
            yield f"{response.member_id} joined without coming back with the id it was handed"


def somebody_who_left_is_still_a_member(evidence: Evidence, step: Step) -> Iterator[str]:
    for exchange, response in step.replies(LeaveGroupResponse):
        request = request_of(exchange, LeaveGroupRequest)
        group = step.group(request.group_id)
        for member in response.members:
            if member.error_code is NONE and group is not None and member.member_id in group.members:
                yield member.member_id


def an_instance_id_has_two_members(evidence: Evidence, step: Step) -> Iterator[str]:
    for group in step.changed_groups():
        ids = [m.group_instance_id for m in group.members.values() if m.group_instance_id is not None]
        if len(ids) != len(set(ids)):
            yield f"{group.group_id}: {sorted(ids)}"


EACH_STEP: Final[tuple[StepCheck, ...]] = (
    the_core_fails,
    a_request_is_answered_twice,
    a_generation_goes_back,
    a_completed_generation_is_forgotten,
    a_generation_has_two_leaders,
    a_generation_has_no_leader,
    a_partition_has_two_owners_in_a_generation,
    a_member_gets_what_the_leader_did_not_give,
    somebody_outside_is_told_that_it_owns_something,
    a_generation_is_handed_out_before_it_is_stored,
    a_commit_is_acknowledged_before_it_is_stored,
    an_outsider_commits,
    a_heartbeat_is_answered_wrongly,
    a_member_is_removed_that_beat_in_time,
    a_member_is_given_no_time_to_rejoin,
    a_first_rebalance_does_not_wait_for_more_members,
    a_protocol_is_chosen_that_is_not_the_majoritys,
    a_member_is_added_under_no_id,
    somebody_who_left_is_still_a_member,
    an_instance_id_has_two_members,
)


# --- after a consumer got partitions


def a_partition_is_handed_over_that_was_not_given_up(evidence: Evidence, event: PartitionsAssigned) -> Iterator[str]:
    new = {(topic, index) for topic, indexes in event.partitions.items() for index in indexes}
    for other in evidence.lab.consumers.values():
        core = other.core
        if core is None or other.name == event.client_id or core.config.group_id != event.group_id:
            continue
        if core.generation.generation_id != event.generation:
            continue  # it does not know of this generation, so it is out, or will be told
        if event.group_instance_id is not None and core.config.group_instance_id == event.group_instance_id:
            continue  # the same member in an older process, which is fenced with its next request
        both = sorted(new & {(topic, index) for topic, index in core.assignment()})
        if both:
            yield f"{event.client_id} got {both} in generation {event.generation}, {other.name} still has them"


# --- now and then


def a_request_is_never_answered(evidence: Evidence) -> Iterator[str]:
    now = evidence.lab.world.now
    for exchange, (node, life, since) in evidence.open.items():
        waited = now - max(since, node.paused_until)
        if life == node.life and waited > PATIENCE_MS and not evidence.is_parked(node, exchange):
            who = exchange.connection.client.name
            yield f"{type(exchange.request).__name__} of {who}, asked {now - since} ms ago"


def a_silent_member_stays(evidence: Evidence) -> Iterator[str]:
    for node, group in evidence.active_groups():
        for member_id, member in group.members.items():
            heard = evidence.signs.get((node.name, node.life, group.group_id, member_id))
            late = evidence.lab.world.now - max(heard or 0, evidence.resumed(node))
            if heard is not None and not member.has_satisfied_heartbeat and late > member.session_timeout_ms + 1:
                yield f"{member_id} of {group.group_id}: silent for {late} ms, it has {member.session_timeout_ms}"


def a_join_phase_does_not_end(evidence: Evidence) -> Iterator[str]:
    for node, group in evidence.active_groups():
        since = max(group.state_since, evidence.repeated.get((node.name, group.group_id), 0), evidence.resumed(node))
        bound = evidence.rebalance_timeout(group.group_id) + node.settings.group_initial_rebalance_delay_ms + 1_000
        lasts = evidence.lab.world.now - since
        if group.state is PREPARING_REBALANCE and lasts > bound:
            yield f"{group.group_id}: goes on for {lasts} ms, {bound} at most"


def a_member_need_not_sync(evidence: Evidence) -> Iterator[str]:
    for node, group in evidence.active_groups():
        ended = evidence.join_ended.get((node.name, group.group_id))
        if ended is None or not group.pending_sync or group.state not in (COMPLETING_REBALANCE, STABLE):
            continue
        lasts = evidence.lab.world.now - max(ended, evidence.resumed(node))
        bound = evidence.rebalance_timeout(group.group_id) + 1_000
        if lasts > bound:
            who = ", ".join(group.pending_sync)
            yield f"{who} of {group.group_id}: {lasts} ms after the join phase, {bound} at most"


def the_log_differs_from_memory(evidence: Evidence) -> Iterator[str]:
    for node, group in evidence.active_groups():
        if not evidence.is_quiet(node, group):
            continue
        log = evidence.lab.disk.log(group.partition)
        assert node.core is not None, "only a node that is up serves groups"
        offsets = node.core.describe_offsets(group.group_id, evidence.lab.world.now)
        stored = {(each.topic, each.partition): each.offset for each in offsets}
        written = {
            (key[1], int(key[2])): offsets[-1] for key, offsets in log.newest.items() if key[0] == group.group_id
        }
        if stored != written:
            differ = {place for place in {*stored, *written} if stored.get(place) != written.get(place)}
            yield f"{group.group_id}: offsets of {sorted(differ)}"
        record = log.groups.get(group.group_id)
        if record is None or record.value is None or evidence.lost_group_record(group):
            continue
        value = record.value.data
        if group.state is EMPTY and (value.members or value.generation != group.generation):
            yield f"{group.group_id} is Empty in generation {group.generation}, the log has {value.generation}"
        if group.state is STABLE:
            here = {member_id: member.assignment for member_id, member in group.members.items()}
            there = {member.member_id: member.assignment for member in value.members}
            if (group.generation, group.leader, here) != (value.generation, value.leader, there):
                yield f"{group.group_id}: generation {group.generation} against {value.generation}, or its members"


def an_offsets_partition_has_two_leaders(evidence: Evidence) -> Iterator[str]:
    now = evidence.lab.world.now
    leaders: dict[int, str] = {}
    for node in evidence.lab.cluster.nodes:
        tenure = node.tenure
        if tenure is None or node.paused_until > now or (tenure.leases.valid_until() or now) <= now:
            continue
        for partition in tenure.leases.held:
            if leaders.setdefault(partition, node.name) != node.name:
                yield f"{partition}: both {leaders[partition]} and {node.name}"


NOW_AND_THEN: Final[tuple[WholeCheck, ...]] = (
    a_request_is_never_answered,
    a_silent_member_stays,
    a_join_phase_does_not_end,
    a_member_need_not_sync,
    the_log_differs_from_memory,
    an_offsets_partition_has_two_leaders,
)


# --- when the faults have been over for long enough


def a_group_does_not_settle(evidence: Evidence) -> Iterator[str]:
    for group_id in evidence.lab.scenario.groups:
        node = evidence.lab.cluster.leader_of(group_id)
        group = None if node is None else node.group(group_id)
        wanted = sorted(each.name for each in evidence.lab.members_of(group_id))
        if group is None:
            if wanted:
                yield f"{group_id} does not exist, and {', '.join(wanted)} should be in it"
            continue
        # Kafka: a static member that came back keeps the client id of the process before it.
        members = sorted(member.group_instance_id or member.client_id for member in group.members.values())
        if group.state not in (STABLE, EMPTY):
            yield f"{group_id} is {group.state}"
        elif members != wanted:
            yield f"{group_id} has the members {members}, and should have {wanted}"


def a_partition_is_left_without_an_owner(evidence: Evidence) -> Iterator[str]:
    for place, state in evidence.lab.ownership.places.items():
        members = evidence.lab.members_of(place.group_id)
        subscribed = [each for each in members if place.topic in each.topics]
        if evidence.may_be_overlooked(place):
            continue
        if subscribed and len(state.owners) != 1:
            yield f"{place.topic}-{place.partition} of {place.group_id} is owned by {list(state.owners) or 'nobody'}"


def memory_grows(evidence: Evidence) -> Iterator[str]:
    lab = evidence.lab
    for node, group in evidence.active_groups():
        if group.pending_members or (evidence.is_quiet(node, group) and group.commits_in_flight):
            yield (f"{group.group_id}: ids {list(group.pending_members)}, {group.commits_in_flight} offsets in flight")
        view = None if node.core is None else node.core.describe_group(group.group_id, lab.world.now)
        timers = {} if view is None else view.deadlines
        strangers = [name for name in timers if name.startswith("session ") and name[8:] not in group.members]
        if len(strangers) > len(lab.consumers):
            yield f"{group.group_id}: timers of {strangers}"
    for consumer in lab.consumers.values():
        if consumer.core is not None and consumer.core.requests_in_flight > MOST_IN_FLIGHT:
            yield f"{consumer.name} waits for {consumer.core.requests_in_flight} answers"
    waiting = sum(1 for node, life, _ in evidence.open.values() if life == node.life)
    if waiting > MOST_IN_FLIGHT * (len(lab.consumers) + 1):
        yield f"{waiting} requests wait"
    if len(lab.world) > 100 * (len(lab.consumers) + len(lab.cluster.nodes)) + 1_000:
        yield f"{len(lab.world)} things are to happen"


AT_THE_END: Final[tuple[WholeCheck, ...]] = (
    a_group_does_not_settle,
    a_partition_is_left_without_an_owner,
    memory_grows,
)
