"""When a group had no coordinator: from the last sign of the broker to the moment when the group was loaded again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rejoin.pipeline.findings.observed_rows import ObservedEvent
from rejoin.pipeline.vocabulary import CLIENT_LOG, EXACT, REQUEST_LOG

if TYPE_CHECKING:
    from rejoin.pipeline.findings.history import GroupHistory

REQUEST_LOG_NAME: Final = "kafka-request"
"""The node of a request log whose name and folder have no broker's id: the file's own name."""
AT_ONCE_MS: Final = 10_000
"""Loads of a group that are closer together than this are one."""
STARTS_MS: Final = 60_000
"""A broker that has loaded its groups serves within this."""
LONGEST_MS: Final = 60 * 60_000
"""A stop that lies further back than this has nothing to do with a load."""


@dataclass(frozen=True, slots=True)
class Outage:
    """The coordinator was away: ``from_ms`` is its stop, or the load where the stop is not known."""

    node: str | None
    from_ms: int
    to_ms: int
    stop: ObservedEvent | None
    load: ObservedEvent

    @property
    def lasted_ms(self) -> int | None:
        return None if self.stop is None else self.to_ms - self.from_ms

    @property
    def is_from_requests(self) -> bool:
        """Whether the stop is the last answer to a request of the group."""
        return self.stop is not None and self.stop.source == REQUEST_LOG

    @property
    def exact(self) -> bool:
        """Whether the log has both ends of it."""
        return self.stop is not None and self.stop.confidence == EXACT


def outages_of(history: GroupHistory) -> list[Outage]:
    """Each time the group was loaded, with the stop of its coordinator before it."""
    loads = [event for event in history.events if event.event == "group_loaded"]
    found: list[Outage] = []
    for load in loads:
        if found and load.at_ms - found[-1].to_ms <= AT_ONCE_MS:
            continue
        stop = _stop_before(history, load, found[-1].to_ms if found else 0)
        # Consumers' logs do not say which broker it was, nor does the usual name of a request log.
        is_named = load.source != CLIENT_LOG and (load.source, load.node) != (REQUEST_LOG, REQUEST_LOG_NAME)
        node = load.node if is_named else None
        found.append(Outage(node, load.at_ms if stop is None else stop.at_ms, _serves_at(history, load), stop, load))
    return found


def _serves_at(history: GroupHistory, load: ObservedEvent) -> int:
    """When the broker served the group again: a broker that starts may load groups before it takes connections."""
    started = [
        event.at_ms
        for event in history.events
        if event.event == "broker_started" and event.node == load.node and 0 <= event.at_ms - load.at_ms <= STARTS_MS
    ]
    return min(started, default=load.at_ms)


def _stop_before(history: GroupHistory, load: ObservedEvent, since_ms: int) -> ObservedEvent | None:
    """The latest stop before a load; none if the group went on in between."""
    active = max((each.prepared_at_ms for each in history.rebalances if each.prepared_at_ms < load.at_ms), default=0)
    stops = [
        event
        for event in history.events
        if event.event == "broker_stopped"
        and max(since_ms, load.at_ms - LONGEST_MS) < event.at_ms <= load.at_ms
        and event.at_ms >= active
    ]
    exact = [event for event in stops if event.confidence == EXACT]
    return max(exact or stops, key=lambda event: event.at_ms, default=None)
