"""The generations of a group as its consumers' logs show them.

A generation is known from the members that joined it. Members without a log are known only where a leader of Java lists
its assignment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.cluster import ConsumerKey, ObservedCluster
from rejoin.pipeline.reading.client_logs.logged_consumer.state import UNNAMED

LATE_MS: Final = 60_000
"""A generation that joins so long after a higher one is of a group that began anew."""
JOINS_MS: Final = 2_000
"""Members of a generation have joined within this: the coordinator answers all of them at once."""


@dataclass(slots=True)
class JoiningMember:
    """A member as its own log shows it."""

    member_id: str
    client_id: str | None
    instance: str | None
    settings: dict[str, Any]


@dataclass(slots=True)
class LoggedGeneration:
    """One generation, from the lines of those that joined it."""

    number: int
    joined: dict[str, Statement] = field(default_factory=dict)
    synced: dict[str, Statement] = field(default_factory=dict)
    asked_at: dict[str, int] = field(default_factory=dict)
    was: dict[str, str | None] = field(default_factory=dict)
    """Members to the ids that their processes had before; empty for a new process."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Static members that came back while it lasted: their old ids to the new ones."""
    listed: tuple[str, ...] = ()
    leader: str | None = None
    protocol: str | None = None
    modern: bool = False
    counted: bool = False
    """Whether the generation's number is counted, as the client does not log it."""

    @property
    def began_at(self) -> int:
        return min(each.at_ms for each in self.joined.values())

    @property
    def ended_at(self) -> int:
        return max([each.at_ms for each in self.synced.values()] or [self.began_at])

    @property
    def members(self) -> list[str]:
        """The members when the generation began."""
        return list(self.listed) if self.modern else list(dict.fromkeys([*self.joined, *self.listed]))

    @property
    def members_at_the_end(self) -> list[str]:
        return [self._newest(each) for each in self.members]

    def _newest(self, member: str) -> str:
        for _ in self.renamed:
            member = self.renamed.get(member, member)
        return member


class StatementsByTime:
    """Statements in the order in which they were added, any period of which is found without reading the others."""

    def __init__(self) -> None:
        self._added: list[Statement] = []
        self._at: list[tuple[int, int]] = []
        """Time and index of each, in the order of times."""

    def add(self, statement: Statement) -> None:
        """Add one; most are newer than all before."""
        insort(self._at, (statement.at_ms, len(self._added)))
        self._added.append(statement)

    def between(self, since: int, until: int | None) -> list[Statement]:
        """Statements later than ``since`` and up to ``until``."""
        first = bisect_right(self._at, since, key=_time)
        end = len(self._at) if until is None else bisect_right(self._at, until, key=_time)
        return [self._added[nth] for nth in sorted(nth for _, nth in self._at[first:end])]


def _time(of: tuple[int, int]) -> int:
    return of[0]


def _numbered(series: Sequence[LoggedGeneration], number: int) -> LoggedGeneration | None:
    """The generation of a number. A series is in the order of its numbers."""
    at = bisect_left(series, number, key=_number_of)
    return series[at] if at < len(series) and series[at].number == number else None


def _number_of(generation: LoggedGeneration) -> int:
    return generation.number


class ObservedGenerations:
    """Collects one group's generations from the statements of its consumers, in the order of their times."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._members: dict[str, JoiningMember] = {}
        self._asked: dict[ConsumerKey, Statement] = {}
        self._subscribing: set[ConsumerKey] = set()
        """Consumers that have subscribed since they last joined."""
        self._series: list[list[LoggedGeneration]] = [[]]
        self._signals = StatementsByTime()
        self._left: defaultdict[str, StatementsByTime] = defaultdict(StatementsByTime)
        self._late: defaultdict[str, StatementsByTime] = defaultdict(StatementsByTime)
        self._cluster = ObservedCluster(group_id)
        self._replaced: list[tuple[Statement, str, str]] = []
        self._owners: dict[tuple[str, int], str] = {}
        self._of_consumer: dict[ConsumerKey, str] = {}
        self._last_seen: dict[str, int] = {}
        self._consumers: dict[str, ConsumerKey] = {}
        self._log_ends: dict[ConsumerKey, int] = {}
        self._gone: dict[str, int] = {}
        """Members that must be gone by then: another one has their partitions, or their consumer joins anew."""
        self._kind: str | None = None
        """share or streams: such groups have no rebalances."""

    def _take(self, statement: Statement) -> None:
        kind, values = statement.kind, statement.values
        who = (statement.node, str(values.get("consumer")))
        member = values.get("member") or ""
        if values.get("group_protocol") in ("share", "streams"):
            self._kind = values["group_protocol"]
        self._cluster.take(statement, who)
        self._follow_owners(statement, who, member)
        if kind == "join_sent":
            self._asked.setdefault(who, statement)
            self._signals.add(statement)
        elif kind in ("rejoin_requested", "partitions_revoked"):
            self._signals.add(statement)
        elif kind in ("generation_joined", "epoch_reached"):
            self._join(statement, who, member)
        elif kind == "group_synced":
            generation = self._find(int(values["generation"]), statement)
            if generation is not None and member in generation.joined:
                generation.synced[member] = statement
            self._asked.pop(who, None)
            self._subscribing.discard(who)
        elif kind == "subscribing":
            self._subscribing.add(who)
        elif kind == "assignment" and (generation := self._find(int(values["generation"]), statement)) is not None:
            if UNNAMED in member:
                # Java from 2.4 to 2.6 lists members by their ids, and names none where they join.
                return
            generation.listed = tuple(values["given"])
            generation.leader = member or None
        elif kind == "group_left" and member:
            self._left[member].add(statement)
        elif kind == "poll_timeout_exceeded" and member:
            self._late[member].add(statement)

    def _follow_owners(self, statement: Statement, who: ConsumerKey, member: str) -> None:
        """Note who has which partition, and which members that shows to be gone."""
        partitions = [tuple(each) for each in statement.values.get("partitions", ())]
        former = self._of_consumer.get(who)
        if statement.kind == "join_sent" and former and (statement.values.get("fresh") or former != member):
            self._gone.setdefault(former, statement.at_ms)
        self._log_ends[who] = statement.at_ms
        if member:
            self._consumers[member] = who
            self._of_consumer[who] = member
            self._last_seen[member] = statement.at_ms
        for each in partitions:
            owner = self._owners.get(each)
            if statement.kind == "partitions_assigned":
                if owner not in (None, member):
                    self._gone.setdefault(str(owner), statement.at_ms)
                self._owners[each] = member
            elif owner == member:
                self._owners.pop(each, None)

    def _list_members(self, series: Sequence[LoggedGeneration]) -> None:
        """The members of each epoch of the consumer protocol, where only those whose partitions change log anything.

        One that fell silent is gone from the first epoch for which nothing else is the reason.
        """
        there: list[str] = []
        for nth, generation in enumerate(series):
            if generation.counted:
                before = series[nth - 1].members if nth else []
                # Two rebalances in a moment look like one, or one like two: who goes on is not gone.
                kept = [each for each in before if self._last_seen[each] > generation.ended_at]
                generation.listed = tuple(dict.fromkeys([*kept, *generation.joined]))
            if not generation.modern:
                continue
            end = series[nth + 1].began_at if nth + 1 < len(series) else generation.ended_at
            since = series[nth - 1].began_at if nth else 0
            left = [each for each in there if self._left_between(each, since, generation.began_at)]
            new = [each for each in generation.joined if each not in there or each in left]
            kept = [each for each in there if each not in left]
            silent = [each for each in kept if each in self._gone and self._last_seen[each] < generation.began_at]
            due = [each for each in silent if self._gone[each] <= end]
            gone = due or ([] if new or left else silent[:1])
            there = [*(each for each in kept if each not in gone), *new]
            generation.listed = tuple(there)

    def _join(self, statement: Statement, who: ConsumerKey, member: str) -> None:
        values = statement.values
        number = int(values["generation"])
        if number < 0 and statement.kind == "generation_joined":
            number = self._number(statement, member)
        asked = self._asked.get(who, statement)
        instance = values.get("instance")
        if member not in self._members:
            settings = {name: values.get(name) for name in ("session_timeout_ms", "rebalance_timeout_ms")}
            self._members[member] = JoiningMember(member, values.get("client_id"), instance, settings)
        if statement.kind == "generation_joined" and values.get("modern") is None:
            self._asked[who] = asked
        series = self._series[-1]
        if series and number < series[-1].number and statement.at_ms > series[-1].ended_at + LATE_MS:
            series = []
            self._series.append(series)
        generation = _numbered(series, number)
        if generation is None:
            counted = int(values["generation"]) < 0
            generation = LoggedGeneration(number, modern=bool(values.get("modern")), counted=counted)
            insort(series, generation, key=_number_of)
        elif instance is not None and member not in (*generation.joined, *generation.renamed.values()):
            there = [each for each in generation.members_at_the_end if each in self._members]
            old = next((each for each in there if self._members[each].instance == instance), None)
            if old not in (None, member) and generation.synced:
                # Kafka: KIP-345. A static member that comes back gets its place, and no rebalance begins.
                self._replaced.append((statement, old, member))
                generation.renamed[old] = member
                return
        if statement.kind == "generation_joined" and asked.kind == "join_sent":
            generation.asked_at.setdefault(member, asked.at_ms)
            generation.was.setdefault(member, self._former(asked, who, member))
        generation.joined.setdefault(member, statement)
        generation.protocol = values.get("assignor") or generation.protocol

    def _former(self, asked: Statement, who: ConsumerKey, member: str) -> str | None:
        """The id that a member's process had before: empty for a new process, None where the log does not show it."""
        if asked.values.get("fresh"):
            return ""
        had = asked.values.get("member")
        # A process that asks to join under one id and gets another goes on, but one that has subscribed may be new.
        went_on = had and had != member and who not in self._subscribing
        return asked.values.get("was") or (had if went_on else None)

    def _number(self, statement: Statement, member: str) -> int:
        """The number of a generation that its client does not log: members join it within a moment of each other."""
        series = self._series[-1]
        if not series:
            return 1
        last = series[-1]
        is_same = member not in last.joined and statement.at_ms - last.began_at <= JOINS_MS
        return last.number if is_same else last.number + 1

    def _find(self, number: int, statement: Statement) -> LoggedGeneration | None:
        series = self._series[-1]
        return _numbered(series, number) if number >= 0 or not series else series[-1]

    def _left_between(self, member: str, since: int, until: int | None) -> Statement | None:
        """A member's newest statement that it left, behind ``since`` and up to ``until``."""
        left = self._left.get(member)
        found = left.between(since, until) if left is not None else []
        return found[0] if found else None
