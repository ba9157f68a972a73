"""Random scenarios of consumers that transform in transactions, while everything around them fails."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

FAULTS_MS: Final = 6_000
"""Records are written, and faults begin, within this time."""


def transforming_scenario(seed: int) -> dict[str, Any]:
    """A few consumers with short timeouts, a reader of what they commit, and faults that are over before the end.

    Requests are delayed past their connections only with transaction.version 2: before, that breaks transactions on
    Kafka as well (KIP-890).
    """
    random = Random(f"transactions/{seed}")
    version = random.choice((2, 2, 2, 1, 0))
    nodes = random.randint(2, 3)
    consumers = random.randint(1, 3)
    group = _random_group(random, consumers)
    events = [_random_event(random, consumers, nodes, version) for _ in range(random.randint(1, 7))]
    events.sort(key=lambda event: int(event["at"].removesuffix("ms")))
    read, rate, written = random.randint(1, 3), random.choice((1, 3)), random.randint(1, 3)
    # Two records of one are the bookings of a transfer, in two partitions.
    group["transform"]["outputs"] = Random(f"outputs/{seed}").randint(1, min(2, written))
    if not group["transform"]["records"]:
        # Longer than its timeout no transaction comes to its end; Kafka Streams refuses such settings.
        intervals = (0, "300ms") if group["transform"]["transaction_timeout"] == "2s" else (0, "300ms", "1s", "4s")
        group["transform"]["commit_interval"] = Random(f"interval/{seed}").choice(intervals)
    return {
        "horizon": "150000ms",
        "seed": seed,
        "topics": {
            "t": {
                "partitions": read,
                "records_per_second": rate,
                "until": f"{FAULTS_MS}ms",
            },
            "out": {"partitions": written},
        },
        "groups": {"app": group},
        "readers": {
            "ledger": {
                "topics": ["out"],
                "isolation": "read_committed",
                "request_timeout": "3s",
                "end_offsets": "3s",
            }
        },
        "coordinator": {
            "nodes": nodes,
            "settings": {
                "group.initial.rebalance.delay.ms": 0,
                "emulator.transaction.version": version,
                "emulator.transaction.marker.delay.ms": random.choice((0, 0, 50, 400)),
            },
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": events,
    }


def _random_group(random: Random, consumers: int) -> dict[str, Any]:
    records = random.choice((0, 0, 1, 4))
    request_timeout = random.choice(("700ms", "2s"))
    return {
        "topics": ["t"],
        "consumers": consumers,
        "assignor": random.choice(("range", "cooperative-sticky")),
        "commit": "transaction",
        "processing": random.choice(("2ms", "20ms", "300ms/poll", "1s/poll")),
        "session_timeout": "6s",
        "heartbeat_interval": "2s",
        "max_poll_interval": "12s",
        # A batch must not take longer than max.poll.interval, or a consumer never gets anywhere, as in Kafka.
        "max_poll_records": 2 * records or 500,
        "request_timeout": "8s",
        "poll": "1s",
        "revive": random.choice(("100ms", "2s")),
        "start": {"every": random.choice((0, "10ms", "3s"))},
        "transform": {
            "to": "out",
            "keys": random.choice((0, 0, 5)),
            "records": records,
            "aborts": random.choice((0.0, 0.0, 0.2)),
            "transactional_id": random.choice(("process", "process", "partition")),
            "transaction_timeout": random.choice(("2s", "8s", "60s")),
            "max_block": random.choice(("3s", "60s")),
            "linger": random.choice(("0ms", "5ms", "100ms")),
            "batch_size": random.choice((150, 16_384)),
            "request_timeout": request_timeout,
            "delivery_timeout": random.choice(("3s", "10s", "60s")),
        },
    }


def _random_event(random: Random, consumers: int, nodes: int, version: int) -> dict[str, Any]:
    who = f"app-{random.randint(1, consumers)}"
    length = random.choice(("200ms", "2s", "7s"))
    topic = random.choice(("out", "__transaction_state"))
    requests = ("EndTxn", "EndTxn", "Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit")
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "crash": lambda: {"who": who, "down": random.choice(("50ms", "3s"))},
        "stop": lambda: {"who": who, "down": "1s"},
        "pause": lambda: {"who": random.choice((who, who, f"node-{random.randint(1, nodes)}")), "for": length},
        "stuck": lambda: {"who": who, "for": length},
        "cut": lambda: {"who": who, "for": length},
        "reset": lambda: {"who": who},
        "loss": lambda: {"requests": random.choice((0.0, 0.1)), "answers": random.choice((0.05, 0.3)), "for": "5s"},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "3s")), "for": "5s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
        "failover": lambda: {"group": "app", "down": random.choice((0, "2s")), "zombie": random.choice((0, "3s"))},
        "move": lambda: {"topic": topic, "zombie": random.choice((0, "200ms", "3s"))},
        "restart": lambda: {"nodes": [f"node-{random.randint(1, nodes)}"], "down": random.choice(("500ms", "3s"))},
        "duplicate": lambda: {"who": who, "for": "5s"},
    }
    weights = {"crash": 3, "pause": 3, "loss": 2, "move": 4, "restart": 2}
    if version >= 2:
        kinds["delay"] = lambda: {"who": who, "request": random.choice(requests), "for": length}
        weights["delay"] = 3
    kind = random.choices(list(kinds), [weights.get(name, 1) for name in kinds])[0]
    return {"at": f"{random.randint(1_000, FAULTS_MS)}ms", kind: kinds[kind]()}
