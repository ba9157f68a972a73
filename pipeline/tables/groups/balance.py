"""Balance of each generation's assignment, and the partitions left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import pstdev
from typing import Final

from rejoin.pipeline.tables.groups.rows import WANTS, GroupRows, Ownership, Row, date_of, wanted_partitions

READS: Final = dict.fromkeys(WANTS, ("topics",)) | {
    "rebalance_completed": ("generation", "protocol", "members", "owned_after", "confidence")
}


def balance_of_group(group: GroupRows) -> Iterator[Row]:
    """Rows of the table from all events of one group.

    ``unowned`` counts the partitions, at that time, of all topics that any member ever subscribed to; it says too much
    where members go over to other topics.
    """
    done = [
        event
        for event in group.events
        if event.event == "rebalance_completed" and event.owned_after is not None and event.members is not None
    ]
    done.sort(key=attrgetter("at_ms", "node", "seq"))
    wanted = wanted_partitions(group)
    for event, after in pairwise([*done, None]):
        assert event is not None
        counts = Counter(dict.fromkeys(event.members or (), 0))
        counts.update(member_id for member_id, _, _ in event.owned_after or ())
        if not counts:
            continue
        partitions, least, most = sum(counts.values()), min(counts.values()), max(counts.values())
        there = None if wanted is None else sum(since_ms <= event.at_ms for since_ms in wanted.values())
        yield {
            "run_id": event.run_id,
            "day": date_of(event.at_ms),
            "group_id": event.group_id,
            "at_ms": event.at_ms,
            "until_ms": None if after is None else after.at_ms,
            "generation": event.generation,
            "protocol": event.protocol,
            "members": len(counts),
            "partitions": partitions,
            "least": least,
            "most": most,
            "spread": most - least,
            "deviation": pstdev(counts.values()),
            "idle_members": sum(count == 0 for count in counts.values()),
            "unowned": None if there is None else max(there - partitions, 0),
            "most_member_id": max(counts, key=lambda member_id: (counts[member_id], member_id)),
            **_worst_topic(list(counts), event.owned_after or ()),
            "confidence": event.confidence,
        }


def _worst_topic(members: Sequence[str], owned: Sequence[Ownership]) -> Row:
    """The columns about the topic whose partitions are spread most unevenly, if any are."""
    by_topic: dict[str, Counter[str]] = {}
    for member_id, topic, _ in owned:
        by_topic.setdefault(topic, Counter(dict.fromkeys(members, 0)))[member_id] += 1
    found = [(max(each.values()) - min(each.values()), topic) for topic, each in by_topic.items()]
    spread, worst = max(found, default=(0, ""))
    if spread <= 1:
        return {}
    counts = by_topic[worst]
    most = max(counts, key=lambda member_id: (counts[member_id], member_id))
    return {
        "uneven_topic": worst,
        "topic_least": min(counts.values()),
        "topic_most": counts[most],
        "topic_most_member_id": most,
    }
