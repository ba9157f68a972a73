"""The lives of groups of the consumer protocol, in the words of ``lives``."""

from __future__ import annotations

from functools import partial
from typing import Final

from conformance.members.lives import Life

CONSUMER_GROUPS: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
}
"""Settings of the broker: heartbeats come often, and sessions are short.

The topic has a dozen partitions: one to four members have the same number each, whatever the order of their ids.
"""


DIFFERENCES: Final = {
    "consumer-close-without-leaving": "Told to remain in the group, the Java client of 4.4 leaves with epoch -1 all "
    "the same. Ours says nothing, as the Java client's documentation has it; its session ends.",
    "consumer-regex": "With an expression for the broker, the Java client asks for topics by id once it is given some, "
    "and first confirms what it can resolve. Ours knows all topics.",
    "consumer-slow-handler": "The Java client still commits by its timer when it has left because it did not poll, "
    "with epoch -1, which is refused. Ours does not.",
}
"""Lives in which the clients differ, each with its reason."""


def _many(members: str) -> list[str]:
    return [step for name in members for step in (f"start {name}", "settle")]


_life: Final = partial(Life, topics="dozen", protocol="consumer")
_COMMITS: Final = ("start a", "settle", "sleep 2", "close a")

CONSUMER_LIVES: Final = (
    _life(
        "consumer-members",
        (*_many("abcd"), "kill d", "sleep 7", "settle", "close c", "settle", "close b", "settle", "close a"),
    ),
    _life(
        "consumer-static",
        (
            "start a group.instance.id=ia", "settle", "start b group.instance.id=ib", "settle",
            "close b", "start b group.instance.id=ib", "settle",
            "close b", "sleep 8", "settle", "start b group.instance.id=ib", "settle", "close b", "settle", "close a",
            "sleep 8",
        ),
    ),
    _life(
        "consumer-regex",
        ("start a", "settle", "topic more-{} 2", "sleep 13", "settle", "close a"),
        topics="^more-{}.*|dozen",
    ),
    _life(
        "consumer-growth",
        (
            "topic more-{}-growing 2", *_many("ab"), "grow more-{}-growing 4", "sleep 3", "settle",
            "close b", "settle", "close a",
        ),
        topics="more-{}-growing",
    ),
    _life(
        "consumer-slow-handler",
        (*_many("ab"), "hang b 6000", "sleep 5", "settle", "sleep 3", "settle", "close b", "settle", "close a"),
        settings={"max.poll.interval.ms": "3000"},
    ),
    _life(
        "consumer-close-without-leaving",
        (*_many("ab"), "close b", "sleep 8", "settle", "close a", "sleep 8"),
        settings={"internal.leave.group.on.close": "false"},
    ),
    _life(
        "consumer-static-kill",
        (
            "start a group.instance.id=ia", "settle", "start b group.instance.id=ib", "settle",
            "kill b", "start b group.instance.id=ib", "fails b", "sleep 8", "settle",
            "start b group.instance.id=ib", "settle", "close b", "settle", "close a", "sleep 8",
        ),
    ),
    _life(
        "consumer-broker-restart",
        (*_many("ab"), "restart", "sleep 8", "settle", "close b", "settle", "close a"),
        settings={"metadata.max.age.ms": "300000"},
    ),
    _life(
        "consumer-coordinator-moves",
        (*_many("ab"), "move 2", "sleep 4", "settle", "move 1", "sleep 4", "settle", "close b", "settle", "close a"),
        brokers=2,
    ),
    _life("consumer-commit-auto", _COMMITS),
    _life("consumer-commit-sync", _COMMITS, commit="sync", settings={"enable.auto.commit": "false"}),
    _life("consumer-commit-async", _COMMITS, commit="async", settings={"enable.auto.commit": "false"}),
)  # fmt: skip
