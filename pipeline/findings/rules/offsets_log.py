"""The partition of ``__consumer_offsets`` that holds a group: it cannot be written, loads slowly, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import HIGH, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, period, span, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedEvent, ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import first, last, share, stood_still, when
from rejoin.pipeline.findings.reads import AtLeast, reads
from rejoin.pipeline.vocabulary import LOGS
from rejoin.protocol.partitioner import partition_for

PARTITIONS: Final = 50
"""Kafka's default of ``offsets.topic.num.partitions``, where the source does not have a group's partition."""
STORE_FAILURES: Final = 2
"""One assignment that could not be stored may be that of a coordinator that was just replaced."""
EXCERPT: Final = 5
"""A log with so few rebalances may be an excerpt, in which an event that comes again and again is seen once."""
NEAR_OUTAGE_MS: Final = 60_000
SLOW_LOAD_MS: Final = 10_000
"""A coordinator that loads for so long is away for longer than clients with short sessions are patient."""
_STORE_FAILED: Final = ("assignment_store_failed", "rebalance_started")
UNAVAILABLE: Final = ("COORDINATOR_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR")


@reads("assignment_store_failed", "commit_refused")
@reads("rebalance_started", cause=("store-failure",))
def offsets_partition_cannot_be_written(causes: Causes) -> Iterator[Finding]:
    """The leader's assignment could not be stored, again and again: each time all members have to join anew."""
    history = causes.history
    failed = [
        each for each in history.rebalances if each.cause == "store-failure" and not _is_near_outage(history, each)
    ]
    is_excerpt = len(history.rebalances) <= EXCERPT and all(each.source in LOGS for each in history.rebalances)
    if len(failed) < (1 if is_excerpt else STORE_FAILURES):
        return
    from_ms, to_ms = failed[0].prepared_at_ms, failed[-1].until_ms
    stored = [each for each in history.events if from_ms - NEAR_OUTAGE_MS <= each.at_ms <= to_ms]
    errors = Counter(each.error for each in stored if each.event in _STORE_FAILED and each.error)
    refused = sum(each.event == "commit_refused" and each.error in UNAVAILABLE for each in stored)
    error = f" with {errors.most_common(1)[0][0]}" if errors else ""
    commits = f" {count(refused, 'commit')} failed as well." if refused else ""
    where, cost = _partition(history), history.cost_s(failed)
    yield Finding(
        "offsets-partition-cannot-be-written",
        f"The assignment of {history.group_id} could not be stored, {times(len(failed))}",
        f"{share(history, failed)} {when(failed)} began as {where} refused the leader's assignment{error}: "
        f"{'each time ' if len(failed) > 1 else ''}all members joined anew.{commits} The clients are not to blame."
        + stood_still(history, cost),
        cost,
        first(failed),
        last(failed),
        setting="min.insync.replicas",
        advice=f"Look at the replicas in sync of {where}: kafka-topics.sh --describe --topic __consumer_offsets "
        "--under-min-isr-partitions. Bring its brokers back, or repair their disks; min.insync.replicas of "
        "__consumer_offsets must be smaller than its replication factor (offsets.topic.replication.factor).",
        numbers={
            "failed": len(failed),
            "commits_refused": refused,
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        rebalances=[each.rebalance_id for each in failed],
        evidence=[each.as_evidence() for each in stored if each.event in _STORE_FAILED],
        exact=all_exact(failed),
        severity=MEDIUM if cost < 60 else HIGH,
    )


def _asked(history: GroupHistory) -> str:
    """Requests to the coordinator of a group."""
    return "heartbeats" if history.is_share_group else "joins and commits"


def _refused(history: GroupHistory) -> str:
    """A clause: what a group without a coordinator cannot do."""
    return "no member could join" if history.is_share_group else "no member could join, and no commit was taken"


def _is_near_outage(history: GroupHistory, rebalance: ObservedRebalance) -> bool:
    return any(
        each.from_ms - NEAR_OUTAGE_MS <= rebalance.prepared_at_ms <= each.to_ms + NEAR_OUTAGE_MS
        for each in history.outages
    )


@reads("partition_loaded", load_ms=AtLeast(SLOW_LOAD_MS), of_all_groups=True)
def slow_load(causes: Causes) -> Iterator[Finding]:
    """A new coordinator read its partition of the offsets topic for long; until it has, the group has none."""
    history = causes.history
    loads = [
        each
        for each in _of_its_partition(history)
        if each.event == "partition_loaded" and _load_ms(each) >= SLOW_LOAD_MS
    ]
    for load in loads:
        lasted, where = _load_ms(load), _partition(history)
        yield Finding(
            "slow-load",
            f"{where} took {span(lasted)} to load",
            f"The coordinator on broker {load.node} loaded {where} {period(load.at_ms - lasted, load.at_ms)}. For "
            f"{span(lasted)} {history.group_id} had no coordinator: {_asked(history)} were answered "
            "COORDINATOR_LOAD_IN_PROGRESS, and members kept what they had.",
            0.0,
            load.at_ms - lasted,
            load.at_ms,
            setting="log.cleaner.enable",
            advice="The partition is long: see that the log cleaner runs (kafka-log-dirs.sh --describe shows its size, "
            "log-cleaner.log what it does; log.cleaner.enable must be true), that segment.bytes of __consumer_offsets "
            "is small (104857600), and that no client commits far more often than it has to. Until then keep "
            f"session timeouts above {span(lasted)}.",
            numbers={"load_ms": lasted},
            members=[f"broker {load.node}"],
            evidence=[load.as_evidence()],
            exact=all_exact([load]),
            severity=MEDIUM if lasted < 60_000 else HIGH,
        )


@reads("partition_load_failed", of_all_groups=True)
def load_failed(causes: Causes) -> Iterator[Finding]:
    """A coordinator could not load its partition of the offsets topic: the groups of it have none."""
    history = causes.history
    events = _of_its_partition(history)
    for failed in (each for each in events if each.event == "partition_load_failed"):
        later = [each.at_ms for each in events if each.event == "partition_loaded" and each.at_ms > failed.at_ms]
        later += [each.at_ms for each in history.events if each.event == "group_loaded" and each.at_ms > failed.at_ms]
        until = min(later, default=history.end_ms)
        where = _partition(history)
        because = f" ({failed.reason})" if failed.reason else ""
        yield Finding(
            "load-failed",
            f"Broker {failed.node} could not load {where}",
            f"Broker {failed.node} failed to load {where} {period(failed.at_ms, failed.at_ms)}{because}. "
            f"{history.group_id} had no coordinator {'until' if later else 'to the end of the source,'} "
            f"{span(until - failed.at_ms)} later: {_refused(history)}.",
            0.0,
            failed.at_ms,
            until,
            advice="Read the exception below that line of the broker's log: mostly a record of a newer version (after "
            "a downgrade of brokers), or a damaged segment. Move the leader to another replica "
            "(kafka-leader-election.sh); if all fail alike, upgrade the brokers again.",
            numbers={"without_coordinator_ms": until - failed.at_ms},
            members=[f"broker {failed.node}"],
            evidence=[failed.as_evidence()],
            exact=all_exact([failed]),
            severity=HIGH,
        )


def partition_of(history: GroupHistory) -> tuple[int, bool]:
    """The partition of ``__consumer_offsets`` that holds the group, and whether the source has it. Kafka: the hash of
    the group's id, as Java computes it."""
    known = next((each.offsets_partition for each in history.events if each.offsets_partition is not None), None)
    return (known, True) if known is not None else (partition_for(history.group_id, PARTITIONS), False)


def _partition(history: GroupHistory) -> str:
    number, known = partition_of(history)
    return f"__consumer_offsets-{number}" + ("" if known else f" (if that topic has {PARTITIONS} partitions)")


def _of_its_partition(history: GroupHistory) -> list[ObservedEvent]:
    number, _ = partition_of(history)
    return [each for each in history.events if each.partition == number and each.event in OF_PARTITIONS]


OF_PARTITIONS: Final = ("partition_loaded", "partition_load_failed")
"""Events about a partition of the offsets topic, which may concern every group."""


def _load_ms(load: ObservedEvent) -> int:
    return load.load_ms or 0
