"""Locks of records on simulated nodes."""

from __future__ import annotations

from rejoin.coordinator.core.inputs import LockExpired
from rejoin.simulation.actors.node import NodeActor


def expire_lock(node: NodeActor, group_id: str, topic: str, partition: int, offset: int) -> bool:
    """Let the lock of a record run out now; False where this node has none."""
    if node.core is None:
        return False
    state = node.core.share_state(group_id, topic, partition, node.world.now)
    if state is None or not any(
        run.first_offset <= offset <= run.last_offset and run.lock_ms is not None for run in state.records
    ):
        return False
    node.hand_in(LockExpired(group_id, topic, partition, offset))
    return True
