"""Promises of an idempotent producer: each record once, in order, where it was acknowledged, and an end for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rejoin.simulation.output.produced_records import ProducerSummary, logged_records, summarise_producer
from rejoin.simulation.search.observations import Observations


def a_record_is_stored_twice(observed: Observations) -> Iterator[str]:
    """The log has more copies of a record than one."""
    yield from _wrong(observed, lambda summary: summary.twice, "copies too many")


def a_record_overtakes_another(observed: Observations) -> Iterator[str]:
    """A record stands behind a later one of its producer in the same partition."""
    yield from _wrong(observed, lambda summary: summary.out_of_order, "records out of order")


def an_acknowledged_record_is_lost(observed: Observations) -> Iterator[str]:
    """A record was acknowledged that no log has, or that is elsewhere."""
    yield from _wrong(observed, lambda summary: summary.lost + summary.misplaced, "records not where they should be")


def a_record_never_ends(observed: Observations) -> Iterator[str]:
    """Long after ``delivery.timeout.ms`` a record is neither acknowledged nor failed."""
    yield from _wrong(observed, lambda summary: summary.pending, "records without an end")


def _wrong(observed: Observations, count: Callable[[ProducerSummary], int], what: str) -> Iterator[str]:
    simulation = observed.simulation
    if not simulation.producers:
        return
    logged = list(logged_records(simulation.cluster, simulation.scenario.written_topics))
    for name, producers in simulation.producers.items():
        summary = summarise_producer(name, [each for each in producers if each.is_exactly_once], logged)
        if found := count(summary):
            yield f"{name}: {found} {what}, of {summary.written}"
