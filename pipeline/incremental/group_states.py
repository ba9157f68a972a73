"""State of each group at each of its coordinators, as a dashboard shows it: a fold of a few columns of the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.tables.groups.rebalance_events import FOLLOWED, OPEN

Row = dict[str, Any]

KEY: Final = ("run_id", "group_id", "source", "node")
_READS: Final = (*KEY, "seq", "at_ms", "event", "state", "generation", "members")
_SAY_STATES: Final = ("group_state_changed", "group_loaded", "group_deleted")
_CHANGES: Final = {"member_joined": 1, "member_removed": -1}


@dataclass(slots=True)
class GroupAtCoordinator:
    """One group of one run at one coordinator."""

    state: str | None = None
    since_ms: int | None = None
    """Instant at which the group entered that state."""
    at_ms: int | None = None
    """Instant of the newest event."""
    generation: int | None = None
    members: int = 0
    seen: int = 0
    """Number of the newest event. An event with a lower number came late and changes nothing."""

    def take(
        self, seq: int, at_ms: int, event: str, state: str | None, generation: int | None, members: int | None
    ) -> None:
        """Take in the next event. ``members``: how many it names, if it names them."""
        if seq <= self.seen:
            return
        self.seen, self.at_ms = seq, at_ms
        if event in _SAY_STATES:
            self.state, self.since_ms = "Dead" if event == "group_deleted" else state, at_ms
        if generation is not None:
            self.generation = generation
        if members is not None:
            self.members = members
        elif event in ("group_emptied", "group_deleted"):
            self.members = 0
        else:
            self.members = max(0, self.members + _CHANGES.get(event, 0))


class GroupStates:
    """All groups at all coordinators."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, ...], GroupAtCoordinator] = {}

    def add(self, events: pa.Table) -> None:
        """Take in the events of a step, in any order."""
        wanted = pc.and_(pc.is_in(events["event"], pa.array(FOLLOWED)), pc.is_valid(events["group_id"]))
        rows = events.filter(wanted).select(_READS).sort_by("seq")
        rows = rows.set_column(len(_READS) - 1, "members", pc.list_value_length(rows["members"]))
        for values in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            self._states.setdefault(values[: len(KEY)], GroupAtCoordinator()).take(*values[len(KEY) :])

    def rows(self, rebalances: pa.Table) -> list[Row]:
        """All states, with ``cause`` and ``attempt`` of the rebalance under way, none where there is none.

        ``rebalances``: rows of the table, the open ones among them.
        """
        is_open = pc.equal(rebalances["outcome"], OPEN)
        under_way = rebalances.filter(is_open).select([*KEY, "cause", "attempt"]).to_pylist()
        known = {tuple(row[name] for name in KEY): row for row in under_way}
        no_rebalance = {"cause": None, "attempt": None}
        return [
            {**dict(zip(KEY, key, strict=True)), **no_rebalance, **asdict(state), **known.get(key, {})}
            for key, state in self._states.items()
        ]

    # -- on disk

    def as_json(self) -> list[list[Any]]:
        """All that is known."""
        return [[*key, asdict(state)] for key, state in self._states.items()]

    def restore(self, known: Iterable[list[Any]]) -> None:
        """Restore the states from :meth:`as_json`."""
        self._states = {tuple(key): GroupAtCoordinator(**state) for *key, state in known}
