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
    """A load of the group for each absence of its coordinator, at the first request that is served after it."""
    ordered = sorted(asked, key=lambda one: (one.exchange.answered_at_ms, one.exchange.line))
    served = [*_after_refusals(ordered), *_after_silence(ordered)]
    return [_loaded(each) for each in served]


def absences(events: Iterable[EventRow]) -> list[tuple[int, int]]:
    """The last answer before each absence of the coordinator, and the load behind it, by their instants."""
    ordered = sorted(events, key=lambda event: int(event["at_ms"]))
    stops = [event["at_ms"] for event in ordered if event["event"] == "broker_stopped"]
    loaded = [event["at_ms"] for event in ordered if event["event"] == "group_loaded"]
    return [(max(earlier), at) for at in loaded if (earlier := [stop for stop in stops if stop <= at])]


def _after_refusals(ordered: Sequence[SourcedExchange]) -> Iterator[SourcedExchange]:
    """The first request behind errors of :data:`NOT_THERE` that was served, be it that its answer came late.

    A coordinator answers heartbeats while it loads, so what was served before the last such error does not count.
    """
    refused = [each.exchange.answered_at_ms for each in ordered if each.exchange.error in NOT_THERE]
    for last, following in pairwise([*refused, None]):
        if last is None or (following is not None and following - last <= ONE_ABSENCE_MS):
            continue
        served = [
            each
            for each in ordered
            if last <= each.exchange.arrived_at_ms
            and (following is None or each.exchange.answered_at_ms < following)
            and each.exchange.error not in NOT_THERE
            and each.exchange.api != "FIND_COORDINATOR"
        ]
        if served and _was_there(ordered, last):
            yield min(served, key=lambda each: each.exchange.arrived_at_ms)


def _was_there(ordered: Iterable[SourcedExchange], until_ms: int) -> bool:
    """Whether a request up to an instant is of a group that there was: it was served, or is that of a member.

    The first group of a cluster is refused as well, while the offsets topic is created.
    """
    for each in ordered:
        exchange = each.exchange
        if exchange.answered_at_ms > until_ms:
            return False
        is_served = exchange.api != "FIND_COORDINATOR" and exchange.error not in NOT_THERE
        if is_served or (exchange.request.get("memberId") and exchange.request.get("memberEpoch") != 0):
            return True
    return False


def _after_silence(ordered: Sequence[SourcedExchange]) -> Iterator[SourcedExchange]:
    """The first request after a silence in which all members lost their connections, without an error that says why.

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
    row = event_row(each, "group_loaded", INFERRED, each.exchange.arrived_at_ms)
    return row | {"group_id": each.exchange.group_id}
