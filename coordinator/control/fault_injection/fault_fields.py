"""The fields of a fault rule, as Python code gives them: one value may stand for a list, and a name for an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from rejoin.coordinator.control.fault_injection.fault_rules import When, WrongValue

Listed: TypeAlias = str | Sequence[str]
Numbers: TypeAlias = int | Sequence[int]


class FaultFields(TypedDict, total=False):
    """Keyword arguments that make a ``FaultRule``; None is a field that is not given."""

    keys: Listed | Numbers | None
    group: Listed | None
    member: Listed | None
    instance: Listed | None
    client_id: Listed | None
    node: Numbers | None
    transactional_id: Listed | None
    topic: Listed | None
    partitions: Numbers | None
    version: Numbers | None
    count: int
    when: When | None
    error: str | int | None
    latency_ms: float | Mapping[str, object] | None
    pause: bool
    seed: int
    cut_after_bytes: int | None
    reset: bool
    bytes_per_second: int | None
    wrong: WrongValue | None
    throttle_ms: int | None
