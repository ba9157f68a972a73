"""A group's history from its consumers' logs alone, as the events that its coordinator would have written.

A generation is known from the members that joined it; what made it begin follows from who left, who is missing and who
is new. All of it is ``inferred``. Members without a log are known only where a leader of Java lists its assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.groups.membership import STABLE, UUID, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.cluster import ConsumerKey, concluded
from rejoin.pipeline.reading.client_logs.generations import JOINS_MS, LATE_MS, LoggedGeneration, ObservedGenerations

AT_ONCE_MS: Final = 1_000
"""A member that has not polled in time leaves within this."""
_NO_CONSUMER: Final = ("", "")
POLL_TIMEOUT: Final = "consumer poll timeout has expired."
"""Java's reason for leaving a group after a late poll, which other clients do not send."""


class ClientHistory(ObservedGenerations):
    """Follows one group through the statements of its consumers."""

    def events(self, statements: Iterable[Statement]) -> list[EventRow]:
        """The group's events, in order."""
        for statement in statements:
            self._take(statement)
        made = [*self._cluster.events(), *self._of_static_members()]
        if self._kind is not None:
            made += self._of_share_group()
        for series in () if self._kind is not None else self._series:
            self._list_members(series)
            made += self._of_generations(series)
        made.sort(key=lambda row: row["at_ms"])
        for nth, row in enumerate(made):
            # The order of the rows is that of the list: what caused a rebalance comes before it within a millisecond.
            row["order_ms"] = row["at_ms"] * 1_000_000 + nth
        return made

    # --- what follows from it

    def _of_share_group(self) -> Iterator[EventRow]:
        """The members of a share group. They share partitions, so who fell silent follows from no other member's log,
        and an epoch begins no rebalance."""
        came: set[str] = set()
        for generation in (each for series in self._series for each in series):
            for member in generation.joined:
                if member not in came:
                    came.add(member)
                    yield self._joined(member, self._asked_at(generation, member), generation, STABLE)
        for member in came:
            said = self._left_between(member, -1, None)
            if said is not None:
                yield self._removed(member, said.at_ms, said, STABLE)

    def _of_generations(self, series: Sequence[LoggedGeneration]) -> Iterator[EventRow]:
        before: LoggedGeneration | None = None
        for nth, generation in enumerate(series):
            following = series[nth + 1] if nth + 1 < len(series) else None
            yield from self._rebalance(before, generation, following)
            before = generation
        if before is not None:
            yield from self._end(before)

    def _end(self, last: LoggedGeneration) -> Iterator[EventRow]:
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

    def _go_on(self, last: LoggedGeneration, gone: Collection[str], left_at: int) -> bool:
        """Whether members that are left went on as if no rebalance had begun when others left.

        In the consumer protocol, members whose partitions stay log nothing about a new epoch.
        """
        rest = [each for each in last.members_at_the_end if each not in gone]
        if not rest:
            return False
        if any(each.values.get("member") in rest for each in self._signals.between(left_at, None)):
            return False
        until = left_at + (JOINS_MS if last.modern else LATE_MS)
        return any(self._last_seen.get(each, left_at) > until for each in rest)

    def _rebalance(
        self, before: LoggedGeneration | None, generation: LoggedGeneration, following: LoggedGeneration | None
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
        silent = [each for each in gone if leaves[each] is None and self._is_out(each, generation)]
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

    def _is_out(self, member: str, generation: LoggedGeneration) -> bool:
        """Whether a member that is missing in a generation is known to be out of the group.

        Of a member without a log only its leaders' lists are known, and the end of a log is not the end of its member.
        """
        if member not in self._members:
            return False
        if generation.modern or generation.counted or generation.listed:
            return True
        goes_on = self._log_ends.get(self._consumers.get(member, _NO_CONSUMER), 0) > generation.began_at
        return goes_on or self._gone.get(member, generation.ended_at + 1) <= generation.ended_at

    @staticmethod
    def _asked_at(generation: LoggedGeneration, member: str) -> int:
        joined = generation.joined.get(member)
        return generation.asked_at.get(member, generation.began_at if joined is None else joined.at_ms)

    def _completion(
        self, was: list[str], generation: LoggedGeneration, following: LoggedGeneration | None, began: int
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

    def _signs(self, was: Iterable[str], before: LoggedGeneration | None, until: int) -> list[Statement]:
        """Statements of the previous generation's members when they learned of the next one."""
        there = set(was)
        if not there:
            return []
        since = 0 if before is None else before.began_at
        # In the consumer protocol, and where generations are counted, not every member has a line about each.
        exact = before is not None and not before.modern and not before.counted
        done = {**before.joined, **before.synced} if before is not None and exact else {}
        return [
            each
            for each in self._signals.between(since, until)
            if each.kind in ("rejoin_requested", "join_sent")
            and (member := each.values.get("member")) in there
            and (done[member].at_ms if member in done else since) < each.at_ms
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
        late = self._late.get(member)
        return POLL_TIMEOUT if late is not None and late.between(left_at - AT_ONCE_MS - 1, left_at) else None

    def _about(self, member: str) -> dict[str, Any]:
        known = self._members.get(member)
        client = UUID.sub("", member) if UUID.search(member) else None
        if known is None:
            return {"member_id": member, "client_id": client}
        return {"member_id": member, "client_id": known.client_id or client, "group_instance_id": known.instance}

    def _joined(self, member: str, at_ms: int, generation: LoggedGeneration, state: str) -> EventRow:
        known = self._members[member]
        return self._event(
            "member_joined",
            at_ms,
            generation.joined.get(member) or next(iter(generation.joined.values())),
            **self._about(member),
            state=state,
            other_member_id=generation.was.get(member),
            kind=self._kind or ("consumer" if generation.modern else None),
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


_NO_REASONS: Final = (
    *("group is already rebalancing", "rebalance failed", "consumer pro-actively", "encountered "),
    *("Group is rebalancing", "group rejoin", "Unassignment done"),
)
"""Prefixes of reasons without a cause: the group already rebalances, or the member is out of it."""


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
