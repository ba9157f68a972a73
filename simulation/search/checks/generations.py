"""Generations count up, have one leader, and are not handed out before they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.journal.events.coordinator import (
    GroupCreated,
    GroupEmptied,
    GroupLoaded,
    JoinPhaseEnded,
    RebalanceCompleted,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of

NONE: Final = ErrorCode.NONE


def a_generation_goes_back(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.effects:
        if isinstance(event, JoinPhaseEnded) or (isinstance(event, GroupEmptied) and event.group_type == "classic"):
            before = observed.generations.get((step.node.name, event.group_id))
            if before is not None and event.generation != before + 1:
                yield f"{event.group_id}: generation {event.generation} after {before}"
            observed.generations[step.node.name, event.group_id] = event.generation
        elif isinstance(event, GroupLoaded):
            observed.generations[step.node.name, event.group_id] = event.generation
        elif isinstance(event, GroupCreated):
            observed.generations[step.node.name, event.group_id] = 0


def a_completed_generation_is_forgotten(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.effects:
        if isinstance(event, RebalanceCompleted):
            observed.completed[event.group_id] = max(event.generation, observed.completed.get(event.group_id, 0))
        elif isinstance(event, GroupLoaded) and observed.leads_in_truth(step.node, event.group_id):
            # A node that was asleep while it read may know less, and cannot write any of it.
            complete = observed.completed.get(event.group_id, 0)
            if event.generation < complete:
                yield f"{event.group_id}: loaded as {event.generation}, but {complete} was complete"


def a_generation_has_two_leaders(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(JoinGroupResponse):
        if response.error_code is NONE and response.members and not response.skip_assignment:
            key = (*step.leader_term(request_of(exchange, JoinGroupRequest).group_id), response.generation_id)
            leader = observed.leaders.setdefault(key, response.member_id)
            if leader != response.member_id:
                yield f"{key[-2]}: both {leader} and {response.member_id} lead generation {key[-1]}"


def a_generation_has_no_leader(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        leaders = [
            response.member_id
            for exchange, response in step.replies(JoinGroupResponse)
            if response.error_code is NONE and response.members and response.generation_id == event.generation
            if request_of(exchange, JoinGroupRequest).group_id == event.group_id
        ]
        if leaders != [event.leader]:
            yield f"{event.group_id}: {event.leader} should assign generation {event.generation}, not {leaders}"


def a_generation_is_handed_out_before_it_is_stored(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(SyncGroupResponse):
        request = request_of(exchange, SyncGroupRequest)
        if response.error_code is NONE:
            record = observed.newest_group(request.group_id)
            stored = -1 if record is None or record.value is None else record.value.data.generation
            if stored < request.generation_id:
                yield f"{request.group_id}: generation {request.generation_id} is not in the log, only {stored}"
