"""Metrics that clients measured and pushed (KIP-714), beside the coordinator's own view of the same member.

Java's consumers and librdkafka's name their group and member. A report that names no group is of each group in which a
member has its client.id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Protocol

from rejoin.pipeline.event_fields import MEASURES
from rejoin.pipeline.tables.groups.rows import EventOfGroup, GroupRows, RebalanceOfGroup, Row, date_of
from rejoin.pipeline.vocabulary import INFERRED

REPORTED: Final = "client_metrics_reported"
JOINS: Final = ("member_joined", "static_member_replaced")
"""Events that have the client.id of a member."""
_WHO: Final = ("member_id", "group_instance_id", "client_id")
READS: Final = {
    **dict.fromkeys(JOINS, (*_WHO, "other_member_id", "rebalance_timeout_ms")),
    "member_removed": ("member_id",),
    "rebalance_completed": ("owned_after", "generation"),
    REPORTED: (*_WHO, *MEASURES, "confidence"),
}
OF_REBALANCES: Final = ("prepared_at_ms", "ended_at_ms", "members_after")


class Reporter(Protocol):
    """A report's own words on who measured it."""

    @property
    def member_id(self) -> str | None: ...
    @property
    def client_id(self) -> str | None: ...


def is_measured_by(report: Reporter, member_ids: Collection[str | None], client_ids: Collection[str | None]) -> bool:
    """A report is of the member that it names, or of one with its client.id, which outlives the id."""
    by_member = report.member_id is not None and report.member_id in member_ids
    return by_member or bool(report.client_id and report.client_id in client_ids)


@dataclass(slots=True)
class _Member:
    """A member as the coordinator knows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    rebalance_timeout_ms: int | None


_NOT_KNOWN: Final = _Member("", None, None, None)


def client_metrics_of_group(group: GroupRows) -> Iterator[Row]:
    """Rows of the table from all events of one group, and its rebalances."""
    members: dict[str, _Member] = {}
    owned: Mapping[str, int] | None = None
    generation: int | None = None
    before: dict[str, int] = {}
    for event in sorted(group.events, key=attrgetter("at_ms", "node", "seq")):
        match event.event:
            case "member_joined" | "static_member_replaced":
                _take_in(members, event)
            case "member_removed":
                members.pop(event.member_id or "", None)
            case "rebalance_completed":
                owned = None if event.owned_after is None else Counter(who for who, _, _ in event.owned_after)
                generation = event.generation
            case _ if event.measured is not None:
                measured = dict(zip(MEASURES, event.measured, strict=True))
                instance = measured["client_instance_id"]
                member = _member_of(event, members.values())
                named = event.member_id or (None if member is None else member.member_id)
                since_ms, before[instance] = before.get(instance), event.at_ms
                yield {
                    "run_id": event.run_id,
                    "day": date_of(event.at_ms),
                    "group_id": event.group_id,
                    "at_ms": event.at_ms,
                    "member_id": named,
                    "group_instance_id": event.group_instance_id or (member and member.group_instance_id),
                    "client_id": event.client_id,
                    **measured,
                    "rebalance_timeout_ms": member and member.rebalance_timeout_ms,
                    **_rebalances(group.rebalances, named, since_ms, event.at_ms),
                    "generation": generation,
                    "owned_partitions": None if owned is None or member is None else owned.get(member.member_id, 0),
                    "confidence": event.confidence if event.member_id else INFERRED,
                }


def _take_in(members: dict[str, _Member], event: EventOfGroup) -> None:
    is_replaced = event.event == "static_member_replaced"
    old = members.pop(event.other_member_id or "", _NOT_KNOWN) if is_replaced else _NOT_KNOWN
    if event.member_id is not None:
        members[event.member_id] = _Member(
            event.member_id,
            event.group_instance_id or old.group_instance_id,
            event.client_id or old.client_id,
            event.rebalance_timeout_ms or old.rebalance_timeout_ms,
        )


def _member_of(report: EventOfGroup, members: Iterable[_Member]) -> _Member | None:
    """The member that measured it; of several with its client.id the one that it names, else the newest."""
    found = [each for each in members if is_measured_by(report, (each.member_id,), (each.client_id,))]
    named = [each for each in found if each.member_id == report.member_id]
    return next(reversed(named or found), None)


def _rebalances(
    rebalances: Iterable[RebalanceOfGroup], member_id: str | None, since_ms: int | None, until_ms: int
) -> dict[str, Any]:
    """The rebalances of a member that ended since its report before."""
    lengths = [
        each.ended_at_ms - each.prepared_at_ms
        for each in rebalances
        if each.ended_at_ms is not None
        and (since_ms is None or since_ms < each.ended_at_ms)
        and each.ended_at_ms <= until_ms
        and member_id in (each.members_after or ())
    ]
    return {"rebalances": len(lengths), "rebalance_max_ms": max(lengths, default=None)}
