"""A group of a newer protocol between two heartbeats: its members, and the epoch that they have yet to reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange

Partitions = frozenset[tuple[str, int]]


@dataclass(slots=True)
class SeenMember:
    """A member, as its heartbeats and their answers show it."""

    instance: str | None
    epoch: int
    answered_ms: int
    timeout_ms: int | None = None
    topics: list[str] | None = None
    has: Partitions = frozenset()
    """The last assignment that it was given."""
    giving_up: Partitions = frozenset()
    asked_ms: int = 0
    is_away: bool = False
    moved_on: SourcedExchange | None = None
    """The last answer that changed its epoch or its assignment, since the group's epoch rose."""


@dataclass(slots=True)
class Rise:
    """A group's epoch that its members have yet to reach."""

    epoch: int
    began_ms: int
    """Since when the group was not at rest."""
    target_ms: int
    attempts: int
    cause: dict[str, Any]
    members_before: list[str]
    owned_before: list[dict[str, Any]]
    is_targeted: bool = False
    is_settled: bool = False
    """True once its end is concluded."""
    is_over: bool = False
    """True once all members have reached it."""


class Rest(NamedTuple):
    """A group before something changed that makes its epoch rise."""

    state: str
    members: list[str]
    owned: list[dict[str, Any]]
