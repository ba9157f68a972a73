"""Events of an inactive group that its tables still need: those from which rows of later events are made.

Each function takes the events of one group that its table reads, in which nothing goes on, and returns those to keep,
some of them with fewer partitions. Given these and all that comes later, the function of the table makes the rows that
are open now, and all later ones, as it would from all events. It may make rows anew that are settled already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from rejoin.pipeline.tables.groups.group_rebalances import GroupRebalances
from rejoin.pipeline.tables.groups.incarnations import RELEASES, Change, incarnations
from rejoin.pipeline.tables.groups.ownership import Interval, intervals_of_group
from rejoin.pipeline.tables.groups.rows import WANTS, EventOfGroup, Row, TopicPartition, event_of

Id = tuple[str, str, int]

AWAY_MS: Final = 3_600_000
"""Who comes back within this after it has gone is known again."""
_INHERITED: Final = (
    *("client_id", "client_host", "group_instance_id", "session_timeout_ms", "rebalance_timeout_ms", "protocols"),
    *("topics", "software"),
)
_BEGINS: Final = ("member_joined", "static_member_replaced")
_EPISODES: Final = 2
"""The last episode, and one before it, which says who led until then."""


def for_rebalances(events: Sequence[Row]) -> list[Row]:
    """Of each coordinator the last two episodes, and all that came after."""
    kept: list[Row] = []
    for _, rows in groupby(sorted(events, key=_of_stream), key=itemgetter("source", "node")):
        ours = list(rows)
        group, first_attempts = GroupRebalances(), []
        for number, row in enumerate(ours):
            group.take(event_of(row))
            if row["event"] == "rebalance_started" and group.current is not None and group.current.attempt == 1:
                first_attempts.append(number)
        kept += ours[first_attempts[-_EPISODES] :] if len(first_attempts) > _EPISODES else ours
    return kept


def _of_stream(row: Row) -> tuple[str, str, int]:
    return row["source"], row["node"], row["seq"]


def for_member_sessions(events: Sequence[Row], sessions: Iterable[Row], now_ms: int) -> list[Row]:
    """Of members that are there, and of those that have gone a short while ago, what made them and the last rejoin.

    ``sessions``: the rows of the group. A static member's settings are those of its first instance: its events get
    what its row knows.
    """
    known: dict[str, list[Row]] = defaultdict(list)
    for each in sessions:
        if each["end"] == "open" or now_ms - each["ended_at_ms"] <= AWAY_MS:
            known[each["member_id"]].append(each)
    last = {(row["member_id"], row["event"]): row for row in events}
    kept = []
    for row in events:
        session: Row | None = _session_at(known[row["member_id"]], row["at_ms"])
        again = session is not None and row["at_ms"] != session["joined_at_ms"]
        if row["event"] == "member_rejoined" or (row["event"] == "member_joined" and again):
            kept += [row] if session is not None and last[row["member_id"], row["event"]] is row else []
        elif session is not None:
            kept.append(_with_settings(row, session) if row["event"] in _BEGINS else row)
        elif row["other_member_id"] and _session_at(known[row["other_member_id"]], row["at_ms"]) is not None:
            kept.append(row)
    return kept


def _session_at(sessions: Iterable[Row], at_ms: int) -> Row | None:
    """The session of a member that an event at this instant is about."""
    for each in sessions:
        is_over = each["ended_at_ms"] is not None and at_ms > each["ended_at_ms"]
        if not is_over and (each["joined_at_ms"] is None or at_ms >= each["joined_at_ms"]):
            return each
    return None


def _with_settings(row: Row, session: Row) -> Row:
    return row | {name: session[name] for name in _INHERITED if row[name] is None}


def for_pauses(events: Sequence[Row]) -> list[Row]:
    """Of each consumer that is there its last assignment and all since, and which partitions it had before."""
    by_id = {_id(row): row for row in events}
    kept: dict[Id, Row] = {}
    for changes in incarnations(map(event_of, events)).values():
        for change, partitions in _held(changes):
            row = by_id[_id_of(change.event)]
            kept[_id(row)] = row if partitions is None else _with_partitions(row, partitions)
    return [*kept.values(), *_sign_of_consumers(events, kept)]


def _held(changes: Sequence[Change]) -> list[tuple[Change, set[TopicPartition] | None]]:
    """The changes of one consumer to keep, with the partitions that are left of each; all of them where none is given.

    One that had partitions and has none now still pauses whenever it gives up none: so one loss is kept, too.
    """
    begins = 1 + max(
        (number for number, each in enumerate(changes) if each.ends_all or each.how == "started"), default=-1
    )
    ours = changes[begins:]
    assigned = [number for number, each in enumerate(ours) if each.how == "assigned"]
    if not assigned:
        return [(each, None) for each in ours]
    last = assigned[-1]
    owners: dict[TopicPartition, int] = {}
    loss: list[int] = []
    for number, each in enumerate(ours[:last]):
        partitions = each.event.partitions or ()
        if each.how == "assigned":
            owners.update(dict.fromkeys(partitions, number))
            if partitions:
                loss = [number]
        else:
            for at in partitions:
                owners.pop(at, None)
            loss += [number] if len(loss) == 1 else []
    kept: dict[int, set[TopicPartition] | None] = defaultdict(set)
    for at, number in owners.items():
        known = kept[number]
        assert known is not None
        known.add(at)
    if not owners and loss:
        until = next(number for number in assigned if number > loss[-1])
        kept |= dict.fromkeys((*loss, until))
    kept |= dict.fromkeys(range(last, len(ours)))
    return [(ours[number], partitions) for number, partitions in sorted(kept.items(), key=itemgetter(0))]


def _sign_of_consumers(events: Sequence[Row], kept: Mapping[Id, Row]) -> list[Row]:
    """That consumers of the group write journals is not forgotten while none is there."""
    said = [row for row in events if row["event"] == "partitions_assigned"]
    if not said or any(row["event"] == "partitions_assigned" for row in kept.values()):
        return []
    return [said[-1] | {"partitions": []}]


def for_ownership(events: Sequence[Row]) -> list[Row]:
    """Of each partition what made its owners, or how its last one lost it; and who first wanted each topic."""
    by_id = {_id(row): row for row in events}
    read = [event_of(row) for row in events]
    found: dict[TopicPartition, list[Interval]] = defaultdict(list)
    # It does not matter when those end that are open.
    for at, interval in intervals_of_group(read, ends_at_ms=0):
        found[at].append(interval)
    last = [(at, interval) for at, intervals in found.items() for interval in _last(intervals)]
    kept = {_id(row): row for row in first_to_name(events)}
    if any(event.event == "partitions_assigned" for event in read):
        _keep_changes(read, last, by_id, kept)
        return [*kept.values(), *_sign_of_consumers(events, kept)]
    _keep_assignments(read, last, by_id, kept)
    return list(kept.values())


def _last(intervals: Sequence[Interval]) -> list[Interval]:
    """The open intervals with those that overlap them, or else the interval that ended last."""
    since_ms = min((each.from_ms for each in intervals if each.end == "open"), default=None)
    if since_ms is None:
        return [max(intervals, key=lambda each: (each.to_ms, each.order))]
    return [each for each in intervals if each.end == "open" or each.to_ms > since_ms]


def _keep_changes(
    events: Sequence[EventOfGroup],
    last: Iterable[tuple[TopicPartition, Interval]],
    by_id: Mapping[Id, Row],
    kept: dict[Id, Row],
) -> None:
    """Begins and ends of these intervals, and all events of present consumers since their last assignment."""
    partitions: dict[Id, set[TopicPartition]] = defaultdict(set)
    members: dict[str, int] = {}
    incarnated = list(incarnations(events).values())
    owners = {_id_of(each.event): changes for changes in incarnated for each in changes}
    for at, interval in last:
        partitions[_id_of(interval.event)].add(at)
        if interval.member_id is not None:
            members[interval.member_id] = min(interval.from_ms, members.get(interval.member_id, interval.from_ms))
        later = iter(owners[_id_of(interval.event)])
        any(each.event is interval.event for each in later)
        ends = (each for each in later if each.ends_all or (_about(each) and at in (each.event.partitions or ())))
        end = next(ends, None)
        if end is not None:
            partitions[_id_of(end.event)].update({at} if _about(end) else set())
    for key, left in partitions.items():
        row = by_id[key]
        kept[key] = _with_partitions(row, left) if row["event"] in ("partitions_assigned", *RELEASES) else row
    for changes in incarnated:
        assigned = [number for number, each in enumerate(changes) if each.how == "assigned"]
        if assigned and not any(each.ends_all for each in changes[assigned[-1] :]):
            kept |= {_id_of(each.event): by_id[_id_of(each.event)] for each in changes[assigned[-1] :]}
    kept.update(_of_members(by_id.values(), members))


def _of_members(events: Iterable[Row], since_ms: Mapping[str, int]) -> Iterator[tuple[Id, Row]]:
    """Of members the last join before an instant, and all that befell them since."""
    joined: dict[str, Row] = {}
    for row in events:
        for member_id in {row["member_id"], row["other_member_id"]} & since_ms.keys():
            if row["event"] in _OF_MEMBERS and row["at_ms"] >= since_ms[member_id]:
                yield _id(row), row
            elif row["event"] == "member_joined" and row["at_ms"] >= joined.get(member_id, row)["at_ms"]:
                joined[member_id] = row
    yield from ((_id(row), row) for row in joined.values())


_OF_MEMBERS: Final = ("member_joined", "member_removed", "static_member_replaced")


def _about(change: Change) -> bool:
    return change.how == "assigned" or change.how in RELEASES.values()


def _keep_assignments(
    events: Sequence[EventOfGroup],
    last: Sequence[tuple[TopicPartition, Interval]],
    by_id: Mapping[Id, Row],
    kept: dict[Id, Row],
) -> None:
    """The assignments with which the last interval of each partition began, and what ended it.

    Where one of them is kept, it has all partitions whose interval went on over it, so that none is cut in two.
    """
    begins = {_id_of(interval.event) for _, interval in last}
    ends = {interval.to_ms for _, interval in last if interval.end != "open"}
    gives = [each for each in events if each.event in ("rebalance_started", "rebalance_completed", "group_emptied")]
    gives.sort(key=lambda each: (each.at_ms, each.seq))
    newest = [each for each in gives if each.event == "rebalance_completed"][-1:]
    for number, event in enumerate(gives):
        tail = bool(newest) and number >= gives.index(newest[0])
        if not tail and _id_of(event) not in begins and event.at_ms not in ends:
            continue
        left = {
            at
            for at, interval in last
            if interval.from_ms <= event.at_ms and (interval.end == "open" or event.at_ms < interval.to_ms)
        }
        row = by_id[_id_of(event)]
        owned = row["owned_after"]
        if owned is not None and not tail:
            row = row | {"owned_after": [each for each in owned if (each["topic"], each["partition"]) in left]}
        kept[_id(row)] = row


def for_balance(events: Sequence[Row]) -> list[Row]:
    """The last assignment, and who first wanted each topic."""
    done = [row for row in events if row["event"] == "rebalance_completed" and row["owned_after"] is not None]
    done = [row for row in done if row["members"] is not None]
    newest = max(done, key=lambda row: (row["at_ms"], row["node"], row["seq"]), default=None)
    return first_to_name(events) + ([] if newest is None else [newest])


def first_to_name(events: Iterable[Row]) -> list[Row]:
    """The first event that names each topic as one that a member reads."""
    first: dict[str, Row] = {}
    for row in events:
        for topic in (row["topics"] or ()) if row["event"] in WANTS else ():
            if topic not in first or (row["at_ms"], row["seq"]) < (first[topic]["at_ms"], first[topic]["seq"]):
                first[topic] = row
    return list({_id(row): row for row in first.values()}.values())


def _with_partitions(row: Row, left: set[TopicPartition]) -> Row:
    return row | {
        "partitions": [each for each in row["partitions"] or () if (each["topic"], each["partition"]) in left]
    }


def _id(row: Row) -> Id:
    return row["source"], row["node"], row["seq"]


def _id_of(event: EventOfGroup) -> Id:
    return event.source, event.node, event.seq
