"""Replicas that `rejoin reassign --generate` proposes: spread over brokers, and over their racks.

Leaders go round robin from a random broker on. Followers stand at a distance from their leader that grows with each
round, so that a broker's followers are spread over the others.

Differs: Kafka's tool leaves this to the controller's StripedReplicaPlacer; both begin at random.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final

from rejoin.client.commands.tools.connecting import ToolRefusal

_CORDONED: Final = "or have all their log directories cordoned."


def spread(racks: Mapping[int, str | None], partitions: int, factor: int, draw: random.Random) -> list[tuple[int, ...]]:
    """Replicas for each partition, on brokers that are given with their racks. Raises ToolRefusal."""
    if not racks:
        raise ToolRefusal(f"All brokers are currently fenced, {_CORDONED}")
    if factor > len(racks):
        text = f"The target replication factor of {factor} cannot be reached because only {len(racks)} broker(s) are"
        raise ToolRefusal(f"{text} registered or some brokers {_CORDONED.removeprefix('or ')}")
    order = _rack_after_rack(racks)
    start = draw.randrange(len(order))
    # One more with each round over the brokers.
    distance = draw.randrange(len(order))
    found = []
    for index in range(partitions):
        if index and index % len(order) == 0:
            distance += 1
        leader = order[(index + start) % len(order)]
        found.append(_replicas(leader, _followers(order, (index + start) % len(order), distance, racks), factor, racks))
    return found


def _rack_after_rack(racks: Mapping[int, str | None]) -> list[int]:
    """Brokers by id, one of each rack in turn. Without racks by id alone."""
    by_rack: dict[str | None, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    columns = zip_longest(*(by_rack[rack] for rack in sorted(by_rack, key=lambda rack: rack or "")))
    return [broker for broker in chain.from_iterable(columns) if broker is not None]


def _followers(order: Sequence[int], leader_at: int, distance: int, racks: Mapping[int, str | None]) -> list[int]:
    """All other brokers, in the order in which they are tried. Brokers of other racks are neighbours in ``order``."""
    others = len(order) - 1
    first = distance * len(set(racks.values())) if any(racks.values()) else distance
    return [order[(leader_at + 1 + (first + step) % others) % len(order)] for step in range(others)]


def _replicas(leader: int, followers: Sequence[int], factor: int, racks: Mapping[int, str | None]) -> tuple[int, ...]:
    """The leader, then followers: as long as there are racks without a replica, those come first."""
    chosen = [leader]
    if any(racks.values()):
        used = {racks[leader]}
        for broker in followers:
            if len(chosen) < factor and racks[broker] not in used:
                used.add(racks[broker])
                chosen.append(broker)
    chosen += [broker for broker in followers if broker not in chosen][: factor - len(chosen)]
    return tuple(chosen)
