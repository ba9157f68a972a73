"""Generations and epochs that went back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rejoin.pipeline.audits.rows import EVIDENCE, AuditedGroup, nulls_first, proof
from rejoin.pipeline.tables.groups.rows import Row

GENERATIONS_BACK: Final = "generation-went-back"
MEMBER_EPOCHS: Final = ("member_reconciled", "partitions_awaited")
_GENERATIONS: Final = {
    "rebalance_completed": "became Stable",
    "group_epoch_bumped": "began",
    "join_phase_ended": "began",
    **dict.fromkeys(MEMBER_EPOCHS, "was reached by a member"),
}
"""Events with a generation, and how it is said of each."""
_BEGINS: Final = ("group_created", "group_loaded", "group_deleted")
EVENTS_READ: Final = (*_GENERATIONS, *_BEGINS)


def generations_that_went_back(group: AuditedGroup) -> Iterator[Row]:
    """A generation that is not greater than one before. ``expected``: at least this; ``found``: the generation.

    Only stored generations count: after a failover in mid rebalance the new coordinator knows the last stable
    generation only, and numbers that were handed out but never synced may come again. So generations that became Stable
    must rise over all coordinators, and those of a join phase only within one coordinator's time with the group.

    All epochs of a consumer group are stored: new ones must rise over all coordinators, and those of a member may not
    fall.
    """
    loads: dict[tuple[Any, ...], int] = {}
    counts: Counter[tuple[Any, ...]] = Counter()
    for event in sorted(group.events, key=lambda event: event["seq"]):
        stream = (event["source"], event["node"])
        counts[stream] += event["event"] in ("group_created", "group_loaded")
        loads[*stream, event["seq"]] = counts[stream]
    life = 0
    histories: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for event in sorted(group.events, key=lambda event: nulls_first(*map(event.get, _ORDER))):
        name = event["event"]
        life += name in ("group_created", "group_deleted")
        if name == "join_phase_ended":
            stream = (event["source"], event["node"])
            histories[name, *stream, loads[*stream, event["seq"]]].append(event)
        elif name in MEMBER_EPOCHS:
            histories["member", life, event["member_id"]].append(event)
        elif name in _GENERATIONS:
            histories[name, life].append(event)
    for (kind, *_), history in histories.items():
        if kind == "join_phase_ended":
            history.sort(key=lambda event: event["seq"])
        yield from _fell(group, history, may_stay=kind == "member")


_ORDER: Final = ("at_ms", "source", "node", "seq")


def _fell(group: AuditedGroup, history: list[Row], *, may_stay: bool) -> Iterator[Row]:
    highest: tuple[tuple[Any, ...], int, Row] | None = None
    for event in history:
        epoch = event["member_epoch"] if event["event"] in MEMBER_EPOCHS else None
        generation = event["generation"] if epoch is None else epoch
        if generation is None:
            continue
        if highest is not None and generation < highest[1] + (not may_stay):
            yield group.violation(
                GENERATIONS_BACK,
                event["at_ms"],
                generation=generation,
                members=[] if event["member_id"] is None else [event["member_id"]],
                expected=highest[1] + (not may_stay),
                found=generation,
                text=f"generation {generation} {_GENERATIONS[event['event']]} after generation {highest[1]}",
                evidence=[proof(highest[2]), proof(event)],
                confidence=event["confidence"],
            )
        rank = nulls_first(generation, *map(event.get, EVIDENCE))
        if highest is None or rank > highest[0]:
            highest = rank, generation, event
