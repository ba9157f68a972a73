"""Numbers of partitions of repartition topics: given by the application, or those of the topics that flow into them.

Kafka: RepartitionTopics.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.streams.topology.problems import InvalidTopologyError
from rejoin.protocol.streams.topology import Subtopology


def repartition_counts(
    subtopologies: Sequence[Subtopology], topics: TopicsMetadata, given: Mapping[str, int]
) -> dict[str, int]:
    """The number of partitions of each repartition topic, by name; ``given`` are the application's own numbers.

    The source topics all exist.
    """
    counts = dict(given)
    readers: dict[str, list[int]] = defaultdict(list)
    largest: list[int | None] = []
    for place, each in enumerate(subtopologies):
        names = [info.name for info in each.repartition_source_topics]
        known = [*map(topics.partition_count, each.source_topics), *(given[name] for name in names if name in given)]
        largest.append(max(known, default=None))
        for name in names:
            readers[name].append(place)
    # Kafka: rounds over all subtopologies, until every sink has a number or a round brings none. Here a subtopology is
    # looked at in the first round that can give its sinks a number, so that a long chain costs no more.
    due = [(0, place) for place, known_so_far in enumerate(largest) if known_so_far is not None]
    while due:
        turn, place = heapq.heappop(due)
        for sink in subtopologies[place].repartition_sink_topics:
            count = largest[place]
            if sink in counts or count is None:
                continue
            counts[sink] = count
            for reader in readers[sink]:
                before = largest[reader]
                largest[reader] = count if before is None else max(before, count)
                if before is None:
                    heapq.heappush(due, (turn if reader > place else turn + 1, reader))
    sinks = (name for each in subtopologies for name in each.repartition_sink_topics)
    sources = (info.name for each in subtopologies for info in each.repartition_source_topics)
    if any(name not in counts for names in (sinks, sources) for name in names):
        # A loop that nothing flows into, or a topic that no subtopology writes.
        raise InvalidTopologyError
    return counts
