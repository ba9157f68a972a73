"""A view of a consumer as one value: its state, its membership and its timers."""

from __future__ import annotations

from typing import NamedTuple

from rejoin.client.core.inputs import Millis
from rejoin.client.core.state.consumer import ConsumerState


class MembershipView(NamedTuple):
    """A member as it knows itself. Instants are none while their timer does not run.

    ``generation`` is the member epoch in a consumer group, where the session is the coordinator's alone.
    """

    state: str
    member_id: str
    generation: int
    is_leader: bool
    heartbeat_at: Millis | None
    session_expires_at: Millis | None
    poll_expires_at: Millis | None


def of_member(state: ConsumerState) -> MembershipView:
    """The member as it is."""
    member, timers = state.membership, state.heartbeat
    if member is not None:
        runs = member.epoch > 0
        return MembershipView(
            member.state.name,
            member.member_id,
            member.epoch,
            False,
            max(member.due_at, member.retry_at) if runs else None,
            None,
            member.poll_expires_at if runs else None,
        )
    generation, runs = state.generation, timers.enabled
    return MembershipView(
        state.member_state.name,
        generation.member_id,
        generation.generation_id,
        state.is_leader,
        timers.due_at if runs else None,
        timers.session_expires_at if runs else None,
        timers.poll_expires_at if runs else None,
    )
