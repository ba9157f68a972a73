"""Gauges of each group for ``/metrics``, under the names of the exporters whose dashboards people have.

``kafka_consumergroup_*`` with the label ``consumergroup`` are those of kafka_exporter, ``kafka_consumergroup_group_*``
with the label ``group`` those of the Kafka lag exporters, which also have lag in seconds. The number of series is
bounded: groups come by their ids, and ``rejoin_group_metrics_left_out`` counts those that do not fit.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.views import GroupView, OffsetView

MOST_GROUPS: Final = 500
MOST_PARTITIONS: Final = 2_000
"""Limit for all groups together; a group whose partitions do not fit has only sums."""
_AT_ONCE: Final = 25

STATES: Final = (
    *("Unknown", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"),
)
"""The value of ``kafka_consumergroup_group_state`` is an index into this, as in the lag exporters."""

_EXPORTER: Final = "kafka_consumergroup_"
_LAG_EXPORTER: Final = "kafka_consumergroup_group_"


@dataclass(slots=True, eq=False)
class GroupGauges(Collector):
    """Groups as they are at one scrape."""

    groups: list[tuple[GroupView, list[OffsetView]]] = field(default_factory=list)
    left_out: int = 0

    def collect(self) -> Iterator[Metric]:
        yield from self._of_groups()
        yield from self._of_topics()
        yield from self._of_partitions()
        yield _gauge("rejoin_group_metrics_left_out", "Groups without gauges of their own.", [((), self.left_out)], ())

    def _of_groups(self) -> Iterator[Metric]:
        def each(name: str, text: str, value: Iterable[float], label: str = "consumergroup") -> Metric:
            samples = [((view.group_id,), number) for (view, _), number in zip(self.groups, value, strict=True)]
            return _gauge(name, text, samples, (label,))

        views = [view for view, _ in self.groups]
        yield each(_EXPORTER + "members", "Members of a group.", (len(view.members) for view in views))
        states = (float(STATES.index(view.state)) if view.state in STATES else 0.0 for view in views)
        names = ", ".join(f"{number} {state}" for number, state in enumerate(STATES))
        yield each(_LAG_EXPORTER + "state", f"State of a group: {names}.", states, "group")
        yield each("rejoin_group_generation", "Generation, or group epoch.", (view.generation for view in views))
        rebalances = each("rejoin_group_rebalances_total", "Rebalances begun.", (view.rebalances for view in views))
        rebalances.type = "counter"
        yield rebalances
        lags = [_largest(offset.lag for offset in offsets) for _, offsets in self.groups]
        yield _known(_LAG_EXPORTER + "max_lag", "Largest lag of a partition.", views, lags)
        ages = [_largest(offset.lag_ms for offset in offsets) for _, offsets in self.groups]
        seconds = [None if age is None else age / 1_000 for age in ages]
        text = "Age of the oldest record that a group has not committed, in seconds."
        yield _known(_LAG_EXPORTER + "max_lag_seconds", text, views, seconds)

    def _of_topics(self) -> Iterator[Metric]:
        lags: dict[tuple[str, str], int] = defaultdict(int)
        offsets_of: dict[tuple[str, str], int] = defaultdict(int)
        for view, offsets in self.groups:
            for offset in offsets:
                key = (view.group_id, offset.topic)
                offsets_of[key] += offset.offset
                if offset.lag is not None:
                    lags[key] += offset.lag
        labels = ("consumergroup", "topic")
        yield _gauge(_EXPORTER + "lag_sum", "Lag of a group in a topic, in records.", lags.items(), labels)
        text = "Sum of the committed offsets of a group in a topic."
        yield _gauge(_EXPORTER + "current_offset_sum", text, offsets_of.items(), labels)

    def _of_partitions(self) -> Iterator[Metric]:
        rows: list[tuple[tuple[str, str, str], OffsetView]] = []
        for view, offsets in self.groups:
            if len(rows) + len(offsets) <= MOST_PARTITIONS:
                rows += [((view.group_id, each.topic, str(each.partition)), each) for each in offsets]
        labels, theirs = ("consumergroup", "topic", "partition"), ("group", "topic", "partition")
        committed = [(key, each.offset) for key, each in rows]
        yield _gauge(_EXPORTER + "current_offset", "Committed offset of a group.", committed, labels)
        lags = [(key, each.lag) for key, each in rows if each.lag is not None]
        yield _gauge(_EXPORTER + "lag", "Records behind the committed offset of a group.", lags, labels)
        ages = [(key, each.lag_ms / 1_000) for key, each in rows if each.lag_ms is not None]
        text = "Age of the record at the committed offset of a group, in seconds; 0 where there is none."
        yield _gauge(_LAG_EXPORTER + "lag_seconds", text, ages, theirs)
        ends = {key[1:]: each.log_end_offset for key, each in rows if each.log_end_offset is not None}
        text = "Log end offset of a partition that a group has committed."
        yield _gauge("kafka_topic_partition_current_offset", text, ends.items(), ("topic", "partition"))


async def group_gauges(node: Node, now: Millis) -> GroupGauges:
    """Read the groups in slices, so that other requests are served in between."""
    ids = node.group_ids()
    found = GroupGauges(left_out=max(0, len(ids) - MOST_GROUPS))
    for number, group_id in enumerate(ids[:MOST_GROUPS], 1):
        view = node.summarize_group(group_id)
        if view is not None:
            found.groups.append((view, node.describe_offsets(group_id, now)))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _known(name: str, text: str, views: list[GroupView], values: Iterable[float | None]) -> Metric:
    """A gauge for the groups whose value is known."""
    samples = [((view.group_id,), value) for view, value in zip(views, values, strict=True) if value is not None]
    return _gauge(name, text, samples, ("group",))


def _gauge(name: str, text: str, samples: Iterable[tuple[tuple[str, ...], float]], labels: tuple[str, ...]) -> Metric:
    metric = Metric(name, text, "gauge")
    for values, value in samples:
        metric.add_sample(name, dict(zip(labels, values, strict=True)), value)
    return metric
