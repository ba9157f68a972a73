"""Reachable states and edges of small worlds, counted with models of their own: the explorer skips nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.simulation.explore.canonical.form import FAR
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import world_from
from rejoin.simulation.network import Exchange
from tests.simulation.explore.models import ClassicGroup, ConsumerGroup, Model, Offsets, Seen

Edges = set[tuple[Seen, str, Seen]]
CLASSIC = """
topics: {t: {partitions: 2}}
groups: {g: {topics: [t], consumers: 0, session_timeout: 10s, max_poll_interval: 30s}}
coordinator: {settings: {group.initial.rebalance.delay.ms: 0}}
explore: {faults: 0, free: {group: g, clients: 2, letters: LETTERS}}
"""
CONSUMER = """
topics: {t: {partitions: 1}}
groups: {g: {topics: [t], consumers: 0, protocol: consumer, settings: {consumer.session.timeout.ms: 45000}}}
coordinator: {settings: {group.consumer.assignment.interval.ms: 0}}
explore: {faults: 0, free: {group: g, clients: 2, letters: ["beat 0", "beat -1"]}}
"""
STATES = {"PreparingRebalance": "Preparing", "CompletingRebalance": "Completing"}


def modelled(model: Model, depth: int) -> Edges:
    frontier, known = [model], {model.key()}
    edges: Edges = set()
    for _ in range(depth):
        following = []
        for state in frontier:
            for label in state.steps():
                after = state.after(label)
                edges.add((state.seen(), label, after.seen()))
                if after.key() not in known:
                    known.add(after.key())
                    following.append(after)
        frontier = following
    return edges


def explored(run: ExploredRun, depth: int, seen: Callable[[ExploredRun], Seen]) -> Edges:
    frontier, known = [run], {run.digest()}
    edges: Edges = set()
    for _ in range(depth):
        following = []
        for state in frontier:
            for choice in state.choices():
                label = state.label(choice)
                timed = state.world.timed()
                if label.startswith("time"):
                    if timed is None or timed[0] - state.world.now > FAR:
                        continue  # the look for expired offsets, which is no part of a group
                    label = "time"
                after = state.copy()
                after.take(choice)
                edges.add((seen(state), label, seen(after)))
                if (digest := after.digest()) not in known:
                    known.add(digest)
                    following.append(after)
        frontier = following
    return edges


def seen_classic(run: ExploredRun) -> Seen:
    free = run.choosing.free
    group = run.simulation.cluster.nodes[0].group("g")
    assert free is not None
    if group is None:
        return "Empty", 0, 0, "none", "none", (-1, False), (-1, False)
    members = sorted((int(each.client_id[-1]), kind_of(each.parked)) for each in group.members.values())
    clients = [
        "member"
        if each.member_id in group.members
        else "pending"
        if each.member_id in group.pending_members
        else "none"
        for each in free.clients
    ]
    known = [(each.generation, bool(each.members)) for each in free.clients]
    state = STATES.get(group.state.value, group.state.value)
    return state, group.generation, *members, len(group.pending_members), *clients, *known


def kind_of(parked: tuple[object, ...]) -> str:
    kinds = [each.request for each in parked if isinstance(each, Exchange)]
    return "" if not kinds else "join" if isinstance(kinds[0], JoinGroupRequest) else "sync"


@pytest.mark.parametrize(
    ("letters", "depth"),
    [
        (("join", "join own", "leave"), 4),
        (("join", "join own", "sync as leader"), 5),
        (("join", "join own", "sync", "heartbeat"), 4),
    ],
)
def test_a_classic_group_has_the_states_of_its_model(letters: tuple[str, ...], depth: int) -> None:
    run = ExploredRun(world_from(CLASSIC.replace("LETTERS", str(list(letters)))))
    ours, models = explored(run, depth, seen_classic), modelled(ClassicGroup(letters), depth)
    assert not ours ^ models
    assert len(ours) > 50


def seen_consumer(run: ExploredRun) -> Seen:
    group = run.simulation.cluster.nodes[0].consumer_group("g")
    if group is None:
        return (0,)
    return group.epoch, *sorted((int(each.client_id[-1]), each.epoch) for each in group.members.values())


def seen_offset(run: ExploredRun) -> Seen:
    log = run.simulation.disk.log(run.simulation.cluster.partition_of("g"))
    return (next((offsets[-1] for key, offsets in log.newest.items() if key[0] == "g"), None),)


def test_a_consumer_group_has_the_states_of_its_model() -> None:
    ours = explored(ExploredRun(world_from(CONSUMER)), 5, seen_consumer)
    assert not ours ^ modelled(ConsumerGroup(), 5)


def test_offsets_have_the_states_of_their_model() -> None:
    letters = ["commit from outside", "fetch"]
    ours = explored(ExploredRun(world_from(CLASSIC.replace("LETTERS", str(letters)))), 4, seen_offset)
    assert not ours ^ modelled(Offsets(), 4)
