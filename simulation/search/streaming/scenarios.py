"""Random applications of Kafka Streams, while threads crash and lie, topics grow, and coordinators move."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from rejoin.simulation.search.streaming.topologies import OTHER_SOURCE, SHAPES, SOURCE

FAULTS_MS: Final = 20_000
"""Faults begin, and threads move, within this time."""

SESSION_MS: Final = 6_000

_MOVES: Final = {
    "crash": 4,
    "leave": 3,
    "rejoin": 2,
    "lie": 4,
    "own_less": 1,
    "hold": 3,
    "change": 2,
    "offsets": 3,
    "shutdown": 1,
    "cut": 2,
    "pause": 2,
    "grow": 2,
    "standbys": 2,
}
"""Kinds of moves, each with its weight."""


def streaming_scenario(seed: int) -> dict[str, Any]:
    """A few processes with a few threads each, and moves and faults that are over long before the end."""
    random = Random(f"streams/{seed}")
    nodes = random.randint(1, 3)
    shape = random.choice([*SHAPES])
    processes, threads = random.randint(1, 3), random.randint(1, 2)
    is_static = random.random() < 0.3
    moves = [_move(random, processes * threads, is_static) for _ in range(random.randint(2, 10))]
    events = [_event(random, nodes) for _ in range(random.randint(0, 3))]
    partitions = random.randint(1, 4)
    return {
        "horizon": f"{FAULTS_MS + 60_000}ms",
        "seed": seed,
        "topics": {name: {"partitions": partitions, "records_per_second": 0} for name in (SOURCE, OTHER_SOURCE)},
        "groups": {"app": {"topics": [SOURCE], "consumers": 0}},
        "application": {
            "shape": shape,
            "processes": processes,
            "threads": threads,
            "static": is_static,
            "endpoint": random.random() < 0.3,
            "rebalance_timeout_ms": random.choice((4_000, 10_000)),
            "start_every_ms": random.choice((0, 10, 2_500)),
            "moves": sorted(moves, key=lambda each: int(each["at_ms"])),
        },
        "coordinator": {
            "nodes": nodes,
            "settings": {
                "group.streams.session.timeout.ms": SESSION_MS,
                "group.streams.min.session.timeout.ms": SESSION_MS,
                "group.streams.heartbeat.interval.ms": 1_000,
                "group.streams.min.heartbeat.interval.ms": 1_000,
                "group.streams.num.standby.replicas": random.choice((0, 0, 1, 2)),
                "group.streams.num.warmup.replicas": random.choice((0, 2)),
                "group.streams.initial.rebalance.delay.ms": random.choice((0, 0, 500, 3_000)),
                "group.streams.assignment.interval.ms": random.choice((0, 0, 1_000, 3_000)),
                "offsets.topic.num.partitions": random.choice((3, 50)),
            },
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": sorted(events, key=lambda event: int(event["at"].removesuffix("ms"))),
    }


def _move(random: Random, threads: int, is_static: bool) -> dict[str, Any]:
    weights = _MOVES | ({"intrude": 2} if is_static else {})
    kind = random.choices([*weights], [*weights.values()])[0]
    move: dict[str, Any] = {
        "at_ms": random.randint(500, FAULTS_MS),
        "kind": kind,
        "thread": random.randint(1, threads),
    }
    match kind:
        case "crash" | "leave":
            move["down_ms"] = random.choice((50, 2_000, 7_500))
            move["new_process"] = random.random() < 0.4
            move["keeps_id"] = random.random() < 0.4
            move["for_good"] = is_static and random.random() < 0.3
        case "lie":
            move["by"] = random.choice((-2, -1, 1, 5))
        case "cut" | "pause" | "hold":
            move["for_ms"] = random.choice((500, 3_000, 9_000))
        case "standbys":
            move["replicas"] = random.randint(0, 2)
    return move


def _event(random: Random, nodes: int) -> dict[str, Any]:
    node = f"node-{random.randint(1, nodes)}"
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "failover": lambda: {"group": "app", "down": random.choice((0, "2s")), "zombie": random.choice((0, "2s"))},
        "restart": lambda: {"nodes": [node], "down": random.choice(("500ms", "3s"))},
        "pause": lambda: {"who": node, "for": random.choice(("200ms", "2s", "5s"))},
        "loss": lambda: {"requests": random.choice((0.0, 0.1)), "answers": random.choice((0.05, 0.3)), "for": "4s"},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "2s")), "for": "4s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
    }
    kind = random.choices([*kinds], [4, 3, 1, 2, 2])[0]
    return {"at": f"{random.randint(1_000, FAULTS_MS)}ms", kind: kinds[kind]()}
