"""Every rebalance: why it began, how it went, how it ended.

What a rebalance is, and which events belong to it, is :mod:`rejoin.pipeline.tables.groups.group_rebalances`. Here is
what takes all coordinators of a group to know: numbers, storms, and that another coordinator took over from one that
never said how a rebalance ended.

Outcomes: **completed** by ``rebalance_completed``; **emptied** by ``group_emptied``; **superseded** when the next one
begins before it was completed; **aborted** when the coordinator resigned, crashed or loaded the group anew, or the
group was deleted or created anew; **open** when the journal ends first. Lengths of attempts add up to the length of
the whole.

Instants of different coordinators of one group are compared only to count rebalances and to find storms.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from rejoin.pipeline.tables.groups.group_rebalances import GroupRebalances, Rebalance
from rejoin.pipeline.tables.groups.rebalance_events import ABORTED, FOLLOWED
from rejoin.pipeline.tables.groups.rebalance_events import READS as COLUMNS
from rejoin.pipeline.tables.groups.rows import GroupRows, Row

CHAIN_GAP_MS: Final = 60_000
"""Rebalances of a group that begin within this after the one before ended belong to one storm."""

_LOADS: Final = ("group_loaded", "group_created")
"""A coordinator that loads a group ends what the one before had open, even if that one crashed."""
EVENTS_READ: Final = tuple(dict.fromkeys((*FOLLOWED, *_LOADS)))
_GROUP: Final = ("run_id", "group_id")

READS: Final = dict.fromkeys(EVENTS_READ, COLUMNS)


def rebalances_of_group(group: GroupRows, chain_gap_ms: int = CHAIN_GAP_MS) -> list[Row]:
    """Rows of the table from all events of one group."""
    loads: list[tuple[int, str]] = []
    found: list[tuple[tuple[Any, ...], Rebalance]] = []
    for stream, events in groupby(sorted(group.events, key=_order), attrgetter("source", "node")):
        followed = GroupRebalances()
        for event in events:
            if event.event in _LOADS:
                loads.append((event.at_ms, event.node))
            followed.take(event)
            if event.event == "rebalance_started" and followed.current is not None:
                found.append(((event.run_id, event.group_id, *stream), followed.current))
    loads.sort()
    made = [_row(where, rebalance, loads) for where, rebalance in found]
    return _numbered(made, [rebalance.seq for _, rebalance in found], chain_gap_ms)


_order: Final = attrgetter("source", "node", "seq")


def _row(where: tuple[Any, ...], rebalance: Rebalance, loads: list[tuple[int, str]]) -> Row:
    """Its columns, with the end that only other coordinators know of."""
    if rebalance.outcome is None:
        began, node = rebalance.prepared_at_ms, where[-1]
        taken_over = next((at_ms for at_ms, other in loads if at_ms >= began and other != node), None)
        end = rebalance.next_at_ms if taken_over is None else taken_over
        if end is not None:
            rebalance.outcome, rebalance.ended_at_ms = ABORTED, end
    return {**dict(zip((*_GROUP, "source", "node"), where, strict=True)), **rebalance.row()}


def _numbered(rows: list[Row], seqs: list[int], chain_gap_ms: int) -> list[Row]:
    """With numbers, episodes and chains. Rows of one coordinator come in the order in which they began."""
    order = sorted(
        range(len(rows)),
        key=lambda at: (rows[at]["prepared_at_ms"], rows[at]["source"], rows[at]["node"], seqs[at]),
    )
    chain, last_end = 0, None
    for number, at in enumerate(order, 1):
        row = rows[at]
        begins, ends = row["prepared_at_ms"], row["ended_at_ms"]
        if last_end is None or begins - last_end > chain_gap_ms:
            chain = number
        row["number"], row["chain"] = number, chain
        end = begins if ends is None else ends
        last_end = end if last_end is None else max(last_end, end)
    lengths = Counter(row["chain"] for row in rows)
    episode = 0
    for row in rows:
        episode = row["number"] if row["attempt"] == 1 else episode
        row["episode"], row["chain_length"] = episode, lengths[row["chain"]]
    return rows
