"""Lives of groups that move from one protocol to the other while their members consume, in the words of ``lives``.

Members are restarted one by one with ``group.protocol=consumer``, and back. Each life has a topic of its own, to which
records are written in each phase. In ``look`` an admin client describes the group and its offsets.

librdkafka's cooperative leader gives user data with the partitions, so its groups cannot move (``user-data``).
"""

from __future__ import annotations

from typing import Final

from conformance.members.lives import Life

POLICY: Final = "group.consumer.migration.policy"
SESSION: Final = "group.consumer.session.timeout.ms"
PARTITIONS: Final = 12
"""Of each topic: two, three or four members have the same number each."""
CLASSIC: Final = "group.protocol=classic"
CONSUMER: Final = "group.protocol=consumer"


def _restart(name: str, *settings: str) -> tuple[str, ...]:
    """Close a member and start it with other settings, while records come. The place of a static one stays its own."""
    closes = (f"close {name}",) if any("instance" in each for each in settings) else (f"close {name}", "settle")
    return (*closes, " ".join(("start", name, *settings)), "produce TOPIC 2", "settle", "sleep 2", "look")


def _life(
    name: str,
    *steps: str,
    clients: tuple[str, ...] = ("java", "ours", "confluent"),
    commit: str = "auto",
    policy: str = "bidirectional",
    **settings: str,
) -> Life:
    topic = f"more-{{}}-{name}"
    return Life(
        f"move-{name}",
        (f"topic {topic} {PARTITIONS}", f"produce {topic} 5", *(step.replace("TOPIC", topic) for step in steps)),
        topics=topic,
        commit=commit,
        settings={key.replace("_", "."): value for key, value in settings.items()},
        clients=clients,
        broker_settings={POLICY: policy, **({SESSION: "15000"} if "session_timeout_ms" in settings else {})},
    )


_TWO: Final = ("start a", "settle", "start b", "settle", "sleep 2", "look")
_END: Final = ("close b", "settle", "close a", "look")
_STATIC: Final = {name: f"group.instance.id=i{name}" for name in "ab"}

MOVING_LIVES: Final = (
    _life(
        "there-and-back",
        *_TWO, *_restart("a", CONSUMER), *_restart("b", CONSUMER), *_restart("a", CLASSIC), *_restart("b", CLASSIC),
        *_END,
    ),
    _life(
        "static",
        *(f"{step} {_STATIC[step[-1]]}" if step.startswith("start") else step for step in _TWO),
        *_restart("a", CONSUMER, _STATIC["a"]), *_restart("b", CONSUMER, _STATIC["b"]),
        *_restart("a", CLASSIC, _STATIC["a"]), *_restart("b", CLASSIC, _STATIC["b"]),
        "close b", "sleep 16", "settle", "close a", "sleep 16", "look", session_timeout_ms="15000",
    ),
    _life(
        "cooperative",
        *_TWO, *_restart("a", CONSUMER), *_restart("b", CONSUMER), *_restart("a", CLASSIC), *_restart("b", CLASSIC),
        *_END, clients=("java", "ours"), partition_assignment_strategy="cooperative-sticky",
    ),
    _life(
        "user-data",
        *_TWO, "close a", "settle", f"start a {CONSUMER}", "fails a", "look", "close b",
        clients=("confluent",), partition_assignment_strategy="cooperative-sticky",
    ),
    _life(
        "commit-sync",
        *_TWO, *_restart("a", CONSUMER), *_restart("b", CONSUMER), *_restart("a", CLASSIC), *_restart("b", CLASSIC),
        *_END, commit="sync", enable_auto_commit="false",
    ),
    _life(
        "killed",
        "start a", "settle", f"start b {CONSUMER}", "settle", "look", "kill b", "sleep 7", "settle", "look",
        f"start b {CONSUMER}", "settle", "look", "kill a", "sleep 4", "settle", "look", "close b", "look",
    ),
    _life(
        "newcomers",
        "start a", "settle", f"start b {CONSUMER}", "settle", "start c", "settle", f"start d {CONSUMER}", "settle",
        "look", "produce TOPIC 2", "sleep 2", "close a", "settle", "close d", "settle", "close b", "settle", "look",
        "produce TOPIC 2", "sleep 2", "close c", "look",
    ),
    _life(
        "upgrade-only",
        *_TWO, *_restart("a", CONSUMER), *_restart("b", CONSUMER), *_restart("a", CLASSIC), *_restart("b", CLASSIC),
        *_END, policy="upgrade",
    ),
    _life(
        "downgrade-only",
        f"start a {CONSUMER}", "settle", f"start b {CONSUMER}", "settle", "sleep 2", "look",
        *_restart("a", CLASSIC), *_restart("b", CLASSIC), f"start c {CONSUMER}", "fails c", *_END,
        policy="downgrade",
    ),
    _life(
        "disabled",
        "start a", "settle", f"start b {CONSUMER}", "fails b", "look", "close a",
        f"start b {CONSUMER}", "settle", "sleep 2", "start a", "fails a", "look", "close b", "look",
        policy="disabled",
    ),
)  # fmt: skip
