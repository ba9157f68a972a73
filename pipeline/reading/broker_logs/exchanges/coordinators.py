"""Absences of a group's coordinator, as the group's requests alone show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, event_row
from rejoin.pipeline.reading.broker_logs.groups.membership import INFERRED, EventRow

NOT_THERE: Final = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
"""Errors of a broker that does not serve the group, or not yet."""
ONE_ABSENCE_MS: Final = 10_000
"""Such errors that are closer together than this belong to one absence."""
SILENCE_MS: Final = 5_000
"""A group of which nothing is heard for this long may have lost its coordinator."""
BACK_MS: Final = 30_000
"""Members that were there before a silence are back within this of the first one."""
_MEMBERS: Final = 2
"""So many members do not lose their connections together by themselves."""


def loads(asked: Iterable[SourcedExchange]) -> list[EventRow]:
    """A load of the group for each absence of its coordinator, at the first answer after it."""
    ordered = sorted(asked, key=lambda one: (one.exchange.answered_at_ms, one.exchange.line))
    served = [*_after_refusals(ordered), *_after_silence(ordered)]
    return [_loaded(each) for each in served]


def _after_refusals(ordered: Iterable[SourcedExchange]) -> Iterator[SourcedExchange]:
    """The first answer after errors of :data:`NOT_THERE`.

    A coordinator answers heartbeats while it loads, so an answer before the last such error does not count.
    """
    refused_at: int | None = None
    served: SourcedExchange | None = None
    for each in ordered:
        exchange = each.exchange
        if exchange.error in NOT_THERE:
            if served is not None and refused_at is not None and exchange.answered_at_ms - refused_at > ONE_ABSENCE_MS:
                yield served
            refused_at, served = exchange.answered_at_ms, None
        elif refused_at is not None and served is None and exchange.api != "FIND_COORDINATOR":
            served = each
    if served is not None:
        yield served


def _after_silence(ordered: Sequence[SourcedExchange]) -> Iterator[SourcedExchange]:
    """The first answer after a silence in which all members lost their connections, without an error that says why.

    Their processes went on: they come back with the member ids that they had, by other connections. Where that takes
    longer than a session, the coordinator does not know these ids any more.
    """
    of_members = [each for each in ordered if each.exchange.member_id and each.exchange.connection is not None]
    connections: dict[str, str | None] = {}
    for nth, (before, after) in enumerate(pairwise(of_members), start=1):
        connections[str(before.exchange.member_id)] = before.exchange.connection
        began, over = before.exchange.answered_at_ms, after.exchange.arrived_at_ms
        if over - began < SILENCE_MS:
            continue
        later = [each for each in of_members[nth:] if each.exchange.arrived_at_ms - over <= BACK_MS]
        first = {str(each.exchange.member_id): each.exchange.connection for each in reversed(later)}
        back = [member for member in first if member in connections]
        is_refused = any(each.exchange.error in NOT_THERE for each in later)
        if len(back) >= _MEMBERS and not is_refused and all(first[each] != connections[each] for each in back):
            yield after


def _loaded(each: SourcedExchange) -> EventRow:
    row = event_row(each, "group_loaded", INFERRED, each.exchange.answered_at_ms)
    return row | {"group_id": each.exchange.group_id}
