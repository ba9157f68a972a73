"""A group's history from its consumers' logs alone, as the events that its coordinator would have written.

A generation is known from the members that joined it; what made it begin follows from who left, who is missing and who
is new. All of it is ``inferred``. Members without a log are known only where a leader of Java lists its assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.membership import STABLE, UUID, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.cluster import ConsumerKey, ObservedCluster, concluded
from rejoin.pipeline.reading.client_logs.logged_consumer import UNNAMED

LATE_MS: Final = 60_000
"""A generation that joins so long after a higher one is of a group that began anew."""
JOINS_MS: Final = 2_000
"""Members of a generation have joined within this: the coordinator answers all of them at once."""
AT_ONCE_MS: Final = 1_000
"""A member that has not polled in time leaves within this."""
POLL_TIMEOUT: Final = "consumer poll timeout has expired."
"""Java's reason for leaving a group after a late poll, which other clients do not send."""


@dataclass(slots=True)
class _Member:
    """A member as its own log shows it."""

    member_id: str
    client_id: str | None
    instance: str | None
    settings: dict[str, Any]


@dataclass(slots=True)
class _Generation:
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
    """Whether its number is counted, as its client does not log it."""

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


class ClientHistory:
    """Follows one group through the statements of its consumers, in the order of their times."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._members: dict[str, _Member] = {}
        self._asked: dict[ConsumerKey, Statement] = {}
        self._series: list[list[_Generation]] = [[]]
        self._signals: list[Statement] = []
        self._left: dict[str, list[Statement]] = {}
        self._late: dict[str, list[int]] = {}
        self._cluster = ObservedCluster(group_id)
        self._replaced: list[tuple[Statement, str, str]] = []
        self._owners: dict[tuple[str, int], str] = {}
        self._of_consumer: dict[ConsumerKey, str] = {}
        self._last_seen: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        """Members that must be gone by then: another one has their partitions, or their consumer joins anew."""

    def events(self, statements: Iterable[Statement]) -> list[EventRow]:
        """The group's events, in order."""
        for statement in statements:
            self._take(statement)
        made = [*self._cluster.events(), *self._of_static_members()]
        for series in self._series:
            self._list_members(series)
            made += self._of_generations(series)
        made.sort(key=lambda row: row["at_ms"])
        for nth, row in enumerate(made):
            # The order of the rows is that of the list: what caused a rebalance comes before it within a millisecond.
            row["order_ms"] = row["at_ms"] * 1_000_000 + nth
        return made

    # --- what consumers say

    def _take(self, statement: Statement) -> None:
        kind, values = statement.kind, statement.values
        who = (statement.node, str(values.get("consumer")))
        member = values.get("member") or ""
        self._cluster.take(statement, who)
        self._follow_owners(statement, who, member)
        if kind == "join_sent":
            self._asked.setdefault(who, statement)
            self._signals.append(statement)
        elif kind in ("rejoin_requested", "partitions_revoked"):
            self._signals.append(statement)
        elif kind in ("generation_joined", "epoch_reached"):
            self._join(statement, who, member)
        elif kind == "group_synced":
            generation = self._find(int(values["generation"]), statement)
            if generation is not None and member in generation.joined:
                generation.synced[member] = statement
            self._asked.pop(who, None)
        elif kind == "assignment" and (generation := self._find(int(values["generation"]), statement)) is not None:
            if UNNAMED in member:
                # Java from 2.4 to 2.6 lists members by their ids, and names none where they join.
                return
            generation.listed = tuple(values["given"])
            generation.leader = member or None
        elif kind == "group_left" and member:
            self._left.setdefault(member, []).append(statement)
        elif kind == "poll_timeout_exceeded" and member:
            self._late.setdefault(member, []).append(statement.at_ms)

    def _follow_owners(self, statement: Statement, who: ConsumerKey, member: str) -> None:
        """Note who has which partition, and which members that shows to be gone."""
        partitions = [tuple(each) for each in statement.values.get("partitions", ())]
        former = self._of_consumer.get(who)
        if statement.kind == "join_sent" and former and (statement.values.get("fresh") or former != member):
            self._gone.setdefault(former, statement.at_ms)
        if member:
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

    def _list_members(self, series: Sequence[_Generation]) -> None:
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
            self._members[member] = _Member(member, values.get("client_id"), instance, settings)
        if statement.kind == "generation_joined" and values.get("modern") is None:
            self._asked[who] = asked
        series = self._series[-1]
        if series and number < series[-1].number and statement.at_ms > series[-1].ended_at + LATE_MS:
            series = []
            self._series.append(series)
        generation = next((each for each in reversed(series) if each.number == number), None)
        if generation is None:
            counted = int(values["generation"]) < 0
            generation = _Generation(number, modern=bool(values.get("modern")), counted=counted)
            series.append(generation)
            series.sort(key=lambda each: each.number)
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
            was = "" if asked.values.get("fresh") else asked.values.get("was") or None
            generation.was.setdefault(member, was)
        generation.joined.setdefault(member, statement)
        generation.protocol = values.get("assignor") or generation.protocol

    def _number(self, statement: Statement, member: str) -> int:
        """The number of a generation that its client does not log: members join it within a moment of each other."""
        series = self._series[-1]
        if not series:
            return 1
        last = series[-1]
        is_same = member not in last.joined and statement.at_ms - last.began_at <= JOINS_MS
        return last.number if is_same else last.number + 1

    def _find(self, number: int, statement: Statement) -> _Generation | None:
        found = (each for each in reversed(self._series[-1]) if number in (each.number, -1))
        return next(found, None)

    # --- what follows from it

    def _of_generations(self, series: Sequence[_Generation]) -> Iterator[EventRow]:
        before: _Generation | None = None
        for nth, generation in enumerate(series):
            following = series[nth + 1] if nth + 1 < len(series) else None
            yield from self._rebalance(before, generation, following)
            before = generation
        if before is not None:
            yield from self._end(before)

    def _end(self, last: _Generation) -> Iterator[EventRow]:
        """Who left after the last generation: that began a rebalance, which emptied the group where all of them left.

        Its end is in no log where members are left: theirs end before they have joined another generation.
        """
        members = last.members_at_the_end
        leaves = [(each, self._left_between(each, last.began_at, None)) for each in members]
        left = sorted(((said.at_ms, each, said) for each, said in leaves if said is not None), key=lambda one: one[:2])
        gone = {member for _, member, _ in left}
        is_empty = bool(left) and len(gone) == len(members) and bool(last.synced)
        begins = is_empty or (bool(left) and bool(last.synced) and not self._go_on(last, gone, left[0][0]))
        for nth, (at_ms, member, said) in enumerate(left):
            yield self._removed(member, at_ms, said, "PreparingRebalance" if nth and begins else STABLE)
            if not nth and begins:
                why = said.values.get("reason") or self._poll_timeout(member, at_ms)
                yield self._event(
                    "rebalance_started",
                    at_ms,
                    said,
                    generation=last.number,
                    previous_state=STABLE,
                    initial=False,
                    members=members,
                    group_type="consumer" if last.modern else "classic",
                    **self._by(member, "leave", why),
                )
        if is_empty:
            began, _, _ = left[0]
            at_ms, _, said = left[-1]
            yield self._event("group_emptied", at_ms, said, generation=last.number + 1, rebalance_ms=at_ms - began)

    def _go_on(self, last: _Generation, gone: Collection[str], left_at: int) -> bool:
        """Whether members that are left went on as if no rebalance had begun when others left.

        In the consumer protocol, members whose partitions stay log nothing about a new epoch.
        """
        rest = [each for each in last.members_at_the_end if each not in gone]
        if any(each.at_ms > left_at and each.values.get("member") in rest for each in self._signals):
            return False
        until = left_at + (JOINS_MS if last.modern else LATE_MS)
        return any(self._last_seen.get(each, left_at) > until for each in rest)

    def _left_between(self, member: str, since: int, until: int | None) -> Statement | None:
        """What a member said when it left behind one instant and up to another."""
        found = (each for each in self._left.get(member, ()) if since < each.at_ms <= (until or each.at_ms))
        return next(found, None)

    def _rebalance(
        self, before: _Generation | None, generation: _Generation, following: _Generation | None
    ) -> Iterator[EventRow]:
        was = [] if before is None else before.members_at_the_end
        members = generation.members
        since = 0 if before is None else before.began_at
        leaves = {each: self._left_between(each, since, generation.ended_at) for each in was}
        back = [each for each in generation.asked_at if generation.modern and leaves.get(each)]
        new = [each for each in members if each not in was or each in back]
        gone = [each for each in was if each not in members or each in back]
        left = sorted((said.at_ms, each) for each in gone if (said := leaves[each]) is not None)
        asked = sorted((self._asked_at(generation, each), each) for each in new if each in self._members)
        silent = [each for each in gone if leaves[each] is None]
        signs = self._signs(was, before, generation.began_at)
        first = min([at for at, _ in left] + [at for at, _ in asked] + [each.at_ms for each in signs[:1]], default=0)
        began = first or generation.began_at
        cause = self._cause(left, asked, silent, signs, leaves)
        source = signs[0] if signs else next(iter(generation.joined.values()))
        state = STABLE if before is not None and before.synced else "PreparingRebalance" if before else "Empty"
        if left and cause["cause"] == "leave":
            yield self._removed(left[0][1], left[0][0], leaves[left[0][1]], STABLE)
        if silent and cause["cause"] == "session-expiry":
            yield self._removed(silent[0], began, source, STABLE, "session-expiry")
        if asked and cause["cause"] == "join-new":
            yield self._joined(asked[0][1], asked[0][0], generation, STABLE)
        yield self._event(
            "rebalance_started",
            began,
            source,
            generation=0 if before is None else before.number,
            previous_state=state,
            initial=before is None,
            members=was,
            group_type="consumer" if generation.modern else "classic",
            **cause,
        )
        for at, member in left:
            if member != cause.get("cause_member_id"):
                yield self._removed(member, max(at, began), leaves[member], "PreparingRebalance")
        for member in silent:
            if member != cause.get("cause_member_id"):
                yield self._removed(member, began, source, "PreparingRebalance", "session-expiry")
        for at, member in asked:
            if member != cause.get("cause_member_id"):
                yield self._joined(member, max(at, began), generation, "PreparingRebalance")
        yield from self._completion(was, generation, following, began)

    @staticmethod
    def _asked_at(generation: _Generation, member: str) -> int:
        joined = generation.joined.get(member)
        return generation.asked_at.get(member, generation.began_at if joined is None else joined.at_ms)

    def _completion(
        self, was: list[str], generation: _Generation, following: _Generation | None, began: int
    ) -> Iterator[EventRow]:
        joined = max(each.at_ms for each in generation.joined.values())
        if following is not None:
            joined = min(joined, following.began_at)
        last = next(iter(generation.joined.values()))
        about = {"generation": generation.number, "members": generation.members, "protocol": generation.protocol}
        yield self._event("join_phase_ended", max(began, joined), last, leader=generation.leader, **about)
        if generation.synced:
            ended = generation.ended_at if following is None else min(generation.ended_at, following.began_at)
            yield self._event(
                "rebalance_completed",
                max(began, joined, ended),
                last,
                leader=generation.leader,
                members_before=was,
                join_ms=max(began, joined) - began,
                **about,
            )

    def _signs(self, was: Iterable[str], before: _Generation | None, until: int) -> list[Statement]:
        """What members of the generation before did when they learned that another one had to come."""
        there = set(was)
        since = 0 if before is None else before.began_at
        # In the consumer protocol, and where generations are counted, not every member has a line about each.
        exact = before is not None and not before.modern and not before.counted
        done = {**before.joined, **before.synced} if before is not None and exact else {}
        return [
            each
            for each in self._signals
            if each.kind in ("rejoin_requested", "join_sent")
            and (member := each.values.get("member")) in there
            and (done[member].at_ms if member in done else since) < each.at_ms <= until
        ]

    def _cause(
        self,
        left: Sequence[tuple[int, str]],
        asked: Sequence[tuple[int, str]],
        silent: Sequence[str],
        signs: Sequence[Statement],
        leaves: Mapping[str, Statement | None],
    ) -> dict[str, Any]:
        learned = signs[0].at_ms if signs else None
        reason = next((each.values["reason"] for each in signs if _says_why(each)), None)
        if left and (not asked or left[0][0] <= asked[0][0]):
            member = left[0][1]
            said = leaves[member]
            why = None if said is None else said.values.get("reason")
            return self._by(member, "leave", why or self._poll_timeout(member, left[0][0]))
        if asked and not (silent and learned is not None and learned < asked[0][0]):
            return self._by(asked[0][1], "join-new", None)
        if silent:
            return self._by(silent[0], "session-expiry", None)
        if reason is not None:
            who = next(each for each in signs if _says_why(each))
            cause = "rejoin-leader" if reason.startswith("cached metadata") else "rejoin-metadata"
            return self._by(who.values["member"], cause, reason)
        return {"cause": "unknown"}

    def _by(self, member: str, cause: str, reason: str | None) -> dict[str, Any]:
        known = self._members.get(member)
        return {
            "cause": cause,
            "cause_member_id": member,
            "cause_group_instance_id": None if known is None else known.instance,
            "client_reason": reason,
        }

    # --- rows

    def _event(self, event: str, at_ms: int, source: Statement, **columns: Any) -> EventRow:
        return concluded(self.group_id, event, at_ms, source, **columns)

    def _poll_timeout(self, member: str, left_at: int) -> str | None:
        """The reason of a member that left since it had not polled in time, if it did."""
        return POLL_TIMEOUT if any(0 <= left_at - at <= AT_ONCE_MS for at in self._late.get(member, ())) else None

    def _about(self, member: str) -> dict[str, Any]:
        known = self._members.get(member)
        client = UUID.sub("", member) if UUID.search(member) else None
        if known is None:
            return {"member_id": member, "client_id": client}
        return {"member_id": member, "client_id": known.client_id or client, "group_instance_id": known.instance}

    def _joined(self, member: str, at_ms: int, generation: _Generation, state: str) -> EventRow:
        known = self._members[member]
        return self._event(
            "member_joined",
            at_ms,
            generation.joined.get(member) or next(iter(generation.joined.values())),
            **self._about(member),
            state=state,
            other_member_id=generation.was.get(member),
            kind="consumer" if generation.modern else None,
            **known.settings,
        )

    def _removed(self, member: str, at_ms: int, source: Statement | None, state: str, cause: str = "left") -> EventRow:
        assert source is not None, "who is gone has left, or others show it"
        why = source.values.get("reason") if cause == "left" else None
        if cause == "left":
            why = why or self._poll_timeout(member, source.at_ms)
        return self._event(
            "member_removed", at_ms, source, **self._about(member), cause=cause, state=state, client_reason=why
        )

    def _of_static_members(self) -> Iterator[EventRow]:
        for statement, old, new in self._replaced:
            yield self._event(
                "static_member_replaced",
                statement.at_ms,
                statement,
                **self._about(new),
                other_member_id=old,
                state=STABLE,
                rebalance=False,
            )


def _says_why(statement: Statement) -> bool:
    reason = statement.values.get("reason")
    return statement.kind == "rejoin_requested" and reason is not None and not reason.startswith(_NO_REASONS)


_NO_REASONS: Final = ("group is already rebalancing", "rebalance failed", "consumer pro-actively", "encountered ")
"""How the reasons begin that only say that the group rebalances already, or that the member is out of it."""


def complete_from_clients(events: Iterable[EventRow], statements: Iterable[Statement]) -> Iterator[EventRow]:
    """The events of a broker's log with what only the consumers' logs have of its members: whether a member's process
    was there before, and the timeouts that it was started with."""
    known: dict[str, dict[str, Any]] = {}
    asked: dict[ConsumerKey, Statement] = {}
    for statement in statements:
        values = statement.values
        who = (statement.node, str(values.get("consumer")))
        if statement.kind == "join_sent":
            asked[who] = statement
        elif statement.kind == "generation_joined" and values.get("member"):
            came = asked.get(who)
            was = None if came is None else "" if came.values.get("fresh") else came.values.get("was")
            named = {name: values.get(name) for name in ("client_id", "session_timeout_ms", "rebalance_timeout_ms")}
            known.setdefault(values["member"], {"other_member_id": was or (was if was == "" else None), **named})
    for event in events:
        about = known.get(event.get("member_id", ""), {})
        names = about if event["event"] == "member_joined" else ("client_id",)
        yield {name: about[name] for name in names if about.get(name) is not None} | event
