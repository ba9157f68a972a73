"""How evenly each generation's partitions are spread, and what was left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import pstdev
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from rejoin.pipeline.schemas import BALANCE
from rejoin.pipeline.tables import whole_groups
from rejoin.pipeline.tables.groups.rows import (
    WANTS,
    EventOfGroup,
    RebalanceOfGroup,
    RowValues,
    date_of,
    wanted_partitions,
)

READS: Final = dict.fromkeys(WANTS, ("topics",)) | {
    "rebalance_completed": ("generation", "protocol", "members", "owned_after", "confidence")
}


def balance(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.BALANCE` from the events.

    ``unowned`` counts the partitions, at that time, of all topics that any member ever subscribed to; it says too much
    where members go over to other topics.
    """
    return whole_groups.on_spark(balance_of_group, BALANCE, events, READS)


def balance_in_process(events: pa.Table) -> pa.Table:
    """The same of events that are rows of this process."""
    return whole_groups.in_process(balance_of_group, BALANCE, events, READS)


def balance_of_group(events: list[EventOfGroup], _: Sequence[RebalanceOfGroup] = ()) -> Iterator[RowValues]:
    """Rows of the table from all events of one group."""
    done = [
        event
        for event in events
        if event.event == "rebalance_completed" and event.owned_after is not None and event.members is not None
    ]
    done.sort(key=attrgetter("at_ms", "node", "seq"))
    wanted = wanted_partitions(events)
    for event, after in pairwise([*done, None]):
        assert event is not None
        counts = Counter(dict.fromkeys(event.members or (), 0))
        counts.update(member_id for member_id, _, _ in event.owned_after or ())
        if not counts:
            continue
        partitions, least, most = sum(counts.values()), min(counts.values()), max(counts.values())
        there = None if wanted is None else sum(since_ms <= event.at_ms for since_ms in wanted.values())
        yield (
            event.run_id,
            date_of(event.at_ms),
            event.group_id,
            event.at_ms,
            None if after is None else after.at_ms,
            event.generation,
            event.protocol,
            len(counts),
            partitions,
            least,
            most,
            most - least,
            pstdev(counts.values()),
            sum(count == 0 for count in counts.values()),
            None if there is None else max(there - partitions, 0),
            max(counts, key=lambda member_id: (counts[member_id], member_id)),
            *_worst_topic(list(counts), event.owned_after or ()),
            event.confidence,
        )


def _worst_topic(members: Sequence[str], owned: Sequence[tuple[str, str, int]]) -> tuple[str | int | None, ...]:
    """The topic whose partitions are spread most unevenly: name, fewest, most, and a member with the most."""
    by_topic: dict[str, Counter[str]] = {}
    for member_id, topic, _ in owned:
        by_topic.setdefault(topic, Counter(dict.fromkeys(members, 0)))[member_id] += 1
    found = [(max(each.values()) - min(each.values()), topic) for topic, each in by_topic.items()]
    spread, worst = max(found, default=(0, ""))
    if spread <= 1:
        return None, None, None, None
    counts = by_topic[worst]
    most = max(counts, key=lambda member_id: (counts[member_id], member_id))
    return worst, min(counts.values()), counts[most], most
