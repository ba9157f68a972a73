"""Of rows of the tables: what members are called, and how a group was left."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.findings.observed_rows import short
from rejoin.pipeline.vocabulary import CLIENT_LOG
from rejoin.pipeline.why.story import GroupStatus, Row

_WITH_EPOCHS: Final = ("share", "streams")
_STATES: Final = {"completed": "Stable", "emptied": "Empty", "open": "rebalancing"}


def names_of(sessions: Iterable[Row]) -> dict[str, str]:
    """Member id to its instance id or client id; those that share a client id at one time get the beginning of their
    UUID."""
    rows = list(sessions)
    shared = _sharing(rows)
    found = {}
    for row in rows:
        member, client = row["member_id"], row["client_id"]
        name = short(member)
        if client in shared and name != member:
            client = member[: len(name) + 5]
        found[member] = row["group_instance_id"] or client or name
    return found


def _sharing(sessions: Iterable[Row]) -> set[str]:
    """Client ids that several members have at one time; one after the other they are one client that restarts."""
    by_client: dict[str, list[Row]] = {}
    for row in sessions:
        if row["client_id"]:
            by_client.setdefault(row["client_id"], []).append(row)
    shared = set()
    for client, rows in by_client.items():
        in_order = sorted(rows, key=lambda row: (row.get("joined_at_ms") or 0, row["member_id"]))
        for before, after in pairwise(in_order):
            ended = before.get("ended_at_ms")
            if before["member_id"] != after["member_id"] and (
                ended is None or ended > (after.get("joined_at_ms") or 0)
            ):
                shared.add(client)
    return shared


def status_after(group_id: str, row: Row, rebalances: int, sessions: Iterable[Row] = ()) -> GroupStatus:
    """The group's status after its newest rebalance and after member sessions that ended later."""
    members = _members(row)
    state, since_ms = _STATES.get(row["outcome"] or "open"), row["prepared_at_ms"]
    if row["outcome"] in ("completed", "emptied"):
        since_ms = row["ended_at_ms"]
        ends = _ends(sessions)
        later = {member: ends[member] for member in members or () if ends.get(member, since_ms) > since_ms}
        if later and len(later) == len(members or ()):
            state, since_ms = "Empty", max(later.values())
        members = members and members - later.keys()
    return GroupStatus(
        group_id,
        state=state,
        since_ms=since_ms,
        generation=row["generation_to"],
        members=None if members is None else len(members),
        protocol=row["protocol"],
        rebalances=rebalances,
    )


def status_of_events(group_id: str, events: Iterable[Row]) -> GroupStatus:
    """A group of which no rebalance was seen to begin, as its coordinator last reported it."""
    last: Row = {}
    for row in events:
        if row["group_id"] == group_id and row["source"] != CLIENT_LOG:
            last |= {name: row[name] for name in ("generation", "members", "protocol") if row[name] is not None}
            if row["event"] == "group_state_changed":
                last |= {"state": row["state"], "since_ms": row["at_ms"]}
            if row["group_type"] in _WITH_EPOCHS:
                last["group_type"] = row["group_type"]
    members = last.pop("members", None)
    return GroupStatus(group_id, members=None if members is None else len(members), rebalances=0, **last)


def memberships_seen(group_id: str, events: Iterable[Row]) -> str:
    """Joins, epochs and departures of a share or streams group in words, from its members' own logs; else empty."""
    kind, clients, joins, left, epoch = "", set(), 0, 0, 0
    for row in events:
        if row["group_id"] != group_id:
            continue
        match row["event"]:
            case "member_joined":
                kind = row["kind"] if row["kind"] in _WITH_EPOCHS else kind
                clients.add((row["node"], row["client_id"]))
                joins += 1
            case "member_removed":
                left += 1
            case "generation_joined" | "partitions_assigned" | "group_synced":
                epoch = max(epoch, row["generation"] or 0)
            case _:
                pass
    if not kind:
        return ""
    joined = f"{count(len(clients), 'member')} joined{f' {joins} times' if joins != len(clients) else ''}"
    reached = f", up to epoch {epoch}" if epoch else ""
    gone = f", and {left} left" if left else ""
    return f"{joined}{reached}{gone}; {kind} groups have no rebalances"


def _members(row: Row) -> set[str] | None:
    """The members behind a rebalance; of one that has not come so far, those that are left of the ones before."""
    if row["outcome"] == "emptied":
        return set()
    if row["members_after"] is not None:
        return set(row["members_after"])
    if row["members_before"] is None:
        return None
    gone = {*(row["left"] or ()), *(row["evicted"] or ())}
    return {*row["members_before"], *(row["joined"] or ())} - gone


def _ends(sessions: Iterable[Row]) -> dict[str, int]:
    """When members were gone that have not come back; a static member that was replaced is there under another id."""
    ends: dict[str, int] = {}
    there = set()
    for row in sessions:
        if row["ended_at_ms"] is None or row["end"] == "replaced":
            there.add(row["member_id"])
        else:
            ends[row["member_id"]] = max(row["ended_at_ms"], ends.get(row["member_id"], 0))
    return {member: at_ms for member, at_ms in ends.items() if member not in there}
