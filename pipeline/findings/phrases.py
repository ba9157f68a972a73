"""Pieces of sentences that many rules use."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.pipeline.findings.absences import Absence
from rejoin.pipeline.findings.formatting import count, period, seconds, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedRebalance


def probably(exact: bool) -> str:
    return "" if exact else "Probably: "


def share(history: GroupHistory, caused: Sequence[ObservedRebalance]) -> str:
    return f"{len(caused):,} of {count(len(history.rebalances), 'rebalance')} of {history.group_id}"


def when(caused: Sequence[ObservedRebalance]) -> str:
    return period(first(caused), last(caused)) if caused else "at an unknown time"


def stood_still(history: GroupHistory, cost_s: float) -> str:
    """A sentence about the costs."""
    if cost_s < 0.05:
        return ""
    at_most = "" if history.costs_are_known else "up to "
    return f" Consumers stood still for {at_most}{seconds(cost_s * 1_000)} s, added up."


def first(caused: Sequence[ObservedRebalance], absences: Sequence[Absence] = ()) -> int | None:
    return min([*(each.prepared_at_ms for each in caused), *(each.gone_at_ms for each in absences)], default=None)


def last(caused: Sequence[ObservedRebalance], absences: Sequence[Absence] = ()) -> int | None:
    return max([*(each.until_ms for each in caused), *(each.back_at_ms for each in absences)], default=None)


def value(ms: int) -> str:
    """A value for a setting: ``60000 (60 s)``."""
    return f"{ms} ({span(ms)})"


def capital(text: str) -> str:
    """The text as the beginning of a sentence; names of settings keep their case."""
    return text if "." in text.split(" ", maxsplit=1)[0] else text[:1].upper() + text[1:]
