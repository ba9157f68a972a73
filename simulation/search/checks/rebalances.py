"""Rebalances give members their time, and end."""

from __future__ import annotations

from collections.abc import Iterator

from rejoin.coordinator.core.groups.classic.state import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE
from rejoin.journal.events.coordinator import JoinPhaseEnded, PendingMemberRemoved
from rejoin.simulation.search.observations import Observations, ObservedStep


def a_member_is_given_no_time_to_rejoin(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        timeout = observed.rebalance_timeout(event.group_id)
        if event.did_not_rejoin and event.join_ms < timeout:
            yield f"{', '.join(event.did_not_rejoin)}: the join phase ended after {event.join_ms} of {timeout} ms"


def a_first_rebalance_does_not_wait_for_more_members(observed: Observations, step: ObservedStep) -> Iterator[str]:
    for event in step.events(JoinPhaseEnded):
        began, cut_short = observed.initial.pop((step.node.name, event.group_id), (None, False))
        delay = step.node.settings.group_initial_rebalance_delay_ms
        # Kafka: removePendingMemberAndUpdateClassicGroup also completes a first rebalance that awaits no other id.
        gone = (gone for gone in step.events(PendingMemberRemoved) if gone.group_id == event.group_id)
        cut_short = cut_short or any(each.cause == "session-expiry" for each in gone)
        if began is not None and not cut_short and step.now - began < delay:
            yield f"{event.group_id}: generation {event.generation} after {step.now - began} of {delay} ms"


def a_protocol_is_chosen_that_is_not_the_majoritys(observed: Observations, step: ObservedStep) -> Iterator[str]:
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


def a_join_phase_does_not_end(observed: Observations) -> Iterator[str]:
    for node, group in observed.active_groups():
        since = max(group.state_since, observed.repeated.get((node.name, group.group_id), 0), observed.resumed(node))
        bound = observed.rebalance_timeout(group.group_id) + node.settings.group_initial_rebalance_delay_ms + 1_000
        lasts = observed.simulation.world.now - since
        if group.state is PREPARING_REBALANCE and lasts > bound:
            yield f"{group.group_id}: goes on for {lasts} ms, {bound} at most"


def a_member_need_not_sync(observed: Observations) -> Iterator[str]:
    for node, group in observed.active_groups():
        ended = observed.join_ended.get((node.name, group.group_id))
        if ended is None or not group.pending_sync or group.state not in (COMPLETING_REBALANCE, STABLE):
            continue
        lasts = observed.simulation.world.now - max(ended, observed.resumed(node))
        bound = observed.rebalance_timeout(group.group_id) + 1_000
        if lasts > bound:
            who = ", ".join(group.pending_sync)
            yield f"{who} of {group.group_id}: {lasts} ms after the join phase, {bound} at most"
