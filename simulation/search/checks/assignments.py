"""A partition has one owner, the one that the leader gave it to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.client.core.consumer import ConsumerCore
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of

NONE: Final = ErrorCode.NONE


def a_partition_has_two_owners_in_a_generation(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        if response.error_code is not NONE or not response.assignment:
            continue
        key = (*step.leader_term(request.group_id), request.generation_id)
        owners = observed.owners.setdefault(key, {})
        who = request.group_instance_id or request.member_id
        for partition in decode_assignment(response.assignment).partitions:
            owner = owners.setdefault(partition, who)
            if owner != who:
                yield f"{partition.topic}-{partition.partition}: both {owner} and {who} in generation {key[-1]}"


def a_member_gets_what_the_leader_did_not_give(observed: Observations, step: ObservedStep) -> Iterator[str]:
    what = step.received(SyncGroupRequest)
    if what is not None:
        group = step.group(what.group_id)
        if group is not None and group.leader == what.member_id and group.generation == what.generation_id:
            key = (*step.leader_term(what.group_id), what.generation_id)
            observed.assignments.setdefault(key, {each.member_id: each.assignment for each in what.assignments})
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        given = observed.assignments.get((*step.leader_term(request.group_id), request.generation_id))
        if response.error_code is not NONE or given is None or request.group_instance_id is not None:
            continue  # a static member may have another id by now than the leader knew
        if response.assignment != given.get(request.member_id, b""):
            yield f"{request.member_id} in generation {request.generation_id}"


def a_non_member_gets_an_assignment(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        group = step.group(request.group_id)
        if response.error_code is NONE and (group is None or request.member_id not in group.members):
            yield f"{request.member_id} is not a member of {request.group_id}"


def a_partition_is_assigned_that_was_not_given_up(observed: Observations, event: PartitionsAssigned) -> Iterator[str]:
    new = {(topic, index) for topic, indexes in event.partitions.items() for index in indexes}
    leader = observed.simulation.cluster.leader_of(event.group_id or "")
    group = None if leader is None else leader.group(event.group_id or "")
    members = None if group is None else group.members
    for other in observed.simulation.consumers.values():
        core = other.core
        if (
            not isinstance(core, ConsumerCore)
            or other.name == event.client_id
            or core.config.group_id != event.group_id
        ):
            continue
        if core.generation.generation_id != event.generation:
            continue  # it does not know this generation: it is out of the group, or about to rejoin
        if members is not None and core.generation.member_id not in members:
            continue  # a coordinator that was deposed gave it a generation of the same number
        if event.group_instance_id is not None and core.config.group_instance_id == event.group_instance_id:
            continue  # the same member in an older process, which is fenced with its next request
        both = sorted(new & {(topic, index) for topic, index in core.assignment()})
        if both:
            yield f"{event.client_id} got {both} in generation {event.generation}, {other.name} still has them"


def a_partition_is_left_without_an_owner(observed: Observations) -> Iterator[str]:
    for partition, state in observed.simulation.ownership.partitions.items():
        members = observed.simulation.members_of(partition.group_id)
        subscribed = [each for each in members if each.reads(partition.topic)]
        if observed.may_be_overlooked(partition):
            continue
        if state.is_gone:
            if state.owners:
                yield f"{partition.topic} is gone, and {list(state.owners)} of {partition.group_id} still read it"
            continue
        if subscribed and len(state.owners) != 1:
            name = f"{partition.topic}-{partition.partition} of {partition.group_id}"
            yield f"{name} is owned by {list(state.owners) or 'no member'}"
