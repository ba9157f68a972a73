"""Random scenarios of a search as data, each a function of its seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias

from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.durations import parse_duration
from rejoin.simulation.search.migrating import migrating_scenario
from rejoin.simulation.search.sharing import sharing_scenario
from rejoin.simulation.search.streaming.scenarios import streaming_scenario
from rejoin.simulation.search.transforming import transforming_scenario

Schedule: TypeAlias = Callable[[int], dict[str, Any]]

FAULTS_MS: Final = 90_000
"""Faults begin within this time."""

ASSIGNORS: Final = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "range,cooperative-sticky",
    "range,roundrobin",
    "sticky,range",
)
TIMEOUTS_MS: Final = (
    (6_000, 10_000),
    (6_000, 30_000),
    (8_000, 20_000),
    (10_000, 5_000),
    (20_000, 5_000),
    (20_000, 8_000),
)
"""Pairs of session timeout and max.poll.interval, either of which may be the shorter one."""


def random_scenario(seed: int) -> dict[str, Any]:
    """A scenario as data: small groups, short timeouts, and a handful of faults that are over before the end."""
    random = Random(f"search/{seed}")
    nodes = random.choice((1, 1, 2, 3))
    session, max_poll = random.choice(TIMEOUTS_MS)
    groups: dict[str, Any] = {}
    for group_id in ("app", "etl")[: random.choice((1, 1, 1, 2))]:
        groups[group_id] = {
            "topics": ["t"] if random.random() < 0.7 else ["t", "u"],
            "consumers": random.randint(1, 4),
            "assignor": random.choice(ASSIGNORS),
            "static": random.random() < 0.35,
            "commit": random.choice(("auto", "after", "after-async", "before")),
            "processing": random.choice(("1ms", "20ms", "200ms/poll")),
            "session_timeout": f"{session}ms",
            "heartbeat_interval": f"{random.choice((1_000, 2_000, 3_000))}ms",
            "max_poll_interval": f"{max_poll}ms",
            "metadata_max_age": f"{random.choice((5_000, 20_000, 60_000))}ms",
            "request_timeout": f"{random.choice((3_000, 10_000, 30_000))}ms",
            # A batch must not take longer than max.poll.interval, or a consumer never gets anywhere, as in Kafka.
            "max_poll_records": 50,
            "poll": "1s",
            "revoke": random.choice((0, 0, 0, "300ms")),
            "leave": random.random() < 0.8,
            "revive": "5s",
            "start": {"every": random.choice((0, "10ms", "700ms", "4s"))},
        }
    # Faults that meet one another find more than faults that come one by one.
    moments = [random.randint(0, FAULTS_MS) for _ in range(random.randint(1, 3))]
    events = [_random_event(random, groups, nodes, max_poll, moments) for _ in range(random.randint(1, 8))]
    events.sort(key=lambda event: int(str(event["at"]).removesuffix("ms")))
    settle = 2 * max(session, max_poll) + 75_000
    data: dict[str, Any] = {
        "horizon": f"{max((_over(event) for event in events), default=0) + settle}ms",
        "seed": seed,
        "topics": {
            "t": {"partitions": random.randint(1, 6), "records_per_second": random.choice((0, 0.2, 2))},
            "u": {"partitions": random.randint(1, 3), "records_per_second": 0.5},
        },
        "groups": groups,
        "coordinator": {
            "nodes": nodes,
            "settings": {"group.initial.rebalance.delay.ms": random.choice((0, 500, 3_000))},
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)", "uniform(500ms,2500ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": events,
    }
    data["events"] = _without_idle_growth(events, {"t": data["topics"]["t"]["partitions"]})
    return data


def _without_idle_growth(events: list[dict[str, Any]], partitions: dict[str, int]) -> list[dict[str, Any]]:
    """Events in order, without those that would grow a topic to fewer partitions than it has by then."""
    left = []
    for event in events:
        if grow := event.get("grow"):
            if grow["to"] <= partitions[grow["topic"]]:
                continue
            partitions[grow["topic"]] = grow["to"]
        left.append(event)
    return left


def _random_event(
    random: Random, groups: dict[str, Any], nodes: int, max_poll: Millis, moments: list[Millis]
) -> dict[str, Any]:
    group_id = random.choice(list(groups))
    size = groups[group_id]["consumers"]
    who = f"{group_id}-{random.randint(1, size)}"
    length = f"{random.choice((200, 3_000, 9_000, 20_000, max_poll + 5_000))}ms"
    topics = random.choice((["t"], ["t", "u"]))
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "crash": lambda: {"who": who, "down": random.choice(("50ms", "3s", "15s", None))},
        "stop": lambda: {"who": who, "down": random.choice(("50ms", "3s", "15s", None))},
        "pause": lambda: {"who": random.choice((who, who, "node-1", f"node-of-{group_id}")), "for": length},
        "stuck": lambda: {"who": who, "for": length},
        "cut": lambda: {"who": who, "for": length},
        "reset": lambda: {"who": who},
        "loss": lambda: {"requests": random.choice((0.0, 0.05)), "answers": random.choice((0.02, 0.3)), "for": "8s"},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "4s", "7s")), "for": "6s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
        "failover": lambda: {
            "group": group_id,
            "down": random.choice((0, "2s", "12s")),
            "zombie": random.choice((0, "1s", "6s")),
        },
        "scale": lambda: {"group": group_id, "to": random.randint(0, 5)},
        "deploy": lambda: {
            "group": group_id,
            "every": "5s",
            "down": random.choice(("100ms", "4s")),
            "crash": random.random() < 0.4,
        },
        "grow": lambda: {"topic": "t", "to": random.randint(2, 9)},
        "subscribe": lambda: {"who": who, "topics": topics},
    }
    if groups[group_id]["static"]:
        kinds["duplicate"] = lambda: {"who": who, "for": random.choice(("4s", "20s"))}
    weights = {
        "failover": 3 if nodes > 1 else 2,
        "pause": 3,
        "scale": 3,
        "deploy": 2,
        "loss": 2,
        "reset": 3,
        "duplicate": 3,
    }
    kind = random.choices(list(kinds), [weights.get(name, 1) for name in kinds])[0]
    what = {name: value for name, value in kinds[kind]().items() if value is not None}
    at = random.choice(moments) + random.choice((0, random.randint(0, 500), random.randint(0, 6_000)))
    return {"at": f"{at}ms", kind: what}


def _over(event: dict[str, Any]) -> Millis:
    """When what an event has begun is over, at the latest."""
    at = int(str(event["at"]).removesuffix("ms"))
    kind = next(name for name in event if name != "at")
    lasts = {"deploy": 45_000, "crash": 15_000, "stop": 15_000, "failover": 20_000, "restart": 20_000, "outage": 10_000}
    length = str(event[kind].get("for", "0ms"))
    unit = 1 if length.endswith("ms") else 1_000
    return at + lasts.get(kind, 0) + int(length.removesuffix("ms").removesuffix("s")) * unit


def failover_scenario(seed: int) -> dict[str, Any]:
    """A random scenario whose nodes lose what they lead, over and over, and read a slow log anew.

    They are killed one by one or all at once, resign, are paused for longer than their leases last, or cannot
    reach the store of leases and logs, alone or together.
    """
    data = random_scenario(seed)
    random = Random(f"failovers/{seed}")
    coordinator = data["coordinator"]
    lease = random.choice((2_000, 4_000, 6_000))
    coordinator["nodes"] = nodes = random.choice((2, 3))
    coordinator["lease"] = f"{lease}ms"
    coordinator["gossip"] = random.choice(("20ms", "500ms"))
    coordinator["settings"]["offsets.topic.num.partitions"] = random.choice((1, 3, 8))
    coordinator["log_latency"] = random.choice(("exp(100ms)", "uniform(100ms,1500ms)", "uniform(500ms,2500ms)"))
    for event in data["events"]:
        event.get("failover", {}).pop("zombie", None)
    groups = list(data["groups"])
    moments = [random.randint(0, FAULTS_MS) for _ in range(random.randint(1, 3))]
    for _ in range(random.randint(2, 7)):
        group_id = random.choice(groups)
        at = random.choice(moments) + random.choice((0, random.randint(0, 500), random.randint(0, 15_000)))
        who = random.choice((f"node-of-{group_id}", f"node-of-{group_id}", f"node-{random.randint(1, nodes)}"))
        too_long = f"{lease + random.choice((-lease // 2, 100, 1_000, 8_000))}ms"
        action: dict[str, Any] = random.choice(
            (
                {"pause": {"who": who, "for": too_long}},
                {"failover": {"group": group_id}},
                {"failover": {"group": group_id, "down": random.choice(("500ms", "5s"))}},
                {"restart": {"down": random.choice(("500ms", "5s"))}},
                {"outage": {"nodes": [who], "for": too_long}},
                {"outage": {"for": too_long}},
            )
        )
        data["events"].append({"at": f"{at}ms", **action})
    data["events"].sort(key=lambda event: int(str(event["at"]).removesuffix("ms")))
    group = next(iter(data["groups"].values()))
    longest = max(parse_duration(group["session_timeout"]), parse_duration(group["max_poll_interval"]))
    data["horizon"] = f"{max(_over(event) for event in data['events']) + 2 * longest + 75_000}ms"
    return data


def producing_scenario(seed: int) -> dict[str, Any]:
    """Idempotent producers while connections break, leaders move and logs are slow or fail; no node loses its memory.

    A broker that restarts remembers only the last batch of each producer, so what it repeats then is Kafka's own.
    """
    random = Random(f"producers/{seed}")
    group = {**random_scenario(seed)["groups"]["app"], "topics": ["t"], "consumers": 1}
    request_timeout = random.choice((500, 2_000, 10_000))
    producers = {
        "topics": ["p"],
        "producers": random.randint(1, 2),
        "records_per_second": random.choice((5, 20)),
        "until": f"{FAULTS_MS // 2}ms",
        "keys": random.choice((0, 0, 7)),
        "max_in_flight": random.randint(1, 5),
        "batch_size": random.choice((100, 300, 16_384)),
        "linger": random.choice(("0ms", "5ms", "200ms")),
        "request_timeout": f"{request_timeout}ms",
        "delivery_timeout": random.choice((f"{2 * request_timeout}ms", "30s", "60s")),
        "retry_backoff": random.choice(("20ms", "100ms")),
        "metadata_max_age": random.choice(("5s", "60s")),
    }
    events = [_producing_event(random) for _ in range(random.randint(1, 8))]
    events.sort(key=lambda event: int(event["at"].removesuffix("ms")))
    return {
        "horizon": f"{FAULTS_MS + 90_000}ms",
        "seed": seed,
        "topics": {
            "t": {"partitions": 1, "records_per_second": 0},
            "p": {"partitions": random.randint(1, 3)},
        },
        "groups": {"app": group},
        "producers": {"shop": producers},
        "coordinator": {
            "nodes": random.randint(2, 3),
            "log_latency": random.choice(("exp(2ms)", "exp(40ms)", "uniform(1ms,400ms)")),
        },
        "network": {"latency": random.choice(("exp(2ms)", "exp(30ms)", "uniform(1ms,200ms)"))},
        "events": events,
    }


def _producing_event(random: Random) -> dict[str, Any]:
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "move": lambda: {"topic": "p", "zombie": random.choice((0, "1s", "6s"))},
        "loss": lambda: {
            "requests": random.choice((0.0, 0.1, 0.3)),
            "answers": random.choice((0.1, 0.3, 0.6)),
            "for": random.choice(("2s", "10s", "30s")),
        },
        "cut": lambda: {"who": "shop-1", "for": random.choice(("200ms", "3s", "12s"))},
        "slow_log": lambda: random.choice(
            (
                {"slower": random.choice(("500ms", "4s")), "for": "6s"},
                {"error": random.choice(("NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR")), "for": "3s"},
            )
        ),
    }
    kind = random.choices(list(kinds), [4, 4, 2, 2])[0]
    return {"at": f"{random.randint(0, FAULTS_MS // 2)}ms", kind: kinds[kind]()}


SCHEDULES: Final[dict[str, Schedule]] = {
    "faults": random_scenario,
    "failovers": failover_scenario,
    "producers": producing_scenario,
    "transactions": transforming_scenario,
    "consumer": migrating_scenario,
    "share": sharing_scenario,
    "streams": streaming_scenario,
}
"""Kinds of scenarios that a search may play, by name."""
