"""Settings of Kafka's clients that are looked for among the coordinator's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.protocol.validation import nearest

_SESSION_LIMITS: Final = "; it allows what group.min.session.timeout.ms and group.max.session.timeout.ms say"
OF_CLIENTS: Final = {
    "session.timeout.ms": _SESSION_LIMITS,
    "heartbeat.interval.ms": "",
    "max.poll.interval.ms": "",
    "max.poll.records": "",
    "auto.offset.reset": "",
    "enable.auto.commit": "",
    "isolation.level": "",
    "group.instance.id": "",
    "partition.assignment.strategy": "; for group.protocol=consumer it has group.consumer.assignors",
    "transaction.timeout.ms": "; it allows what transaction.max.timeout.ms says",
}
"""Settings that are looked for here and belong to clients, each with what the coordinator has instead."""


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Error text for a setting that the coordinator does not have."""
    dotted = name.replace("_", ".")
    if dotted in OF_CLIENTS:
        return f"{name} is a setting of clients, not of the coordinator{OF_CLIENTS[dotted]}"
    return f"there is no setting {name}{nearest(name, known) or '; docs/settings.md has all'}"
