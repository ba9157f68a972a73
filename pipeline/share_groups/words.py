"""Share-partitions in words, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.findings.formatting import span, times
from rejoin.pipeline.share_groups.of_run import place_of

Row = Mapping[str, Any]

MOST: Final = 2
"""Windows that a summary names."""
_ENDED: Final = (
    ("accepted", "accepted"),
    ("expired", "lost as locks ran out"),
    ("released", "released"),
    ("rejected", "rejected"),
    ("given_back", "given back with a session"),
    ("archived", "archived"),
    ("dead_lettered", "in dead letters"),
)


def summary(partitions: Sequence[Row]) -> str:
    """Deliveries of a share group, how they ended, and the windows with the most records in flight."""
    sums = {name: sum(row[name] for row in partitions) for name in ("acquired", *(name for name, _ in _ENDED))}
    most = max((row["most_deliveries"] or 0 for row in partitions), default=0)
    again = f" (of one {times(most)})" if most > 1 else ""
    ended = [f"{sums[name]:,} {words}" for name, words in _ENDED if sums[name]]
    deliveries = "1 delivery" if sums["acquired"] == 1 else f"{sums['acquired']:,} deliveries"
    said = f"{deliveries} of records{again}" + "".join(f", {each}" for each in ended)
    filled = sorted((row for row in partitions if row["in_flight"]), key=lambda row: -row["in_flight"])
    return "; ".join([said, *map(window, filled[:MOST])])


def window(row: Row) -> str:
    """The window of a share-partition as it is at the end."""
    stands = f", its start stands for {span(row['standing_ms'])}" if row["standing_ms"] else ""
    return f"window of {place_of(row)}: {row['start_offset']:,} to {row['end_offset']:,}{stands}"


def late_deliveries(rows: Sequence[Row]) -> list[Row]:
    """Deliveries that came late, the most often delivered first."""
    late = [row for row in rows if row["delivery_count"] > 1 or row["end"] not in ("accept", "gap", None)]
    return sorted(late, key=lambda row: (-row["delivery_count"], place_of(row), row["first_offset"]))
