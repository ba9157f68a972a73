"""Random share groups, while members crash, partitions move, and the nodes that keep their state restart."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC

FAULTS_MS: Final = 9_000
"""Records are written, and faults begin, within this time."""

LOCK_MS: Final = 3_000


def sharing_scenario(seed: int) -> dict[str, Any]:
    """A few share consumers with short locks on a topic of a producer, and faults that are over long before the end."""
    random = Random(f"share/{seed}")
    nodes, consumers = random.randint(1, 3), random.randint(1, 4)
    events = [_random_event(random, consumers, nodes) for _ in range(random.randint(1, 6))]
    events += _two_leaders(Random(f"share/two-leaders/{seed}"), consumers, nodes)
    events.sort(key=lambda event: int(event["at"].removesuffix("ms")))
    return {
        "horizon": "90s",
        "seed": seed,
        "topics": {"t": {"partitions": random.randint(1, 3)}},
        "groups": {"app": _random_group(random, consumers)},
        "producers": {
            "shop": {
                "topics": ["t"],
                "records_per_second": random.choice((3, 10)),
                "until": f"{FAULTS_MS}ms",
                "linger": random.choice(("0ms", "300ms", "2s")),
                "request_timeout": "2s",
                "delivery_timeout": "20s",
                "metadata_max_age": "5s",
            }
        },
        "coordinator": {
            "nodes": nodes,
            "settings": {
                "group.share.record.lock.duration.ms": LOCK_MS,
                "group.share.min.record.lock.duration.ms": 1_000,
                "group.share.session.timeout.ms": 6_000,
                "group.share.min.session.timeout.ms": 6_000,
                "group.share.heartbeat.interval.ms": 1_000,
                "group.share.min.heartbeat.interval.ms": 1_000,
                "group.share.initialize.retry.interval.ms": 3_000,
                "group.share.delivery.count.limit": random.choice((2, 5, 5, 10)),
                "group.share.partition.max.record.locks": random.choice((100, 2_000)),
                "share.coordinator.snapshot.update.records.per.snapshot": random.choice((0, 2, 10, 500)),
                "offsets.topic.num.partitions": random.choice((3, 50)),
            },
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": events,
    }


def _two_leaders(random: Random, consumers: int, nodes: int) -> list[dict[str, Any]]:
    """Let partitions have two leaders for seconds, each with members: some start anew, and find the later one."""
    if nodes == 1 or consumers == 1 or random.random() < 0.5:
        return []
    at = random.randint(1_000, FAULTS_MS - 3_000)
    anew = random.sample(range(1, consumers + 1), random.randint(1, consumers - 1))
    events: list[dict[str, Any]] = [{"at": f"{at}ms", "move": {"topic": "t", "zombie": random.choice(("4s", "10s"))}}]
    for number in anew:
        event = {"who": f"app-{number}", "down": "50ms"}
        events.append({"at": f"{at + random.randint(50, 2_000)}ms", random.choice(("crash", "stop")): event})
    return events


def _random_group(random: Random, consumers: int) -> dict[str, Any]:
    explicit = random.random() < 0.6
    records = random.choice((1, 5, 500))
    # Handlers are shorter than locks, or no record gets anywhere; hanging ones are among the faults.
    processing = random.choice(
        ("1ms", "20ms", "200ms/poll") if records == 1 else ("1ms", "20ms", "300ms/poll", "1s/poll")
    )
    share: dict[str, Any] = {"acquire": random.choice(("batch_optimized", "record_limit"))}
    if explicit:
        share |= {"acknowledge": "explicit", "release": random.choice((0, 0.1)), "reject": random.choice((0, 0.05))}
        share["renew"] = random.choice((0, 0, "1s"))
    return {
        "protocol": "share",
        "topics": ["t"],
        "consumers": consumers,
        "share": share,
        "commit": random.choice(("auto", "after")),
        "processing": processing,
        "max_poll_records": records,
        "request_timeout": random.choice(("2s", "8s")),
        "metadata_max_age": "5s",
        "poll": "500ms",
        "revive": "500ms",
        "start": {"every": random.choice((0, "10ms", "2s"))},
    }


def _random_event(random: Random, consumers: int, nodes: int) -> dict[str, Any]:
    who = f"app-{random.randint(1, consumers)}"
    length = random.choice(("200ms", "2s", "5s"))
    node = f"node-{random.randint(1, nodes)}"
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "crash": lambda: {"who": who, "down": random.choice(("50ms", "3s"))},
        "stop": lambda: {"who": who, "down": "1s"},
        "pause": lambda: {"who": random.choice((who, who, node)), "for": length},
        "stuck": lambda: {"who": who, "for": length},
        "cut": lambda: {"who": who, "for": length},
        "reset": lambda: {"who": who},
        "loss": lambda: {"requests": random.choice((0.0, 0.1)), "answers": random.choice((0.05, 0.3)), "for": "4s"},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "2s")), "for": "4s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
        "failover": lambda: {"group": "app", "down": random.choice((0, "2s")), "zombie": random.choice((0, "2s"))},
        "move": lambda: {
            "topic": random.choice(("t", SHARE_GROUP_STATE_TOPIC)),
            "zombie": random.choice((0, "200ms", "2s")),
        },
        "restart": lambda: {"nodes": [node], "down": random.choice(("500ms", "3s"))},
    }
    weights = {"crash": 3, "pause": 2, "reset": 2, "move": 5, "restart": 3}
    kind = random.choices(list(kinds), [weights.get(name, 1) for name in kinds])[0]
    return {"at": f"{random.randint(1_000, FAULTS_MS)}ms", kind: kinds[kind]()}
