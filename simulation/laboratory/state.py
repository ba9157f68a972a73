"""The state of a run in one instant, as JSON has it: groups, members, nodes, requests in flight, and the log."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView, ShareStateView
from rejoin.simulation.kernel import Millis
from rejoin.simulation.laboratory.process_history import ProcessHistory
from rejoin.simulation.laboratory.run import MOST_IN_FLIGHT, LaboratoryRun


def state_at(run: LaboratoryRun, instant: Millis) -> dict[str, Any]:
    """All that the cores hold after everything that happened by an instant."""
    instant = max(0, min(instant, run.simulation.world.now))
    nodes = {name: history.at(instant) for name, history in run.nodes.by_name.items()}
    in_flight = list(run.requests.open_at(instant))
    return {
        "at": instant,
        "groups": {group_id: _group(run, group_id, nodes, instant) for group_id in run.scenario.groups},
        "processes": {name: _process(history, instant) for name, history in run.processes.items()},
        "nodes": {name: None if node is None else _node(node) for name, node in nodes.items()},
        "requests": [row.values() for row in in_flight[:MOST_IN_FLIGHT]],
        "inFlight": len(in_flight),
    }


def _group(run: LaboratoryRun, group_id: str, nodes: dict[str, Node | None], instant: Millis) -> dict[str, Any]:
    """The group as each node has it that leads its partition, or believes so; the newest epoch first."""
    partition = run.simulation.cluster.partition_of(group_id)
    found: list[tuple[int, str, GroupView | None, bool]] = []
    for name, node in nodes.items():
        shard = None if node is None else node.shard(partition)
        if node is not None and shard is not None:
            found.append((shard.epoch, name, node.describe_group(group_id), shard.is_active))
    found.sort(key=lambda each: each[0], reverse=True)
    return {
        "partition": partition.partition,
        "led": [
            {
                "node": name,
                "epoch": epoch,
                "isLoading": not is_active,
                "group": None if view is None else view.model_dump(mode="json", by_alias=True),
            }
            for epoch, name, view, is_active in found
        ],
        "log": run.log.at(group_id, instant),
        **({"shares": shares} if (shares := _shares(nodes, group_id, instant)) else {}),
    }


def _shares(nodes: dict[str, Node | None], group_id: str, instant: Millis) -> list[dict[str, Any]]:
    """The share-partitions of a group as their leaders have them; of two that believe so, the newest leader epoch."""
    newest: dict[tuple[str, int], ShareStateView] = {}
    for node in nodes.values():
        for view in () if node is None else node.share_states(group_id, instant):
            before = newest.get((view.topic, view.partition))
            if before is None or before.leader_epoch < view.leader_epoch:
                newest[view.topic, view.partition] = view
    return [newest[key].model_dump(mode="json", by_alias=True) for key in sorted(newest)]


def _process(history: ProcessHistory, instant: Millis) -> dict[str, Any]:
    view = history.at(instant)
    member = view.member
    owned: dict[str, list[int]] = {}
    for partition in view.owned:
        owned.setdefault(partition.topic, []).append(partition.partition)
    return {
        "group": history.group_id,
        "isUp": member is not None,
        "member": None if member is None else member._asdict(),
        "owned": owned,
        "isPolling": view.is_polling,
        "isClosing": view.is_closing,
    }


def _node(node: Node) -> dict[str, Any]:
    view = node.describe()
    return {"groups": view.groups, "parkedJoins": view.parked_joins, "parkedSyncs": view.parked_syncs}
