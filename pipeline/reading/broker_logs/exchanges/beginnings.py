"""The request that began each rebalance of a classic group, as far as the group's requests alone show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rejoin.pipeline.reading.broker_logs.generations import GenerationExchanges, SourcedExchange
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN
from rejoin.pipeline.reading.request_log import leaving


class Beginning(NamedTuple):
    """A request that may have begun a rebalance, with the columns of its cause."""

    at_ms: int
    asked: SourcedExchange
    cause: dict[str, Any]


class Beginnings:
    """The request that began each rebalance, where requests show one: the first of the candidates."""

    def __init__(self, asked: list[SourcedExchange], away: list[tuple[int, int]]) -> None:
        self._away = away
        self._asked = sorted(asked, key=lambda one: one.exchange.arrived_at_ms)
        self.left: dict[str, Beginning] = {}
        for each in self._asked:
            if each.exchange.api == "LEAVE_GROUP":
                for member, instance, reason in leaving(each.exchange):
                    cause = {
                        "cause": "leave",
                        "cause_member_id": member or None,
                        "cause_group_instance_id": instance,
                        "client_reason": reason,
                    }
                    columns = {name: value for name, value in cause.items() if value is not None}
                    self.left[member] = Beginning(each.exchange.answered_at_ms, each, columns)

    def emptied(
        self, before: GenerationExchanges | None, after: GenerationExchanges | None
    ) -> GenerationExchanges | None:
        """The generation without members behind one whose members all left before another one joined; else None.

        ``after``: the next generation that requests show, if there is one.
        """
        if before is None or not before.members_since or before.ended is None:
            return None
        ends = [self.left[member] for member in before.members_since if member in self.left]
        last = max(ends, key=lambda each: (each.at_ms, each.asked.exchange.line), default=None)
        since = (before.assigned or before.ended).exchange.answered_at_ms
        if last is None or len(ends) < len(before.members_since) or last.at_ms < since:
            return None
        if after is not None and (
            after.generation < before.generation + 2
            or any(asked.exchange.arrived_at_ms < last.at_ms for _, asked in after.joins.values())
        ):
            return None
        return GenerationExchanges(before.generation + 1, ended=last.asked)

    def of(self, round_: GenerationExchanges, before: GenerationExchanges | None) -> Beginning:
        """The beginning of a generation's rebalance."""
        assert round_.ended is not None, "a round has begun with an answer"
        since = -1
        if before is not None and before.ended is not None:
            stable = before.assigned or before.ended
            since = stable.exchange.answered_at_ms
        until = round_.ended.exchange.answered_at_ms
        found = [
            each
            for each in self._candidates(round_, before)
            if since <= each.at_ms <= until and not (before is not None and _is_of(before, each))
        ]
        if found:
            return min(found, key=lambda each: each.at_ms)
        return Beginning(round_.ended.exchange.arrived_at_ms, round_.ended, {"cause": UNKNOWN})

    def _candidates(self, round_: GenerationExchanges, before: GenerationExchanges | None) -> Iterator[Beginning]:
        were = before.members_since if before is not None else []
        known = set(were)
        for member_id in were:
            if member_id in self.left:
                yield self.left[member_id]
        for member_id, (member, asked) in round_.joins.items():
            cause = "join-new" if member_id not in known else "rejoin-metadata"
            if before is not None and member_id in known and member_id == before.leader:
                cause = "rejoin-leader"
            columns = {"cause": cause, "cause_member_id": member_id}
            if member.group_instance_id is not None:
                columns["cause_group_instance_id"] = member.group_instance_id
            reason = asked.exchange.request.get("reason")
            if reason:
                columns["client_reason"] = reason
            yield Beginning(asked.exchange.arrived_at_ms, asked, columns)
        gone = [each for each in were if each not in round_.members]
        missed = next((each for each in gone if each not in self.left), None)
        if missed is None:
            return
        ends = self.session_ends(missed)
        for each in self._asked:
            exchange = each.exchange
            if exchange.error != "REBALANCE_IN_PROGRESS" or exchange.api not in ("HEARTBEAT", "OFFSET_COMMIT"):
                continue
            # A rebalance is in progress that no request began: a member's session ended, if it can have ended by then.
            if ends is None or ends <= exchange.answered_at_ms:
                at = self._expired_at(missed, ends, exchange.arrived_at_ms)
                yield Beginning(at, each, {"cause": "session-expiry", "cause_member_id": missed})

    def session_ends(self, member_id: str) -> int | None:
        """When a member's session ends at the earliest: its timeout after its last request, if both are known."""
        last = timeout = None
        for each in self._asked:
            exchange = each.exchange
            if exchange.member_id == member_id and exchange.error is None:
                last = exchange.arrived_at_ms
                if exchange.api == "JOIN_GROUP":
                    # The session of a member that waits for its answer begins with that.
                    last = exchange.answered_at_ms
                    timeout = exchange.request.get("sessionTimeoutMs")
        if last is None or not isinstance(timeout, int):
            return None
        # Without a coordinator no session ends; the one that loads the group begins them anew.
        loaded = [load for stop, load in self._away if last <= stop and stop - last < timeout]
        return max(last + timeout, *loaded) if loaded else last + timeout

    def _expired_at(self, member_id: str, ends: int | None, seen_at: int) -> int:
        """When a session ended that was over by ``seen_at``.

        It had not ended while another member's heartbeat was answered without an error.
        """
        if ends is None:
            return seen_at
        latest = 0
        for each in self._asked:
            exchange = each.exchange
            if exchange.answered_at_ms >= seen_at:
                break
            if exchange.api == "HEARTBEAT" and exchange.error is None and exchange.member_id != member_id:
                latest = max(latest, exchange.answered_at_ms)
        return min(max(ends, latest), seen_at)


def _is_of(round_: GenerationExchanges, beginning: Beginning) -> bool:
    """Whether what might have begun the next rebalance was answered before this one was over, within the same ms."""
    stable, asked = round_.assigned or round_.ended, beginning.asked
    if stable is None or stable.file != asked.file:
        return False
    return (asked.exchange.answered_at_ms, asked.exchange.line) <= (
        stable.exchange.answered_at_ms,
        stable.exchange.line,
    )
