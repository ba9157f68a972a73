"""After the faults every group settles, and nothing is left behind in memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.simulation.search.observations import Observations

MOST_IN_FLIGHT: Final = 50
"""Asynchronous commits pile up while the log is slow; more than these are never let go."""


def a_group_does_not_settle(observed: Observations, refused: Container[str] = ()) -> Iterator[str]:
    """A group is not at rest, or lacks a consumer that is not ``refused``."""
    for group_id in observed.simulation.scenario.groups:
        node = observed.simulation.cluster.leader_of(group_id)
        group = None if node is None else node.group(group_id)
        wanted = sorted(each.name for each in observed.simulation.members_of(group_id) if each.name not in refused)
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


def memory_grows(observed: Observations) -> Iterator[str]:
    simulation = observed.simulation
    for node, group in observed.active_groups():
        if group.pending_members or (observed.is_quiet(node, group) and group.commits_in_flight):
            yield (f"{group.group_id}: ids {list(group.pending_members)}, {group.commits_in_flight} offsets in flight")
        view = None if node.core is None else node.core.describe_group(group.group_id)
        timers = {} if view is None else view.deadlines
        orphans = [name for name in timers if name.startswith("session ") and name[8:] not in group.members]
        if len(orphans) > len(simulation.consumers):
            yield f"{group.group_id}: timers of {orphans}"
    for consumer in simulation.consumers.values():
        if consumer.core is not None and consumer.core.requests_in_flight > MOST_IN_FLIGHT:
            yield f"{consumer.name} waits for {consumer.core.requests_in_flight} answers"
    waiting = sum(1 for node, life, _ in observed.open.values() if life == node.incarnation)
    if waiting > MOST_IN_FLIGHT * (len(simulation.consumers) + 1):
        yield f"{waiting} requests wait"
    if len(simulation.world) > 100 * (len(simulation.consumers) + len(simulation.cluster.nodes)) + 1_000:
        yield f"{len(simulation.world)} things are to happen"
