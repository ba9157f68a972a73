"""Facts in, events out: of groups, each followed by itself, and of offsets partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from rejoin.pipeline.reading.broker_logs.histories import History
from rejoin.pipeline.reading.broker_logs.membership import EXACT, INFERRED, UUID, Event
from rejoin.pipeline.reading.broker_logs.statements import Fact

AHEAD: Final = 5_000
"""Facts of a group that are looked through for the new id of a static member."""


def tell(facts: Iterable[Fact]) -> Iterator[Event]:
    """The events of all groups and partitions, from facts in their order (``order_ms``); group after group."""
    groups: dict[str, list[Fact]] = {}
    others: list[Fact] = []
    for fact in facts:
        if fact.group is None:
            others.append(fact)
        else:
            groups.setdefault(fact.group, []).append(fact)
    yield from partition_events(others)
    for group_id, mine in groups.items():
        yield from tell_group(group_id, mine)


def tell_group(group_id: str, facts: Iterable[Fact]) -> Iterator[Event]:
    """The events of one group, from its facts in their order."""
    history = History(group_id)
    for fact in in_order(facts):
        yield from history.take(fact)
    yield from history.finish()


def partition_events(facts: Iterable[Fact]) -> Iterator[Event]:
    """Events of offsets partitions: which broker became their coordinator, loaded them and gave them up.

    Before 2.8 nothing is said of being elected or resigning; loading and unloading begin at that time.
    """
    elected: dict[tuple[str, int], int] = {}
    resigned: dict[tuple[str, int], int] = {}
    for fact in facts:
        if fact.kind in _OF_NO_KNOWN_GROUP:
            yield _of_no_known_group(fact)
        if fact.partition is None or fact.kind not in _PARTITION_EVENTS:
            continue
        place = (fact.node, fact.partition)
        epoch = int(fact.values["epoch"]) if "epoch" in fact.values else None
        told = {
            "event": _PARTITION_EVENTS[fact.kind],
            "at_ms": fact.at_ms,
            "order_ms": fact.order_ms,
            "node": fact.node,
            "file": fact.file,
            "line": fact.line,
            "confidence": EXACT if fact.kind in ("elected", "resigned", "load_ends") else INFERRED,
            "offsets_partition": fact.partition,
        }
        if epoch is not None:
            told["epoch"] = epoch
        done = elected if fact.kind in ("elected", "load_begins") else resigned
        if fact.kind in ("load_begins", "unload_begins") and fact.order_ms - done.pop(place, -(10**9)) <= 10_000:
            continue
        if fact.kind in ("elected", "resigned"):
            done[place] = fact.order_ms
        yield told


def _of_no_known_group(fact: Fact) -> Event:
    """A line that names no group, about members that no other line names."""
    values = fact.values
    told = {
        "event": _OF_NO_KNOWN_GROUP[fact.kind],
        "at_ms": fact.at_ms,
        "order_ms": fact.order_ms,
        "node": fact.node,
        "file": fact.file,
        "line": fact.line,
        "confidence": "unknown",
        "member_id": values.get("member"),
        "group_instance_id": values.get("instance"),
        "other_member_id": values.get("current") or values.get("old"),
        "reason": fact.text,
    }
    return {name: value for name, value in told.items() if value is not None}


_OF_NO_KNOWN_GROUP: Final = {
    "fenced": "member_fenced",
    "replaced": "static_member_replaced",
    "leader_replaced": "leader_changed",
}
_PARTITION_EVENTS: Final = {
    "elected": "partition_elected",
    "load_begins": "partition_elected",
    "load_ends": "partition_loaded",
    "resigned": "partition_resigned",
    "unload_begins": "partition_resigned",
}
OF_PARTITIONS: Final = tuple(_PARTITION_EVENTS)
"""Kinds of facts that are about an offsets partition, not about a group."""


def in_order(facts: Iterable[Fact]) -> Iterator[Fact]:
    """The facts of one group, with the new ids of returned static members where a later line tells them.

    Since 3.0 the line of a static member's return has its old id only. Ids of static members begin with their instance
    id, so the next other id of that form is the new one.
    """
    window: deque[Fact] = deque()
    for fact in facts:
        window.append(fact)
        if len(window) > AHEAD:
            yield _named(window.popleft(), window)
    while window:
        yield _named(window.popleft(), window)


def _named(fact: Fact, ahead: Iterable[Fact]) -> Fact:
    if fact.kind != "replaced" or "member" in fact.values:
        return fact
    instance, old = fact.values["instance"], fact.values["old"]
    for later in ahead:
        if later.kind == "replaced" and later.values["instance"] == instance:
            found = later.values["old"]
            return fact if found == old else replace(fact, values=fact.values | {"member": found, "guessed": True})
        named = [later.values.get(name) for name in ("member", "leader", "current")]
        for member in (*named, *later.values.get("members_named", ())):
            if member and member != old and UUID.sub("", member) == instance != member:
                return replace(fact, values=fact.values | {"member": member, "guessed": True})
    return fact
