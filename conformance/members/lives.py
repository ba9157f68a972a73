"""The lives of classic groups: what is done to which member, and when. Each client plays each once, in its own group.

A step is a verb with its arguments: ``start NAME [setting=value ...]``, ``close NAME``, ``kill NAME``, ``fails NAME``
(the member ends by itself), ``hang NAME MS``, ``settle`` (until no member has joined or left for a while), ``sleep
SECONDS``, ``topic NAME PARTITIONS``, ``grow NAME PARTITIONS``, ``produce NAME RECORDS`` (to each partition),
``restart`` (the broker), ``move BROKER`` (the group's coordinator), ``look`` (describe the group and its offsets).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SETTINGS: Final = {
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
    "metadata.max.age.ms": "1500",
    "auto.commit.interval.ms": "1000",
    "auto.offset.reset": "earliest",
}

TOPICS: Final = {"orders": 6, "dozen": 12}
RECORDS: Final = 5
"""In each partition of the topics that are there from the start."""


@dataclass(frozen=True, slots=True)
class Life:
    """One life. ``commit`` is auto, sync, async or none.

    ``topics`` are names, a pattern of the client's after ``~``, or an expression for the broker after ``^``.
    """

    name: str
    steps: tuple[str, ...]
    topics: str = "orders"
    commit: str = "auto"
    settings: dict[str, str] = field(default_factory=dict)
    brokers: int = 1
    protocol: str = "classic"
    clients: tuple[str, ...] = ("java", "ours")
    broker_settings: dict[str, str] = field(default_factory=dict)


def _many(members: str) -> list[str]:
    return [step for name in members for step in (f"start {name}", "settle")]


_COMMITS: Final = ("start a", "settle", "sleep 2", "close a")

LIVES: Final = (
    Life(
        "four-members",
        (*_many("abcd"), "kill d", "sleep 3", "settle", "close c", "settle", "close b", "settle", "close a"),
    ),
    Life(
        "static-restart",
        (
            "start a group.instance.id=ia", "settle", "start b group.instance.id=ib", "settle",
            "kill b", "start b group.instance.id=ib", "sleep 2", "settle",
            "kill b", "sleep 11", "settle", "start b group.instance.id=ib", "settle", "close b", "settle", "close a",
            "sleep 11",
        ),
        settings={"session.timeout.ms": "8000"},
    ),
    Life(
        "cooperative",
        (*_many("abc"), "close c", "settle", "close b", "settle", "close a"),
        settings={"partition.assignment.strategy": "cooperative-sticky"},
    ),
    Life(
        "pattern",
        ("start a", "settle", "topic more-{} 2", "sleep 4", "settle", "grow more-{} 3", "sleep 4", "settle", "close a"),
        topics="~more-{}.*|orders",
    ),
    Life(
        "slow-handler",
        (*_many("ab"), "hang b 6000", "sleep 5", "settle", "sleep 3", "settle", "close b", "settle", "close a"),
        settings={"max.poll.interval.ms": "3000"},
    ),
    Life(
        "broker-restart",
        (*_many("ab"), "restart", "sleep 8", "settle", "close b", "settle", "close a"),
        settings={"metadata.max.age.ms": "300000"},
    ),
    Life(
        "coordinator-moves",
        (*_many("ab"), "move 2", "sleep 4", "settle", "move 1", "sleep 4", "settle", "close b", "settle", "close a"),
        brokers=2,
    ),
    Life(
        "close-without-leaving",
        (*_many("ab"), "close b", "sleep 5", "settle", "close a", "sleep 6"),
        settings={"internal.leave.group.on.close": "false"},
    ),
    Life("commit-auto", _COMMITS),
    Life("commit-sync", _COMMITS, commit="sync", settings={"enable.auto.commit": "false"}),
    Life("commit-async", _COMMITS, commit="async", settings={"enable.auto.commit": "false"}),
)  # fmt: skip
