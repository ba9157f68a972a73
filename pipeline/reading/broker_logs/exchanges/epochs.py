"""A group of the newer protocols from the heartbeats of its members alone (KIP-848, KIP-932, KIP-1071).

A heartbeat's answer has the member's epoch and, where it changed, its assignment. A group's epoch is the highest that a
member was answered with. Why it rose is concluded from what came first: a member that joined, left, subscribed to
other topics, or was never heard of again. A rebalance is over with the last answer that brought a member to the epoch,
or brought it other partitions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.exchanges.progress import Partitions, Rest, Rise, SeenMember
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames, partition_rows, partitions_in
from rejoin.pipeline.reading.broker_logs.generations import (
    PartitionOwners,
    SourcedExchange,
    event_row,
    moves_to,
)
from rejoin.pipeline.reading.broker_logs.groups.membership import EMPTY, EXACT, INFERRED, STABLE, EventRow
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN

RECONCILING: Final = "Reconciling"
SILENT_MS: Final = 5_000
"""A member is not taken for lost before it was silent for this long: brokers allow no shorter sessions."""
_ENDED: Final = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
_LEAVES, _AWAY, _JOINS = -1, -2, 0


class HeartbeatHistory:
    """Follows one group. Its exchanges go in all at once: what a member did later says what became of it."""

    group_type: str = "consumer"
    has_rebalances = True
    """False where the members of a group never wait for each other."""

    def __init__(self, group_id: str, asked: Iterable[SourcedExchange], names: TopicNames) -> None:
        self._group_id = group_id
        self._asked = sorted(asked, key=lambda one: (one.exchange.answered_at_ms, one.file, one.exchange.line))
        self._names = names
        self._of_member: dict[str, list[int]] = {}
        for index, each in enumerate(self._asked):
            if each.exchange.member_id is not None:
                self._of_member.setdefault(each.exchange.member_id, []).append(index)
        self._members: dict[str, SeenMember] = {}
        self._owners: PartitionOwners = {}
        self._epoch: int | None = None
        self._assignor: str | None = None
        self._rise: Rise | None = None
        self._rest: Rest | None = None
        self._trigger: dict[str, Any] | None = None
        self._out: list[EventRow] = []
        self._index = 0

    def events(self) -> Iterator[EventRow]:
        """All events. They are in order by ``order_ms`` and the line that shows each."""
        for index, each in enumerate(self._asked):
            self._index = index
            self._take(each)
            yield from self._taken()
        self._settle()
        yield from self._taken()

    def _taken(self) -> list[EventRow]:
        out, self._out = self._out, []
        return out

    def _emit(self, asked: SourcedExchange, name: str, confidence: str = EXACT, /, **columns: Any) -> None:
        row = event_row(asked, name, confidence, asked.exchange.answered_at_ms) | {"group_id": self._group_id}
        self._out.append(row | {column: value for column, value in columns.items() if value is not None})

    # --- one exchange

    def _take(self, each: SourcedExchange) -> None:
        exchange = each.exchange
        member_id, asked_epoch = exchange.member_id, exchange.request.get("memberEpoch")
        if member_id is None or type(asked_epoch) is not int:
            return
        if exchange.error is not None:
            self._refused(each, member_id, asked_epoch)
        elif asked_epoch == _LEAVES:
            self._left(each, member_id)
        elif asked_epoch == _AWAY:
            self._went_away(each, member_id)
        else:
            self._answered(each, member_id, asked_epoch)

    def _refused(self, each: SourcedExchange, member_id: str, asked_epoch: int) -> None:
        error, member = each.exchange.error, self._members.get(member_id)
        instance = each.exchange.request.get("instanceId") or (member.instance if member is not None else None)
        if error == "FENCED_MEMBER_EPOCH":
            self._emit(
                each, "member_epoch_fenced", member_id=member_id, group_instance_id=instance, member_epoch=asked_epoch
            )
        elif error == "UNKNOWN_MEMBER_ID" and member is not None:
            self._lost(each, member_id, member)

    def _left(self, each: SourcedExchange, member_id: str) -> None:
        member = self._members.get(member_id)
        if member is None:
            return
        self._come_to_rest()
        self._remove(each, member_id, member, "left", EXACT)
        self._bump(each, (self._epoch or 0) + 1, self._caused("leave", member_id, member))

    def _went_away(self, each: SourcedExchange, member_id: str) -> None:
        member = self._members.get(member_id)
        if member is None:
            return
        member.is_away = True
        rows = partition_rows(sorted(member.has))
        self._emit(each, "static_member_left", member_id=member_id, group_instance_id=member.instance, partitions=rows)

    def _answered(self, each: SourcedExchange, member_id: str, asked_epoch: int) -> None:
        exchange = each.exchange
        epoch = exchange.response.get("memberEpoch")
        if type(epoch) is not int or epoch < 0:
            return
        member = self._members.get(member_id)
        if asked_epoch == _JOINS and member is None:
            self._explain(each, epoch - 1)
            member = self._joined(each, member_id)
        elif member is None:
            # A member since before the log begins.
            member = self._members[member_id] = self._new_member(each)
            if self._epoch is None:
                self._epoch = epoch
        self._see_subscription(each, member_id, member, is_new=asked_epoch == _JOINS)
        given = self._given(each)
        revokes = epoch == self._epoch and given is not None and bool(member.has - given)
        if self._epoch is None or epoch > self._epoch or (revokes and self.has_rebalances and self._state == STABLE):
            newest = epoch + 1 if revokes else epoch
            if self._trigger is None:
                self._lose_silent(each, newest - 1)
            self._bump(each, newest, self._trigger or {"cause": UNKNOWN})
        if asked_epoch == _JOINS:
            self._trigger = self._rest = None
        if self._rise is not None and not self._rise.is_targeted:
            self._targeted(each, self._rise)
        self._move(each, member_id, member, epoch, given)
        member.answered_ms = exchange.answered_at_ms

    def _see_subscription(self, each: SourcedExchange, member_id: str, member: SeenMember, *, is_new: bool) -> None:
        request = each.exchange.request
        self._assignor = request.get("serverAssignor") or self._assignor
        topics = request.get("subscribedTopicNames")
        if isinstance(topics, list):
            if member.topics is not None and topics != member.topics and not is_new:
                self._trigger = self._caused("rejoin-metadata", member_id, member)
            member.topics = [str(topic) for topic in topics]

    def _explain(self, each: SourcedExchange, last_epoch: int) -> None:
        """Conclude why the epoch rose before a member joined, whose join takes another one."""
        if self._epoch is None or last_epoch <= self._epoch:
            return
        if self._trigger is not None:
            self._bump(each, self._epoch + 1, self._trigger)
        if last_epoch > self._epoch:
            self._lose_silent(each, last_epoch)

    # --- members

    def _new_member(self, each: SourcedExchange) -> SeenMember:
        exchange = each.exchange
        timeout = exchange.request.get("rebalanceTimeoutMs")
        return SeenMember(
            exchange.request.get("instanceId"),
            -1,
            exchange.answered_at_ms,
            timeout if isinstance(timeout, int) and timeout > 0 else None,
        )

    def _joined(self, each: SourcedExchange, member_id: str) -> SeenMember:
        exchange, request = each.exchange, each.exchange.request
        member = self._new_member(each)
        instance = member.instance
        former = next(
            (known for known, its in self._members.items() if instance is not None and its.instance == instance), None
        )
        if former is not None:
            before = self._members.pop(former)
            member.has, member.epoch = before.has, before.epoch
            self._owners = {at: member_id if owner == former else owner for at, owner in self._owners.items()}
            self._members[member_id] = member
            who = {"group_instance_id": instance, "other_member_id": former, "member_id": member_id}
            self._emit(
                each,
                "static_member_replaced",
                EXACT,
                **who,
                state=self._state,
                rebalance=False,
                member_type=self.group_type,
            )
            return member
        self._come_to_rest()
        topics = request.get("subscribedTopicNames")
        self._emit(
            each,
            "member_joined",
            member_id=member_id,
            group_instance_id=instance,
            client_id=exchange.client_id,
            client_host=exchange.client_host,
            rebalance_timeout_ms=member.timeout_ms,
            topics=topics if isinstance(topics, list) else None,
            state=self._state,
            software=exchange.software,
            member_type=self.group_type,
        )
        self._members[member_id] = member
        self._trigger = self._caused("join-new", member_id, member)
        return member

    def _remove(self, each: SourcedExchange, member_id: str, member: SeenMember, cause: str, confidence: str) -> None:
        self._emit(
            each,
            "member_removed",
            confidence,
            member_id=member_id,
            group_instance_id=member.instance,
            cause=cause,
            state=self._state,
        )
        del self._members[member_id]

    def _lost(self, each: SourcedExchange, member_id: str, member: SeenMember) -> None:
        """A member is out that did not leave: its session ended, or it did not give up its partitions in time."""
        self._come_to_rest()
        late = (
            bool(member.giving_up)
            and member.timeout_ms is not None
            and each.exchange.answered_at_ms - member.asked_ms >= member.timeout_ms
        )
        cause = "rebalance-expiry" if late else "session-expiry"
        self._remove(each, member_id, member, cause, INFERRED)
        self._trigger = self._caused(cause, member_id, member)

    def _lose_silent(self, each: SourcedExchange, last_epoch: int) -> None:
        """Remove members that are not heard of any more, each of which had the epoch rise."""
        now = each.exchange.answered_at_ms
        silent = sorted(
            (member.answered_ms, member_id)
            for member_id, member in self._members.items()
            if member_id != each.exchange.member_id
            and now - member.answered_ms >= SILENT_MS
            and self._is_never_back(member_id)
        )
        for number, (_, member_id) in enumerate(silent):
            member = self._members.get(member_id)
            if member is None or (number and (self._epoch or 0) >= last_epoch):
                break
            self._lost(each, member_id, member)
            if (self._epoch or 0) < last_epoch:
                self._bump(each, (self._epoch or 0) + 1, self._trigger or {"cause": UNKNOWN})

    def _is_never_back(self, member_id: str) -> bool:
        """Whether the next of the member's exchanges is no more that of a member, or there is none."""
        later = self._of_member[member_id]
        at = bisect_right(later, self._index)
        if at == len(later):
            return True
        exchange = self._asked[later[at]].exchange
        return exchange.error in _ENDED or exchange.request.get("memberEpoch") == _JOINS

    def _caused(self, cause: str, member_id: str, member: SeenMember) -> dict[str, Any]:
        found = {"cause": cause, "cause_member_id": member_id}
        return found if member.instance is None else found | {"cause_group_instance_id": member.instance}

    # --- epochs

    @property
    def _state(self) -> str:
        if not self._members:
            return EMPTY
        return RECONCILING if self._rise is not None and not self._rise.is_over and not self._all_there else STABLE

    @property
    def _all_there(self) -> bool:
        return all(each.epoch == self._epoch or each.is_away for each in self._members.values())

    def _owned(self) -> list[dict[str, Any]]:
        return [
            {"member_id": member_id, "topic": topic, "partition": number}
            for member_id, member in sorted(self._members.items())
            for topic, number in sorted(member.has)
        ]

    def _bump(self, each: SourcedExchange, epoch: int, cause: dict[str, Any]) -> None:
        """The group has a new epoch, for a cause."""
        now, old, before = each.exchange.answered_at_ms, self._epoch, self._rise
        rest = self._come_to_rest()
        self._rest = self._trigger = None
        state = rest.state
        is_open = before is not None and not before.is_over
        about = {"group_type": self.group_type, **cause}
        self._emit(each, "group_epoch_bumped", INFERRED, generation=epoch, state=state, **about)
        if self.has_rebalances:
            self._emit(
                each,
                "rebalance_started",
                INFERRED,
                generation=old if old is not None else epoch - 1,
                previous_state=state,
                initial=False,
                **about,
            )
        rise = Rise(epoch, now, now, 1, cause, rest.members, rest.owned)
        if is_open and before is not None:
            rise.began_ms, rise.attempts, rise.cause = before.began_ms, before.attempts + 1, before.cause
            rise.members_before, rise.owned_before = before.members_before, before.owned_before
        self._rise, self._epoch = rise, epoch
        for member in self._members.values():
            member.moved_on = None
        if self._members:
            self._turn(each, state, RECONCILING)
        else:
            self._turn(each, state, EMPTY)
            rise.is_over = rise.is_settled = True
            if self.has_rebalances:
                took = now - rise.began_ms
                self._emit(each, "group_emptied", INFERRED, generation=epoch, rebalance_ms=took, **about)

    def _turn(self, each: SourcedExchange, before: str, state: str) -> None:
        if before != state:
            about = {"previous_state": before, "state": state, "generation": self._epoch}
            self._emit(each, "group_state_changed", INFERRED, **about)

    def _come_to_rest(self) -> Rest:
        """The group as it is before the next change, with how its last rebalance ended."""
        if self._rest is None:
            self._settle()
            self._rest = Rest(self._state, list(self._members), self._owned())
        return self._rest

    def _targeted(self, each: SourcedExchange, rise: Rise) -> None:
        """The first answer with the new epoch: its target is computed."""
        rise.is_targeted, rise.target_ms = True, each.exchange.answered_at_ms
        count = len(self._members)
        self._emit(
            each,
            "target_assignment_computed",
            INFERRED,
            generation=rise.epoch,
            member_count=count,
            protocol=self._assignor,
        )

    def _move(
        self, each: SourcedExchange, member_id: str, member: SeenMember, epoch: int, given: Partitions | None
    ) -> None:
        """Take in what an answer gives a member, and what its request says that it has."""
        now = each.exchange.answered_at_ms
        reported = each.exchange.request.get("topicPartitions")
        if member.giving_up and isinstance(reported, list):
            left = member.giving_up & frozenset(partitions_in(reported, self._names))
            if not left:
                self._emit(
                    each,
                    "revocation_completed",
                    **self._who(member_id, member),
                    partitions=partition_rows(sorted(member.giving_up)),
                    revocation_ms=now - member.asked_ms,
                )
                member.giving_up = frozenset()
        changed = given is not None and given != member.has
        if epoch != member.epoch:
            member.epoch, member.giving_up = epoch, frozenset()
            changed = True
        if given is not None:
            if (lost := member.has - given) and self.has_rebalances and epoch != self._epoch:
                member.giving_up, member.asked_ms = lost, now
                rows = partition_rows(sorted(lost))
                self._emit(
                    each,
                    "revocation_requested",
                    **self._who(member_id, member),
                    partitions=rows,
                    rebalance_timeout_ms=member.timeout_ms,
                )
            member.has = given
        if changed:
            member.moved_on = each
            if not self.has_rebalances:
                self._reconciled(each, member_id, member)

    def _given(self, each: SourcedExchange) -> Partitions | None:
        """All partitions that an answer gives a member; none where it says that they are as before."""
        assignment = each.exchange.response.get("assignment")
        if not isinstance(assignment, dict):
            return None
        return frozenset(partitions_in(assignment.get("topicPartitions"), self._names))

    def _who(self, member_id: str, member: SeenMember) -> dict[str, Any]:
        return {"member_id": member_id, "group_instance_id": member.instance, "member_epoch": member.epoch}

    def _reconciled(self, each: SourcedExchange, member_id: str, member: SeenMember) -> None:
        rows = partition_rows(sorted(member.has))
        began = self._rise.began_ms if self._rise is not None and self.has_rebalances else None
        waited = 0 if began is None else each.exchange.answered_at_ms - began
        who = self._who(member_id, member)
        self._emit(each, "member_reconciled", INFERRED, **who, partitions=rows, waited_ms=waited)

    def _settle(self) -> None:
        """Conclude whether the group was at rest before its next epoch, and since when."""
        rise = self._rise
        if rise is None or rise.is_settled or not self.has_rebalances or not self._members:
            return
        rise.is_settled = True
        moved = [(each.moved_on, name, each) for name, each in self._members.items() if each.moved_on is not None]
        in_order = sorted(moved, key=lambda one: (one[0].exchange.answered_at_ms, one[0].exchange.line))
        for at, member_id, member in in_order:
            if member.epoch == rise.epoch:
                self._reconciled(at, member_id, member)
        if not in_order or not self._all_there:
            return
        rise.is_over = True
        owned = self._owned()
        partitions = (((row["topic"], row["partition"]), row["member_id"]) for row in owned)
        moves = moves_to(self._owners, self._members, partitions)
        last = in_order[-1][0]
        done = last.exchange.answered_at_ms
        self._turn(last, RECONCILING, STABLE)
        self._emit(
            last,
            "rebalance_completed",
            INFERRED,
            generation=rise.epoch,
            group_type=self.group_type,
            attempts=rise.attempts,
            rebalance_ms=done - rise.began_ms,
            join_ms=rise.target_ms - rise.began_ms,
            sync_ms=done - rise.target_ms,
            members_before=rise.members_before,
            members=list(self._members),
            member_count=len(self._members),
            owned_before=rise.owned_before,
            owned_after=owned,
            moved=moves.moved,
            regained=moves.regained,
            **rise.cause,
        )


class ShareHistory(HeartbeatHistory):
    """A share group: members share partitions, and none waits for another."""

    group_type = "share"
    has_rebalances = False
