"""Actions on the records that a share group has in flight: a lock that runs out, and a record that is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.simulation.actors.share import locks
from rejoin.simulation.actors.share.consumer import RecordKey, ShareConsumerActor
from rejoin.simulation.scenario.actions import ExpireLock, RecordOfGroup, ReleaseRecord

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation


def expire_lock(simulation: Simulation, what: ExpireLock) -> None:
    """Let a lock run out, or say that there is none."""
    record = (what.group, what.topic, what.partition, what.offset)
    is_locked = any(locks.expire_lock(node, *record) for node in simulation.cluster.nodes)
    simulation.announce(f"{_named(what)} loses its lock" if is_locked else f"{_named(what)} is not locked")


def release_record(simulation: Simulation, what: ReleaseRecord) -> None:
    """Let the handler that has a record give it back, or say that none has it."""
    key = RecordKey(what.topic, what.partition, what.offset)
    for consumer in simulation.consumers.values():
        if consumer.config.group_id != what.group or not isinstance(consumer, ShareConsumerActor):
            continue
        consumer.catch_up()
        if consumer.release(key):
            simulation.announce(f"{consumer.name} releases {_named(what)}")
            return
    simulation.announce(f"no handler can release {_named(what)}")


def _named(what: RecordOfGroup) -> str:
    return f"record {what.offset} of {what.topic}-{what.partition}"
