"""Counters, and the page that Prometheus reads: Kafka's metric names in snake_case, and names of our own for the rest.

Requests are counted, not logged, so counting has to be cheap: a dict entry and a place in a list for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rejoin.coordinator.core.views import NodeView
from rejoin.coordinator.storage.base import Observer
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

REQUEST_BUCKETS_MS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0)
PARKED_BUCKETS_MS: Final = (10.0, 100.0, 500.0, 1_000.0, 3_000.0, 6_000.0, 10_000.0, 30_000.0, 60_000.0, 300_000.0)
APPEND_BUCKETS_MS: Final = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 5_000.0)
BATCH_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0)
LOAD_BUCKETS_MS: Final = (1.0, 5.0, 25.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0)

_STATES: Final = {
    "Stable": "stable",
    "PreparingRebalance": "preparing_rebalance",
    "CompletingRebalance": "completing_rebalance",
    "Empty": "empty",
    "Dead": "dead",
}
_MANAGER: Final = "kafka_coordinator_group_group_metadata_manager_"
_COORDINATOR: Final = "kafka_server_group_coordinator_metrics_"
_REQUESTS: Final = "kafka_network_request_metrics_"
_PURGATORY: Final = "kafka_server_delayed_operation_purgatory_"


class Histogram:
    """Milliseconds, or whatever else is measured, counted by bucket."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, millis: float) -> None:
        self.counts[bisect_left(self.bounds, millis)] += 1
        self.total += millis


class StoreMetrics(Observer):
    """What the offsets log tells about its work."""

    def __init__(self) -> None:
        self._append = Histogram(APPEND_BUCKETS_MS)
        self._batch = Histogram(BATCH_BUCKETS)
        self._write = Histogram(APPEND_BUCKETS_MS)
        self._load = Histogram(LOAD_BUCKETS_MS)
        self._records = 0
        self._records_read = 0
        self._fenced = 0
        self._failed: Counter[str] = Counter()
        self._damaged = 0
        self._removed = 0
        self._reconnections = 0

    def appended(self, records: int, millis: float) -> None:
        self._append.observe(millis)
        self._records += records

    def batch(self, appends: int, millis: float) -> None:
        self._batch.observe(appends)
        self._write.observe(millis)

    def fenced(self, partition: TopicPartition) -> None:
        self._fenced += 1

    def failed(self, error: ErrorCode) -> None:
        self._failed[error.name] += 1

    def damaged(self, partition: TopicPartition, text: str) -> None:
        self._damaged += 1

    def read(self, partition: TopicPartition, records: int, millis: float) -> None:
        self._load.observe(millis)
        self._records_read += records

    def compacted(self, partition: TopicPartition, removed: int) -> None:
        self._removed += removed

    def reconnected(self) -> None:
        self._reconnections += 1

    def render(self, page: _Page) -> None:
        """Everything, under names of our own."""
        name = "rejoin_store_"
        page.histogram(name + "append_ms", "From when an append is asked for until it is durable, ms.", self._append)
        page.histogram(name + "batch_appends", "Appends that were written together.", self._batch)
        page.histogram(name + "batch_ms", "How long the store needed for what was written together, ms.", self._write)
        page.histogram(
            name + "load_ms", "From when a partition is to be read until it is, behind others, ms.", self._load
        )
        page.counter(name + "records_appended_total", "Records that became durable.", self._records)
        page.counter(name + "records_read_total", "Records read from the store.", self._records_read)
        page.counter(name + "records_compacted_total", "Records removed as they did not count.", self._removed)
        page.counter(name + "appends_fenced_total", "Appends of an older epoch that were refused.", self._fenced)
        page.samples(
            name + "appends_failed_total",
            "counter",
            "Appends that could not be written, by error.",
            [({"error": error}, count) for error, count in sorted(self._failed.items())],
        )
        page.counter(name + "damaged_partitions_total", "Partitions that could not be read.", self._damaged)
        page.counter(name + "reconnections_total", "Connections to the store made anew.", self._reconnections)


class ApiMetrics:
    """The requests of one API: by error, and how long they took; parked ones apart."""

    __slots__ = ("answers", "parked", "took")

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self.took = Histogram(REQUEST_BUCKETS_MS)
        self.parked = Histogram(PARKED_BUCKETS_MS)


class Metrics:
    """All that is counted outside the core. What the core knows itself is read from its views when asked."""

    def __init__(self) -> None:
        self.apis: dict[str, ApiMetrics] = {}
        self.problems: Counter[int] = Counter()
        self.events: Counter[str] = Counter()
        self.started: Counter[str] = Counter()
        self.journal_failures = 0
        self.store = StoreMetrics()
        self.leases: Mapping[str, int] = {}
        """What happened to this node's leases, by kind; nothing where it leads everything by itself."""
        self._completed = 0
        self._unavailable_ms = 0
        self._moved = 0
        self._regained = 0
        self._commits = 0
        self._expired = 0
        self._deleted = 0
        self._loads = 0
        self._load_ms = 0
        self._longest_load_ms = 0

    def api(self, name: str) -> ApiMetrics:
        """The counters of an API."""
        return self.apis.setdefault(name, ApiMetrics())

    def count_event(self, event: Event) -> None:
        """Count what an event says."""
        self.events[event.name] += 1
        match event:
            case events.RebalanceStarted():
                self.started[event.cause.cause] += 1
            case events.RebalanceCompleted():
                self._completed += 1
                self._unavailable_ms += event.rebalance_ms
                self._moved += event.moved
                self._regained += event.regained
            case events.OffsetsCommitted():
                self._commits += len(event.offsets)
            case events.OffsetsDeleted(reason="expired"):
                self._expired += len(event.offsets)
            case events.OffsetsDeleted():
                self._deleted += len(event.offsets)
            case events.PartitionLoaded():
                self._loads += 1
                self._load_ms += event.load_ms
                self._longest_load_ms = max(self._longest_load_ms, event.load_ms)

    def render(self, node: NodeView, listeners: int, head: int, core_failures: int) -> str:
        """Everything in Prometheus' text format."""
        page = _Page()
        self._render_groups(page, node)
        self._render_coordinator(page, node)
        self._render_requests(page, node)
        self._render_own(page, node)
        self.store.render(page)
        self._render_leases(page, node)
        page.counter("rejoin_core_failures_total", "Inputs that broke the core outside any shard.", core_failures)
        page.gauge("rejoin_events_head", "Number of the newest event.", head)
        page.gauge("rejoin_event_listeners", "Listeners that wait for the next event.", listeners)
        return page.text()

    def _render_groups(self, page: _Page, node: NodeView) -> None:
        page.gauge(_MANAGER + "num_groups", "Groups of this node.", node.groups)
        page.gauge(_MANAGER + "num_offsets", "Committed offsets of this node.", node.offsets)
        for state, name in _STATES.items():
            page.gauge(_MANAGER + f"num_groups_{name}", f"Groups in state {state}.", node.groups_by_state.get(state, 0))

    def _render_coordinator(self, page: _Page, node: NodeView) -> None:
        page.samples(
            _COORDINATOR + "group_count", "gauge", "Groups by protocol.", [({"protocol": "classic"}, node.groups)]
        )
        page.counter(_COORDINATOR + "group_completed_rebalance_count", "Rebalances that ended Stable.", self._completed)
        page.counter(_COORDINATOR + "offset_commit_count", "Offsets committed.", self._commits)
        page.counter(_COORDINATOR + "offset_expiration_count", "Offsets expired.", self._expired)
        page.counter(_COORDINATOR + "offset_deletion_count", "Offsets deleted on request.", self._deleted)
        states = Counter(partition.state.lower() for partition in node.partitions)
        page.samples(
            _COORDINATOR + "num_partitions",
            "gauge",
            "Offsets partitions of this node.",
            [({"state": state}, states.get(state, 0)) for state in ("loading", "active", "failed")],
        )
        page.gauge(
            _COORDINATOR + "partition_load_time_max",
            "Longest load, waiting behind others included, ms.",
            self._longest_load_ms,
        )
        average = self._load_ms / self._loads if self._loads else 0
        page.gauge(_COORDINATOR + "partition_load_time_avg", "Mean load, waiting behind others included, ms.", average)

    def _render_requests(self, page: _Page, node: NodeView) -> None:
        page.samples(
            _REQUESTS + "requests_total",
            "counter",
            "Answers by request and top-level error; none where the answer has no such field.",
            [
                ({"request": name, "error": error}, count)
                for name, api in self.apis.items()
                for error, count in sorted(api.answers.items())
            ],
        )
        for metric, text, attribute in (
            ("total_time_ms", "From the request's last byte to its answer, for requests answered at once.", "took"),
            (
                "remote_time_ms",
                "The same for requests that had to wait: parked joins and syncs, and appends.",
                "parked",
            ),
        ):
            page.histograms(
                _REQUESTS + metric,
                text,
                {
                    name: getattr(api, attribute)
                    for name, api in self.apis.items()
                    if any(getattr(api, attribute).counts)
                },
            )
        page.samples(
            _PURGATORY + "purgatory_size",
            "gauge",
            "Requests that wait for other members.",
            [
                ({"delayed_operation": "Rebalance"}, node.parked_joins),
                ({"delayed_operation": "Sync"}, node.parked_syncs),
            ],
        )

    def _render_leases(self, page: _Page, node: NodeView) -> None:
        page.gauge("rejoin_partitions_led", "Offsets partitions that this node leads.", len(node.partitions))
        page.samples(
            "rejoin_leases_total",
            "counter",
            "Leases taken, given back and lapsed; times that the store or this node's id could not be had.",
            [({"what": what}, count) for what, count in sorted(self.leases.items())],
        )

    def _render_own(self, page: _Page, node: NodeView) -> None:
        page.gauge("rejoin_members", "Members of all groups.", node.members)
        page.gauge("rejoin_parked_joins", "JoinGroup requests that wait.", node.parked_joins)
        page.gauge("rejoin_parked_syncs", "SyncGroup requests that wait.", node.parked_syncs)
        page.samples(
            "rejoin_rebalances_started_total",
            "counter",
            "Join phases begun, by cause.",
            [({"cause": cause}, count) for cause, count in sorted(self.started.items())],
        )
        page.counter(
            "rejoin_rebalance_unavailable_ms_total", "Time groups spent rebalancing, ms.", self._unavailable_ms
        )
        page.counter("rejoin_partitions_moved_total", "Partitions that went between remaining members.", self._moved)
        page.counter("rejoin_partitions_regained_total", "Partitions that nobody had before.", self._regained)
        page.samples(
            "rejoin_events_total",
            "counter",
            "Events by name.",
            [({"event": name}, count) for name, count in sorted(self.events.items())],
        )
        page.samples(
            "rejoin_problems_total",
            "counter",
            "HTTP problems by status.",
            [({"status": str(status)}, count) for status, count in sorted(self.problems.items())],
        )
        page.counter("rejoin_journal_failures_total", "Journal writes that failed.", self.journal_failures)


class _Page:
    """Prometheus' text format, line by line."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def gauge(self, name: str, text: str, value: float) -> None:
        self.samples(name, "gauge", text, [({}, value)])

    def counter(self, name: str, text: str, value: float) -> None:
        self.samples(name, "counter", text, [({}, value)])

    def samples(self, name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> None:
        self._lines += (f"# HELP {name} {text}", f"# TYPE {name} {kind}")
        self._lines += (f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples)

    def histograms(self, name: str, text: str, by_request: Mapping[str, Histogram]) -> None:
        self._lines += (f"# HELP {name} {text}", f"# TYPE {name} histogram")
        for request, histogram in by_request.items():
            self._lines += _buckets(name, {"request": request}, histogram)

    def histogram(self, name: str, text: str, histogram: Histogram) -> None:
        self._lines += (f"# HELP {name} {text}", f"# TYPE {name} histogram")
        self._lines += _buckets(name, {}, histogram)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _buckets(name: str, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    running = 0
    for bound, count in zip((*map(_number, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        running += count
        yield f"{name}_bucket{_labels({**labels, 'le': bound})} {running}"
    yield f"{name}_sum{_labels(labels)} {_number(round(histogram.total, 3))}"
    yield f"{name}_count{_labels(labels)} {running}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
