"""How long each consumer waited between losing partitions and its next assignment.

A pause begins when partitions are revoked or lost and ends with the next assignment, even an empty one: only then the
consumer goes on polling what it has. It is *stop-the-world* if the consumer owned nothing at some time of it, as with
eager assignors, else *incremental*. A consumer that never owned anything does not pause by giving up nothing; one that
did does, since it waits for the same rebalance. What it owned and for how long is
:mod:`pipeline.tables.groups.ownership`.

Where no consumer of a group wrote a journal, pauses are concluded from the coordinator's view (``inferred``): with an
eager assignor every member pauses from the beginning of a rebalance to its end, with a cooperative one none does.

In a consumer group only those stop that give something up, from when the coordinator asked them to until they had: its
coordinator reports it. What such a consumer reports itself has no length, as it is assigned in the same instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.tables.groups import incarnations as consumers
from rejoin.pipeline.tables.groups.incarnations import RELEASES, Change, incarnations
from rejoin.pipeline.tables.groups.rows import COOPERATIVE, EventOfGroup, GroupRows, RebalanceOfGroup, Row, date_of
from rejoin.pipeline.vocabulary import INFERRED

REVOKED: Final = "need to revoke partitions and re-join"
"""Prefix of a consumer's reason for the second half of a cooperative rebalance."""

READS: Final = consumers.READS | {
    "revocation_completed": (
        *("member_id", "group_instance_id", "member_epoch", "revocation_ms", "partitions", "confidence"),
    )
}


def pauses_of_group(group: GroupRows) -> Iterator[Row]:
    """Rows of the table from all events and rebalances of one group."""
    for (_, client_id), changes in incarnations(group.events).items():
        for wait in _waits(changes):
            yield _row(wait.changes[0].event, client_id=client_id, **wait.row(group.run.ends_at_ms))
    if group.rebalances and not any(event.event == "partitions_assigned" for event in group.events):
        yield from _by_coordinator(group.rebalances)
    for event in group.events:
        if event.event == "revocation_completed" and event.revocation_ms is not None:
            yield _by_revocation(event)


@dataclass(slots=True)
class _Wait:
    """All events of a consumer from behind one assignment up to and with the next."""

    changes: list[Change] = field(default_factory=list)
    began: Change | None = None
    """The first change that took partitions from a consumer that had some."""
    stopped_at_ms: int | None = None
    ended: Change | None = None
    given_up: int = 0
    kept: int | None = None

    def add(self, change: Change, owned: int, *, had_any: bool) -> None:
        """Take in the next event; ``owned`` is what the consumer has after it."""
        self.changes.append(change)
        event = change.event
        if change.how in RELEASES.values():
            self.given_up += len(event.partitions or ())
            self.kept = owned if self.kept is None else min(self.kept, owned)
            if had_any:
                self.began = self.began or change
                if owned <= 0:
                    self.stopped_at_ms = event.at_ms if self.stopped_at_ms is None else self.stopped_at_ms
        elif self.ended is None:
            self.ended = change

    def row(self, ends_at_ms: int) -> Row:
        """The columns of its row, which it has if it ``began``."""
        assert self.began is not None
        first, ended, stopped = self.began.event, self.ended, self.stopped_at_ms is not None
        last = first if ended is None else ended.event
        over = max(ends_at_ms if ended is None else last.at_ms, first.at_ms)
        assigned = ended is not None and ended.how == "assigned"
        return {
            "member_id": first.member_id or (None if ended is None else last.member_id),
            "group_instance_id": max(c.event.group_instance_id or "" for c in self.changes) or None,
            "kind": "stop-the-world" if stopped else "incremental",
            "how": self.began.how,
            "began_at_ms": first.at_ms,
            "ended_at_ms": over,
            "stopped_ms": max(over - self.stopped_at_ms, 0) if self.stopped_at_ms is not None else 0,
            "end": "open" if ended is None else "assigned" if assigned else "gone",
            "generation_from": first.generation,
            "generation_to": None if ended is None else last.generation,
            "given_up": self.given_up,
            "kept": max(self.kept or 0, 0),
            "received": len(last.partitions or ()) if assigned else None,
            "confidence": min((c.event.confidence for c in self.changes if c.event.confidence), default=None),
        }


def _waits(changes: Iterable[Change]) -> Iterator[_Wait]:
    """The waits of one consumer, over all of its incarnations, that began with a loss."""
    wait, owned, most = _Wait(), 0, 0
    for change in changes:
        if change.how in ("started", "gone"):
            if wait.began is not None:
                yield wait
            # A consumer that ended without leaving joins as a new one, which waits for its first assignment.
            wait, owned, most = _Wait(), 0, 0
            if change.how == "started":
                continue
        size = len(change.event.partitions or ())
        owned += size if change.how == "assigned" else -size if change.how in RELEASES.values() else 0
        most = max(most, owned)
        wait.add(change, owned, had_any=most > 0)
        if change.how == "assigned":
            if wait.began is not None:
                yield wait
            wait = _Wait()
    if wait.began is not None:
        yield wait


def _by_coordinator(rebalances: Sequence[RebalanceOfGroup]) -> Iterator[Row]:
    """Members pause from the beginning of an episode of an eager group to its end.

    Those that were in both generations: one that left does not wait, a new one has nothing to lose.
    """
    # A log alone has no assignor, but its members may say that they came back to give up partitions (KIP-429).
    revokes = any((each.client_reason or "").startswith(REVOKED) for each in rebalances)
    episodes: dict[tuple[str, str, int, str], list[RebalanceOfGroup]] = defaultdict(list)
    for each in rebalances:
        cooperative = revokes if each.protocol is None else each.protocol in COOPERATIVE
        if each.ended_at_ms is None or cooperative or each.group_type not in ("classic", None):
            continue
        after = set(each.members_after or ())
        for member_id in dict.fromkeys(each.members_before or ()):
            if member_id in after:
                episodes[each.node, each.source, each.episode, member_id].append(each)
    for (node, _, _, member_id), found in episodes.items():
        began = min(each.prepared_at_ms for each in found)
        ended = max(each.ended_at_ms for each in found if each.ended_at_ms is not None)
        last = max(found, key=lambda each: (each.prepared_at_ms, each.outcome))
        yield _row(
            found[0],
            member_id=member_id,
            node=node,
            kind="stop-the-world",
            how="revoked",
            began_at_ms=began,
            ended_at_ms=ended,
            stopped_ms=ended - began,
            end="assigned" if last.outcome == "completed" else "gone",
            generation_from=min((e.generation_from for e in found if e.generation_from is not None), default=None),
            generation_to=max((e.generation_to for e in found if e.generation_to is not None), default=None),
            confidence=INFERRED,
        )


def _by_revocation(event: EventOfGroup) -> Row:
    assert event.revocation_ms is not None
    return _row(
        event,
        member_id=event.member_id,
        group_instance_id=event.group_instance_id,
        kind="incremental",
        how="revoked",
        began_at_ms=event.at_ms - event.revocation_ms,
        ended_at_ms=event.at_ms,
        stopped_ms=event.revocation_ms,
        end="assigned",
        generation_to=event.member_epoch,
        given_up=None if event.partitions is None else len(event.partitions),
        confidence=event.confidence,
    )


def _row(about: EventOfGroup | RebalanceOfGroup, **values: Any) -> Row:
    began, ended = values["began_at_ms"], values["ended_at_ms"]
    known = {"run_id": about.run_id, "group_id": about.group_id, "node": about.node} | values
    return known | {"day": date_of(began), "pause_ms": ended - began}
