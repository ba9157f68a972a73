"""What findings owe to a ledger of what was done: all of it is found, nothing else is named, nothing contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Row = dict[str, Any]

CAUSES = (
    "rolling-restart",
    "flapping-member",
    "session-too-short",
    "max-poll-exceeded",
    "died-without-leaving",
    "fell-silent",
    "membership-changed",
    "subscription-changed",
    "topic-growth",
    "duplicate-instance-id",
)
"""Findings that say what was done to a group; all others say what it was like."""
FINDING = {
    "rolling-restart": "rolling-restart",
    "crash-loop": "flapping-member",
    "slow-handler": "max-poll-exceeded",
    "pause": "session-too-short",
    "kill": "died-without-leaving",
    "start": "membership-changed",
    "stop": "membership-changed",
    "grow": "topic-growth",
    "subscribe": "subscription-changed",
    "duplicate": "duplicate-instance-id",
}
SILENT = ("session-too-short", "died-without-leaving")
"""Findings of a member that is not heard of, which differ by whether it came back."""
LATE_MS = 30_000
"""What was done shows at the latest so long after it was over."""


@dataclass(frozen=True)
class Done:
    """An action of the ledger, as the findings are to have it."""

    group: str
    finding: str
    members: tuple[str, ...]
    from_ms: int
    to_ms: int
    or_else: tuple[str, ...] = ()
    """Findings that may have it instead, where the source does not show the difference."""
    must: bool = True
    """Whether it is worth a finding in any case."""

    def is_in(self, row: Row) -> bool:
        return (
            row["group_id"] == self.group
            and row["finding"] in (self.finding, *self.or_else)
            and set(self.members) <= set(row["members"])
            and row["from_ms"] <= self.to_ms + LATE_MS
            and row["to_ms"] >= self.from_ms
        )


@dataclass(frozen=True)
class Group:
    """What advice has to heed about a group."""

    protocol: str
    """eager | cooperative | consumer"""
    static: bool
    java: bool
    nameless: bool = False


def groups_of(ledger: dict[str, Any]) -> dict[str, Group]:
    """The groups of an incident, with what advice has to heed."""
    found = {}
    for group_id, group in ledger["groups"].items():
        settings = group["settings"]
        cooperative = "ooperative" in settings.get("partition.assignment.strategy", "")
        protocol = settings.get("group.protocol", "cooperative" if cooperative else "eager")
        java = group["library"] == "java"
        found[group_id] = Group(protocol, bool(group.get("static")), java, bool(group.get("nameless")))
    return found


def session_ms(group: Row) -> int:
    return int(group["settings"].get("session.timeout.ms", 10_000))


def expected(ledger: dict[str, Any]) -> Iterator[Done]:
    """The deeds to groups, as findings name them; a static restart within its session leaves no trace."""
    killed: set[str] = set()
    stopped: set[str] = set()
    for each in ledger["done"]:
        members = [*each.get("members", ()), *(each.get("topics", ()) if each["do"] == "grow" else ())]
        if not members:
            continue
        group_id = members[0].rsplit("-", 1)[0] if each["do"] != "grow" else members[0]
        group = ledger["groups"][group_id]
        finding = FINDING[each["do"]]
        if each["do"] == "rolling-restart" and group.get("static"):
            finding = "session-too-short"
            if each["away"] * 1_000 < session_ms(group):
                continue
        if each["do"] == "kill":
            killed.update(members)
        if each["do"] == "start" and (killed | stopped).intersection(members):
            continue
        restarted = each["do"] == "stop" and _starts_again(ledger, each)
        if restarted:
            stopped.update(members)
            continue
        named = () if group.get("nameless") or each["do"] == "grow" else tuple(members)
        must = each["do"] not in ("start", "stop")
        or_else = () if each["do"] != "crash-loop" or _is_seen(ledger, each) else SILENT
        yield Done(group_id, finding, named, each["from_ms"], each["to_ms"], or_else, must)


def _is_seen(ledger: dict[str, Any], loop: dict[str, Any]) -> bool:
    """Whether three kills of a crash loop fall into a time when the broker was there to see them."""
    away = [(each["from_ms"], each["to_ms"]) for each in ledger["done"] if each["do"] == "broker-restart"]
    kills = [loop["from_ms"] + nth * loop["every"] * 1_000 for nth in range(loop["times"])]
    return sum(not any(begin <= at <= end for begin, end in away) for at in kills) >= 3


def _starts_again(ledger: dict[str, Any], stop: dict[str, Any]) -> bool:
    return any(
        each["do"] == "start" and each["from_ms"] > stop["from_ms"] and set(each["members"]) == set(stop["members"])
        for each in ledger["done"]
    )


def missing(rows: Iterable[Row], done: Iterable[Done]) -> list[Done]:
    """What was done and is not found, with its members and its time."""
    found = list(rows)
    return [each for each in done if each.must and not any(each.is_in(row) for row in found)]


def invented(rows: Iterable[Row], done: Iterable[Done]) -> list[tuple[Any, ...]]:
    """Causes that are named, of members to whom nothing of the kind was done."""
    ledger = list(done)
    found = []
    for row in rows:
        own = [
            each for each in ledger if each.group == row["group_id"] and row["finding"] in (each.finding, *each.or_else)
        ]
        nameless = any(not each.members for each in own)
        named = {member for each in own for member in each.members}
        if row["finding"] in CAUSES and not (own and (nameless or set(row["members"]) <= named)):
            found.append((row["group_id"], row["finding"], row["members"], row["title"]))
    return found


def with_two_causes(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Rebalances that more than one finding explains."""
    causes: dict[str, list[str]] = {}
    for row in rows:
        if row["finding"] in (*CAUSES, "coordinator-failover"):
            for rebalance in row["rebalances"]:
                causes.setdefault(rebalance, []).append(f"{row['finding']} {row['members']}")
    return {rebalance: names for rebalance, names in causes.items() if len(names) > 1}


def contradictions(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Findings of which one has a member gone for good that another one has seen later."""
    of_groups = [row for row in rows if row["finding"] in CAUSES]
    for one, other in combinations(of_groups, 2):
        for gone, seen in ((one, other), (other, one)):
            if gone["group_id"] != seen["group_id"] or not set(gone["members"]) & set(seen["members"]):
                continue
            for_good = gone["title"].endswith("did not come back")
            if for_good and seen["from_ms"] > gone["to_ms"]:
                yield gone["title"], seen["title"]


def unfit_advice(rows: Iterable[Row], groups: Mapping[str, Group]) -> Iterator[tuple[str, str]]:
    """Advice that the group's clients, or its protocol, cannot follow: what is wrong with it, and of which finding."""
    for row in rows:
        if row["group_id"] is None:
            continue
        group, said = groups[row["group_id"]], f" {row['setting']} {row['advice']}"
        wrong = {
            "it is cooperative already": group.protocol != "eager"
            and ("ooperative" in said or row["finding"] == "eager-assignor"),
            "the broker has its session timeout": group.protocol == "consumer" and " session.timeout.ms" in said,
            "no Java client is in it": not group.java and "org.apache.kafka" in said,
            "it is static already": group.static and "set group.instance.id" in said,
            "the group was not empty": "initial.rebalance.delay" in said,
        }
        yield from ((what, row["title"]) for what, is_wrong in wrong.items() if is_wrong)


def storms_before_their_parts(rows: Iterable[Row]) -> Iterator[str]:
    """Storms that have no part with a finding of its own, or come before it. ``rows``: the worst first."""
    ordered = list(rows)
    for nth, row in enumerate(ordered):
        if row["finding"] != "storm":
            continue
        parts = [
            number
            for number, other in enumerate(ordered)
            if other["group_id"] == row["group_id"]
            and other["finding"] in CAUSES
            and set(other["rebalances"]) & set(row["rebalances"])
        ]
        if not parts or max(parts) > nth:
            yield f"{row['title']}: {row['text']}"
