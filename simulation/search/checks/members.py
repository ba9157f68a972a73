"""Members are added, kept alive and removed by the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rejoin.journal.events.coordinator import (
    MemberRemoved,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.simulation.search.observations import Observations, ObservedStep, request_of

NONE: Final = ErrorCode.NONE


def a_heartbeat_is_answered_wrongly(observed: Observations, step: ObservedStep) -> Iterator[str]:
    what = step.received(HeartbeatRequest)
    if what is None or not step.serves(what.group_id):
        return
    expected = observed.expected_heartbeat(step, what)
    for _, response in step.replies(HeartbeatResponse):
        if response.error_code is not expected:
            yield f"{what.member_id}: {response.error_code.name}, expected {expected.name}"


def a_member_is_removed_that_beat_in_time(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(MemberRemoved):
        last_heartbeat = observed.beats.get((step.node.name, step.node.incarnation, event.group_id, event.member_id))
        timeout = observed.session_timeout(event.group_id)
        if event.cause == "session-expiry" and last_heartbeat is not None and step.now - last_heartbeat < timeout:
            yield f"{event.member_id}: {step.now - last_heartbeat} ms after its last heartbeat, it has {timeout}"


def a_silent_member_stays(observed: Observations) -> Iterator[str]:
    for node, group in observed.active_groups():
        for member_id, member in group.members.items():
            last_sign = observed.signs.get((node.name, node.incarnation, group.group_id, member_id))
            late = observed.simulation.world.now - max(last_sign or 0, observed.resumed(node))
            if last_sign is not None and not member.has_satisfied_heartbeat and late > member.session_timeout_ms + 1:
                yield f"{member_id} of {group.group_id}: silent for {late} ms, it has {member.session_timeout_ms}"


def a_member_is_added_under_no_id(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(JoinGroupResponse):
        request = request_of(exchange, JoinGroupRequest)
        hands_out = exchange.version >= 4 and request.group_instance_id is None
        if response.error_code is NONE and not request.member_id and hands_out:
            yield f"{response.member_id} joined without coming back with the id it was handed"


def a_member_that_left_is_still_a_member(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for exchange, response in step.replies(LeaveGroupResponse):
        request = request_of(exchange, LeaveGroupRequest)
        group = step.group(request.group_id)
        for member in response.members:
            if member.error_code is NONE and group is not None and member.member_id in group.members:
                yield member.member_id


def an_instance_id_has_two_members(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for group in step.changed_groups():
        ids = [m.group_instance_id for m in group.members.values() if m.group_instance_id is not None]
        if len(ids) != len(set(ids)):
            yield f"{group.group_id}: {sorted(ids)}"
