"""What a coordinator may write to one partition, drawn at random, and what another one makes of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.node import Node
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.keyed import Record
from tests.coordinator.core.driver import Driver
from tests.coordinator.storage.helpers import gone, group, marker, offset

GROUPS = ("a", "b")
PARTITIONS = range(3)
PRODUCERS = (7, 8)


def history(dice: random.Random, steps: int) -> list[Record]:
    """Commits, transactions, deletions and generations, as a coordinator would order them."""
    records: list[Record] = []
    known: dict[str, list[int]] = {name: [] for name in GROUPS}
    generation = 0
    for number in range(steps):
        name, partition, producer = dice.choice(GROUPS), dice.choice(PARTITIONS), dice.choice(PRODUCERS)
        what = dice.choice(("commit", "commit", "transaction", "transaction", "end", "delete", "group", "bury"))
        if what in ("commit", "transaction"):
            records.append(offset(number, name, partition, producer if what == "transaction" else -1))
            known[name] = sorted({*known[name], partition})
        elif what == "end":
            records.append(marker(producer, dice.random() < 0.6))
        elif what == "delete" and partition in known[name]:
            records.append(gone(partition, name))
            known[name].remove(partition)
        elif what == "group":
            generation += 1
            records.append(group(generation, name, members=dice.randrange(3)))
        elif what == "bury" and dice.random() < 0.5:
            records += [gone(each, name) for each in known[name]]
            tombstone = group(0, name)
            records.append(replace(tombstone, value=None))
            known[name] = []
    return records


def replayed(records: Sequence[Record]) -> dict[str, object]:
    """What a real node knows after it has read this: groups, offsets, and what transactions hold back."""
    driver = Driver(Node(Settings.model_validate({"offsets.topic.num.partitions": 1}), lambda: "id"), now=0)
    driver.log.extend(records)
    driver.elect(offsets_partition(0))
    shard = driver.shard()
    found: dict[str, object] = {}
    for name in sorted(shard.groups):
        each = shard.classic_group(name)
        assert each is not None
        offsets = shard.offsets.of(name)
        pending = {
            producer: {partition: held.value for partition, held in of_producer.items()}
            for producer, of_producer in sorted(offsets.pending.items())
            if of_producer
        }
        if each.protocol_type is not None or offsets.stored or pending:
            stored = sorted(offsets.stored.items())
            found[name] = (each.state, each.generation, list(each.members), each.protocol_type, stored, pending)
    return found
