"""Statements in, events out: of groups, each followed by itself, and of offsets partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from rejoin.pipeline.reading.broker_logs.brokers import BrokerRuns
from rejoin.pipeline.reading.broker_logs.groups.histories import LogHistory
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, UUID, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.vocabulary import BROKER_BUG_SIGN, BUG_SIGN, SHARE_STATE_REFUSED, SOFTWARE_VERSION

AHEAD: Final = 5_000
"""Statements of a group that are looked through for the new id of a static member."""


def reconstruct_group(group_id: str, statements: Iterable[Statement]) -> Iterator[EventRow]:
    """The events of one group, from its statements in their order."""
    history = LogHistory(group_id)
    for statement in in_order(statements):
        yield from history.take(statement)
    yield from history.finish()


def partition_events(statements: Iterable[Statement]) -> Iterator[EventRow]:
    """Events of brokers, and of offsets partitions: which broker became their coordinator, loaded and gave them up.

    Before 2.8 no line reports an election or a resignation; loading and unloading begin at that time.
    """
    elected: dict[tuple[str, int], int] = {}
    resigned: dict[tuple[str, int], int] = {}
    brokers = BrokerRuns()
    for statement in statements:
        if statement.kind in _OF_NO_KNOWN_GROUP:
            yield _of_no_known_group(statement)
        if statement.kind in (BUG_SIGN, SOFTWARE_VERSION):
            yield _of_a_broker(statement)
        if statement.kind == SHARE_STATE_REFUSED:
            said = {"confidence": EXACT, "problem": statement.values["problem"], "reason": statement.values["why"]}
            yield _of_a_broker(statement, SHARE_STATE_REFUSED) | said
        yield from brokers.events(statement)
        if statement.partition is None or statement.kind not in _PARTITION_EVENTS:
            continue
        key = (statement.node, statement.partition)
        epoch = int(statement.values["epoch"]) if "epoch" in statement.values else None
        row = _of_a_broker(statement, _PARTITION_EVENTS[statement.kind]) | {
            "confidence": EXACT if statement.kind in _NAMED_BY_A_LINE else INFERRED,
            "topic": "__consumer_offsets",
            "partition": statement.partition,
        }
        if epoch is not None:
            row["epoch"] = epoch
        if "load_ms" in statement.values:
            row["load_ms"] = int(statement.values["load_ms"])
        if statement.kind == "load_failed":
            row["reason"] = statement.values.get("why")
        done = elected if statement.kind in ("elected", "load_begins") else resigned
        if (
            statement.kind in ("load_begins", "unload_begins")
            and statement.order_ms - done.pop(key, -(10**9)) <= 10_000
        ):
            continue
        if statement.kind in ("elected", "resigned"):
            done[key] = statement.order_ms
        yield row


def _of_a_broker(statement: Statement, event: str | None = None) -> EventRow:
    """Columns of every event that names no group."""
    row = {
        "event": event or statement.kind,
        "at_ms": statement.at_ms,
        "order_ms": statement.order_ms,
        "node": statement.node,
        "file": statement.file,
        "line": statement.line,
    }
    if event is not None:
        return row
    row["reason"] = statement.values["reason"]
    if statement.kind == BUG_SIGN:
        group = statement.values["group"]
        return row | ({"event": BROKER_BUG_SIGN} if group is None else {"group_id": group})
    return row


def _of_no_known_group(statement: Statement) -> EventRow:
    """A line that names no group, about members that no other line names."""
    values = statement.values
    row = _of_a_broker(statement, _OF_NO_KNOWN_GROUP[statement.kind]) | {
        "confidence": "unknown",
        "member_id": values.get("member"),
        "group_instance_id": values.get("instance"),
        "other_member_id": values.get("current") or values.get("old"),
        "reason": statement.text,
    }
    return {name: value for name, value in row.items() if value is not None}


_OF_NO_KNOWN_GROUP: Final = {
    "fenced": "member_fenced",
    "replaced": "static_member_replaced",
    "leader_replaced": "leader_changed",
}
_NAMED_BY_A_LINE: Final = ("elected", "resigned", "load_ends", "load_failed")
_PARTITION_EVENTS: Final = {
    "elected": "partition_elected",
    "load_begins": "partition_elected",
    "load_ends": "partition_loaded",
    "load_failed": "partition_load_failed",
    "resigned": "partition_resigned",
    "unload_begins": "partition_resigned",
}


def in_order(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements of one group, with the new ids of restarted static members where a later line has them.

    Since 3.0 the line about a static member's restart has its old id only. Ids of static members begin with their
    instance id, so the next other id of that form is the new one.
    """
    window: deque[Statement] = deque()
    for statement in statements:
        window.append(statement)
        if len(window) > AHEAD:
            yield _named(window.popleft(), window)
    while window:
        yield _named(window.popleft(), window)


def _named(statement: Statement, ahead: Iterable[Statement]) -> Statement:
    if statement.kind != "replaced" or "member" in statement.values:
        return statement
    instance, old = statement.values["instance"], statement.values["old"]
    for later in ahead:
        if later.kind == "replaced" and later.values["instance"] == instance:
            found = later.values["old"]
            return (
                statement
                if found == old
                else replace(statement, values=statement.values | {"member": found, "guessed": True})
            )
        named = [later.values.get(name) for name in ("member", "leader", "current")]
        for member in (*named, *later.values.get("members_named", ())):
            if member and member != old and UUID.sub("", member) == instance != member:
                return replace(statement, values=statement.values | {"member": member, "guessed": True})
    return statement
