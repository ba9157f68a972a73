"""The story of one group, from any source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rejoin.protocol.printable import printable

Row = dict[str, Any]


class SourceProblem(Exception):
    """A source cannot be read, or does not know the group; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group at one instant. What the source does not say is none."""

    group_id: str
    state: str | None = None
    since_ms: int | None = None
    generation: int | None = None
    members: int | None = None
    protocol: str | None = None
    lag: int | None = None
    lag_ms: int | None = None
    rebalances: int | None = None
    group_type: str | None = None
    """Only ``share`` and ``streams``: such groups have epochs and no generations."""

    def as_json(self) -> Row:
        """The status as JSON, without what is unknown."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class GroupStory:
    """Rebalances (rows of ``rebalances``) in the order in which they began, and findings, the worst first."""

    status: GroupStatus
    rebalances: Sequence[Row]
    findings: Sequence[Row]
    names: Mapping[str, str] = field(default_factory=dict)
    """Member id to what people call it."""
    notes: Sequence[str] = ()
    """Notes on the source for the reader."""
    recorded: tuple[int, int] | None = None
    """From when to when the source has anything; none where it does not say."""
    costs_are_upper_bounds: bool = False
    """Whether no consumer reported its pauses, so that all members count for the whole of each rebalance."""
    share_partitions: Sequence[Row] = ()
    """Of a share group: rows of ``share_partitions``."""
    tasks: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Of a streams group: rows of ``tasks`` and ``task_moves``, by table."""
    seen: str = ""
    """Joins of a share or streams group in words, from its members' own logs, where nothing else is known."""
    read: Sequence[str] = ()
    """How much of the source was used, where it is logs."""

    @property
    def last_ms(self) -> int:
        """The newest instant that the source has of the group."""
        known = [row["ended_at_ms"] or row["prepared_at_ms"] for row in self.rebalances]
        return int(max([0, *known, self.status.since_ms or 0]))


class StorySource(Protocol):
    """Where stories come from. Each method raises :class:`SourceProblem`."""

    def groups(self) -> list[GroupStatus]:
        """All groups, by id."""
        ...

    def story(self, group_id: str) -> GroupStory:
        """All about one group."""
        ...

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        ...


def unknown_group(group_id: str, known: Sequence[str], where: str) -> SourceProblem:
    """There is no such group."""
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(group_id, known[:1_000], n=1)
    has = f"is it {near[0]!r}?" if near else f"it has {', '.join(map(printable, known[:8])) or 'none'}"
    return SourceProblem(f"{where}: there is no group {group_id!r}; {has}")
