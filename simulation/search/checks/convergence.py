"""After the faults every group settles, and nothing is left behind in memory."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final, Protocol

from rejoin.client.core.consumer import ConsumerCore
from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.simulation.search.observations import Observations

MOST_IN_FLIGHT: Final = 50
"""Asynchronous commits pile up while the log is slow; more than these are never let go."""


class MemberOfAnyKind(Protocol):
    """A member of a group of any kind, as its coordinator has it."""

    @property
    def client_id(self) -> str: ...

    @property
    def group_instance_id(self) -> str | None: ...


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
        members = members_by_name(observed, group_id, group.members)
        if group.state not in (STABLE, EMPTY):
            yield f"{group_id} is {group.state}"
        elif members != wanted:
            yield f"{group_id} has the members {members}, and should have {wanted}"


def members_by_name(observed: Observations, group_id: str, members: Mapping[str, MemberOfAnyKind]) -> list[str]:
    """Members by instance id or client id; where they share one, by the process that has the member id."""
    processes = observed.simulation.members_of(group_id)
    shared = {each.client_id for each in processes if each.client_id != each.name}
    known = {each.core.generation.member_id: each.name for each in processes if isinstance(each.core, ConsumerCore)}
    return sorted(
        known.get(member_id, member_id)
        if member.client_id in shared
        # Kafka: a static member that came back keeps the client id of the process before it.
        else member.group_instance_id or member.client_id
        for member_id, member in members.items()
    )


def memory_grows(observed: Observations) -> Iterator[str]:
    simulation = observed.simulation
    explored = simulation.scenario.explore
    has_free_clients = explored is not None and explored.free is not None
    for node, group in observed.active_groups():
        if group.pending_members or (observed.is_quiet(node, group) and group.commits_in_flight):
            yield (f"{group.group_id}: ids {list(group.pending_members)}, {group.commits_in_flight} offsets in flight")
        view = None if node.core is None else node.core.describe_group(group.group_id)
        timers = {} if view is None else view.deadlines
        orphans = [name for name in timers if name.startswith("session ") and name[8:] not in group.members]
        # The timer of a replaced id runs on, as Kafka's does; a free client may be replaced as often as it joins.
        if len(orphans) > len(simulation.consumers) and not has_free_clients:
            yield f"{group.group_id}: timers of {orphans}"
    for consumer in simulation.consumers.values():
        if consumer.core is not None and consumer.core.requests_in_flight > MOST_IN_FLIGHT:
            yield f"{consumer.name} waits for {consumer.core.requests_in_flight} answers"
    waiting = sum(1 for node, life, _ in observed.open.values() if life == node.incarnation)
    if waiting > MOST_IN_FLIGHT * (len(simulation.consumers) + 1):
        yield f"{waiting} requests wait"
    if len(simulation.world) > 100 * (len(simulation.consumers) + len(simulation.cluster.nodes)) + 1_000:
        yield f"{len(simulation.world)} things are to happen"
