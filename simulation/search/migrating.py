"""Random consumer groups, some of which move to the other protocol and back, while everything around them fails."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from rejoin.simulation.scenario.protocols import CLASSIC_KEYS, CONSUMER_KEYS

FAULTS_MS: Final = 25_000
"""Faults begin within this time."""

ASSIGNORS: Final = ("range", "roundrobin", "cooperative-sticky", "range,cooperative-sticky")
SETTLED_MS: Final = 30_000


def migrating_scenario(seed: int) -> dict[str, Any]:
    """A small group with short timeouts, and a handful of faults that are over before the end.

    The policy of four in five lets groups get where they are going. With ``disabled`` or ``downgrade``, that of every
    fifth, members of the other protocol may have to stay out, as in Kafka.
    """
    random = Random(f"consumer/{seed}")
    nodes = random.choice((1, 2, 3))
    session, max_poll = random.choice(((6_000, 4_000), (6_000, 10_000), (10_000, 5_000)))
    group = _random_group(random, max_poll)
    moments = [random.randint(3_000, FAULTS_MS) for _ in range(random.randint(1, 3))]
    events = [_random_event(random, group, max_poll, moments) for _ in range(random.randint(1, 6))]
    if any("protocol" in event.get("deploy", {}) for event in events) or group["protocol"] == "classic":
        timeouts = {"session_timeout": f"{session}ms", "heartbeat_interval": "1s"}
        group |= {**timeouts, "assignor": random.choice(ASSIGNORS)}
    elif random.random() < 0.25:
        del group["topics"]
        group["regex"] = random.choice(("t", "[tu]", "[t-z].*"))
    events.sort(key=lambda event: int(event["at"].removesuffix("ms")))
    partitions = random.randint(1, 6)
    return {
        "horizon": f"{FAULTS_MS + 20_000 + 2 * max(session, max_poll) + SETTLED_MS}ms",
        "seed": seed,
        "topics": {
            "t": {"partitions": partitions, "records_per_second": random.choice((0, 0.2, 1))},
            "u": {"partitions": random.randint(1, 3), "records_per_second": 0.2},
        },
        "groups": {"app": _without_idle_keys(group, events)},
        "coordinator": {
            "nodes": nodes,
            "settings": {
                "group.initial.rebalance.delay.ms": random.choice((0, 500)),
                "group.consumer.session.timeout.ms": session,
                "group.consumer.heartbeat.interval.ms": random.choice((500, 1_000, 2_000)),
                "group.consumer.assignment.interval.ms": random.choice((0, 0, 1_000)),
                "group.consumer.migration.policy": _restrictive_policy(seed)
                or random.choice(("bidirectional", "bidirectional", "bidirectional", "upgrade", "bidirectional")),
            },
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)", "uniform(300ms,1500ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": _without_idle_growth(events, partitions),
    }


def _restrictive_policy(seed: int) -> str | None:
    """A policy that keeps groups from moving to the consumer protocol, for every fifth seed."""
    return Random(f"policy/{seed}").choice(("disabled", "downgrade")) if seed % 5 == 2 else None


def _random_group(random: Random, max_poll: int) -> dict[str, Any]:
    return {
        "topics": random.choice((["t"], ["t"], ["t", "u"])),
        "consumers": random.randint(1, 4),
        "protocol": random.choice(("consumer", "consumer", "classic")),
        "remote_assignor": random.choice(("uniform", "uniform", "range")),
        "static": random.random() < 0.35,
        "commit": random.choice(("auto", "after", "after-async", "before")),
        "auto_commit_interval": "1s",
        "processing": random.choice(("1ms", "20ms", "200ms/poll")),
        "max_poll_interval": f"{max_poll}ms",
        "metadata_max_age": random.choice(("3s", "20s")),
        "request_timeout": random.choice(("3s", "10s")),
        "max_poll_records": 50,
        "poll": "1s",
        "revoke": random.choice((0, 0, "300ms")),
        "leave": random.random() < 0.8,
        "revive": "2s",
        "start": {"every": random.choice((0, "10ms", "700ms"))},
    }


def _without_idle_keys(group: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """The group without keys of a protocol that no member of it ever uses."""
    used = {group["protocol"], *(event.get("deploy", {}).get("protocol") for event in events)}
    idle = [*(CLASSIC_KEYS if "classic" not in used else ()), *(CONSUMER_KEYS if "consumer" not in used else ())]
    return {key: value for key, value in group.items() if key not in idle}


def _without_idle_growth(events: list[dict[str, Any]], partitions: int) -> list[dict[str, Any]]:
    """Events in order, without those that would grow the topic to fewer partitions than it has by then."""
    left = []
    for event in events:
        if grow := event.get("grow"):
            if grow["to"] <= partitions:
                continue
            partitions = grow["to"]
        left.append(event)
    return left


def _random_event(random: Random, group: dict[str, Any], max_poll: int, moments: list[int]) -> dict[str, Any]:
    who = f"app-{random.randint(1, group['consumers'])}"
    length = f"{random.choice((200, 3_000, 9_000, max_poll + 3_000))}ms"
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "crash": lambda: {"who": who, "down": random.choice(("50ms", "3s", "9s", None))},
        "stop": lambda: {"who": who, "down": random.choice(("50ms", "3s", None))},
        "pause": lambda: {"who": random.choice((who, who, "node-of-app")), "for": length},
        "stuck": lambda: {"who": who, "for": length},
        "cut": lambda: {"who": who, "for": length},
        "reset": lambda: {"who": who},
        "loss": lambda: {"requests": random.choice((0.0, 0.1)), "answers": random.choice((0.05, 0.3)), "for": "6s"},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "4s", "6s")), "for": "5s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
        "failover": lambda: {
            "group": "app",
            "down": random.choice((0, "2s", "8s")),
            "zombie": random.choice((0, "1s", "4s")),
        },
        "scale": lambda: {"group": "app", "to": random.randint(1, 5)},
        "deploy": lambda: {"group": "app", "every": "1500ms", "down": random.choice(("100ms", "2s"))},
        "grow": lambda: {"topic": "t", "to": random.randint(2, 9)},
    }
    if group["static"]:
        kinds["duplicate"] = lambda: {"who": who, "for": random.choice(("4s", "12s"))}
    weights = {"failover": 3, "pause": 2, "stuck": 2, "scale": 3, "deploy": 5, "slow_log": 2, "loss": 2}
    kind = random.choices(list(kinds), [weights.get(name, 1) for name in kinds])[0]
    what = {name: value for name, value in kinds[kind]().items() if value is not None}
    if kind == "deploy":
        what["crash"] = random.random() < 0.3
        if random.random() < 0.75:
            what["protocol"] = random.choice(("classic", "consumer"))
    at = random.choice(moments) + random.choice((0, random.randint(0, 500), random.randint(0, 6_000)))
    return {"at": f"{at}ms", kind: what}
