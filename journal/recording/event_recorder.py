"""Makes a page's rows of a coordinator's events, and of its consumers' where they write their own.

In a simulation the cores themselves are asked; here are only events, as a running coordinator or a journal has them. A
JoinGroup is known from its arrival to its answer, a SyncGroup as far as it is the leader's, and of heartbeats nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from rejoin.journal.events import client as client_events
from rejoin.journal.events import consumer_groups as consumer_events
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.events.streams_groups import StreamsMemberAssigned
from rejoin.journal.recording.consumer_journals import MEMBER_STATES, NO_JOURNALS, ConsumerJournals
from rejoin.journal.recording.recorder import DRAWN_EVENTS, Recorder
from rejoin.journal.timeline_lines import TIMELINE_EVENTS, short

ANSWERED: Final = 1
OPEN: Final = 0
COOPERATIVE: Final = "cooperative-sticky"
"""A member without this protocol is eager: it gives up all partitions before it joins again (KIP-429)."""
_SUFFIX: Final = 6
"""Characters of a member id that distinguish two members with one client id."""
_WORD_BEGINS: Final = re.compile(r"(?<![^\W_])\S")
"""Where a member id may begin within a text."""


class _Member:
    """A member as its coordinator knows it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = -1
        self.state = ""
        self.join: list[Any] | None = None
        """The row of its JoinGroup that is not answered yet."""
        self.owned: set[tuple[str, int]] = set()


class _Members(dict[str, _Member]):
    """The members of a group by member id, with how many of them have each name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __setitem__(self, member_id: str, member: _Member) -> None:
        before = self.get(member_id)
        if before is not None:
            self.names[before.name] -= 1
        super().__setitem__(member_id, member)
        self.names[member.name] += 1

    def remove(self, member_id: str) -> _Member | None:
        """Take a member out, if it is there."""
        member = super().pop(member_id, None)
        if member is not None:
            self.names[member.name] -= 1
        return member


class EventRecorder(Recorder):
    """Makes rows of events, in the order in which they happened.

    ``consumers``: journals of consumers. Where a consumer has one, its states and partitions are taken from there, and
    not from the coordinator's events. Requests have rows like those of the laboratory: number, client, node, API, sent,
    arrived, answered, ended, fate, error, generation, minor, blocked. The instant of sending is that of arrival. A row
    of ``actors`` ends with the member id, where the actor is a member.
    """

    def __init__(self, consumers: ConsumerJournals = NO_JOURNALS) -> None:
        super().__init__()
        self.rows["requests"] = []
        self._consumers = consumers
        self._memberships: dict[str, str] = {}
        """The member id that each consumer has by its own events."""
        self._members: dict[str, _Members] = {}
        """By group and member id."""
        self._renamed: dict[str, str] = {}
        """The lane of each member whose id does not begin with its name, or whose name is another member's, too."""
        self._renamed_lengths: list[int] = []
        """Lengths of these ids, the longest first: one id may begin with another."""
        self._sync: dict[str, list[Any]] = {}
        """The row of the leader's SyncGroup that is not answered yet, by group."""
        self._nodes: set[str] = set()
        self._stated: set[str] = set()
        """Groups whose changes of state are recorded. Consumers' logs have none: they follow from the members."""
        self._requests = 0
        self._topics: set[str] = set()
        """Topics whose size is known."""
        self._handlers: dict[type[Event], Callable[[str, Any, int], None]] = {
            events.GroupStateChanged: self._state_changed,
            events.RebalanceStarted: self._rebalance_started,
            events.GroupLoaded: self._loaded,
            events.MemberJoined: self._joined,
            events.MemberRejoined: self._joined,
            events.MemberRemoved: self._removed,
            events.StaticMemberReplaced: self._replaced,
            events.JoinPhaseEnded: self._join_phase_ended,
            events.AssignmentReceived: self._assignment_received,
            events.RebalanceCompleted: self._completed,
            events.TopicCreated: self._created,
            events.TopicGrown: self._grown,
            events.GroupDeleted: lambda node, event, now: self._group(now, event.group_id, node, "Dead", -1),
            consumer_events.MemberReconciled: self._reconciled,
            consumer_events.RevocationRequested: self._revocation_requested,
            consumer_events.RevocationCompleted: self._revoked,
            consumer_events.MemberEpochFenced: self._epoch_fenced,
            consumer_events.StaticMemberLeft: self._static_left,
            **{kind: self._client_state(state) for kind, state in MEMBER_STATES.items()},
            client_events.JoinSent: self._join_sent,
            client_events.GroupLeft: self._group_left,
        }

    @classmethod
    def event_names(cls) -> frozenset[str]:
        """The names of all events that make rows."""
        drawn: tuple[type[Event], ...] = (*DRAWN_EVENTS, *TIMELINE_EVENTS, *cls()._handlers)
        return frozenset(each.name for each in drawn)

    def take(self) -> dict[str, list[list[Any]]]:
        """The rows since the last call, without the kinds that have none."""
        taken = super().take()
        self.rows["requests"] = []
        return taken

    def on_event(self, node: str, event: Event, now: int) -> None:
        """Add the rows of an event."""
        if isinstance(event, events.GroupEvent) and node not in self._nodes:
            self._nodes.add(node)
            self.add("actors", node, "node", "")
        super().on_event(node, event, now)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(node, event, now)

    # -- members

    def _meet(self, group_id: str, member_id: str, client_id: str = "") -> _Member:
        """The member with this id; a new one has the lane of its client, unless another member has it now."""
        members = self._members.setdefault(group_id, _Members())
        found = members.get(member_id)
        if found is None:
            name = self._consumers.lane_of(member_id) or client_id or short(member_id) or member_id
            # Consumers that write their own events have one lane each, as they call themselves.
            if not self._consumers.writes(group_id, name) and members.names[name]:
                name = f"{name} {member_id[-_SUFFIX:]}"
            found = members[member_id] = _Member(name)
            self._name(group_id, member_id, name)
        return found

    def _name(self, group_id: str, member_id: str, name: str) -> None:
        """A member has this name from now on, wherever it is shown."""
        if short(member_id) != name:
            self._renamed[member_id] = name
            if len(member_id) not in self._renamed_lengths:
                self._renamed_lengths = sorted([*self._renamed_lengths, len(member_id)], reverse=True)
        self.add("actors", name, "consumer", group_id, member_id)

    def _lane(self, group_id: str, member_id: str) -> str:
        return self._meet(group_id, member_id).name

    def _shown(self, text: str) -> str:
        made, at = [], 0
        # A look-up at each word, and not a search for each id: there may be thousands of both.
        for word in _WORD_BEGINS.finditer(text) if self._renamed else ():
            begin = word.start()
            if begin < at:
                continue
            member_id = next((id_ for id_ in self._ids_at(text, begin) if id_ in self._renamed), None)
            if member_id is not None:
                made += [text[at:begin], self._renamed[member_id]]
                at = begin + len(member_id)
        return super()._shown("".join([*made, text[at:]]))

    def _ids_at(self, text: str, begin: int) -> Iterator[str]:
        return (text[begin : begin + length] for length in self._renamed_lengths)

    def _enter(self, group_id: str, member: _Member, state: str, now: int) -> None:
        """A member has a state from now on, as far as its coordinator can know."""
        member.state = state
        # A consumer that writes has the last word, once it has said that it joins.
        if member.name not in self._memberships:
            self.add("members", now, member.name, state, member.generation)

    def _request(self, member: _Member, node: str, api: str, now: int) -> list[Any]:
        self._requests += 1
        row = [self._requests, member.name, node, api, now, now, -1, -1, OPEN, None, member.generation, 0, 0]
        self.rows["requests"].append(list(row))
        return row

    def _answer(self, row: list[Any] | None, generation: int, now: int) -> None:
        if row is not None:
            row[6], row[7], row[8], row[10] = now, now, ANSWERED, generation
            self.rows["requests"].append(row)

    def _own_exactly(self, group_id: str, member: _Member, partitions: Iterable[tuple[str, int]], now: int) -> None:
        """A member owns just these partitions from now on."""
        wanted = set(partitions)
        if not self._consumers.writes(group_id, member.name):
            for topic, index in sorted(member.owned - wanted):
                self.add("owners", now, group_id, topic, index, member.name, -1)
            for topic, index in sorted(wanted - member.owned):
                self.add("owners", now, group_id, topic, index, member.name, 1)
        member.owned = wanted

    # -- what happens to topics

    def _created(self, _: str, event: events.TopicCreated, now: int) -> None:
        self._topics.add(event.topic)
        self.add("topics", now, event.topic, event.partition_count)

    def _grown(self, _: str, event: events.TopicGrown, now: int) -> None:
        if event.topic not in self._topics:
            self._topics.add(event.topic)
            before = event.previous_partition_count or event.partition_count - 1  # a log may not name it
            self.add("topics", 0, event.topic, before)
        self.add("topics", now, event.topic, event.partition_count)

    # -- states of groups

    def _state_changed(self, _: str, event: events.GroupStateChanged, __: int) -> None:
        self._stated.add(event.group_id)

    def _rebalance_started(self, node: str, event: events.RebalanceStarted, now: int) -> None:
        if event.group_type == "classic" and self._members.get(event.group_id):
            self._follows(node, event.group_id, "PreparingRebalance", now)

    def _follows(self, node: str, group_id: str, state: str, now: int) -> None:
        """A group must have a state, as its members show, unless it is recorded anyway."""
        known, generation = self._last.get(group_id, ("", 0))
        if state != known and group_id not in self._stated and group_id not in self._unsaid:
            self._group(now, group_id, node, state, generation)

    # -- what happens to members

    def _loaded(self, _: str, event: events.GroupLoaded, now: int) -> None:
        for member_id in event.members:
            member = self._meet(event.group_id, member_id)
            member.generation = event.generation
            self._enter(event.group_id, member, "STABLE", now)

    def _assigned(self, event: StreamsMemberAssigned, now: int) -> None:
        """A member of a streams group has other tasks, or another epoch."""
        member = self._meet(event.group_id, event.member_id)
        if self._consumers.writes(event.group_id, member.name):
            self._tasks.described(member.name, event.process_id)
            return
        self._tasks.on_assigned(event, member.name, now)
        member.generation = event.member_epoch
        self._enter(event.group_id, member, "STABLE" if event.member_state == "STABLE" else "RECONCILING", now)

    def _joined(self, node: str, event: events.MemberJoined | events.MemberRejoined, now: int) -> None:
        client_id = event.client_id if isinstance(event, events.MemberJoined) else ""
        member = self._meet(event.group_id, event.member_id, client_id)
        if event.member_type in ("share", "streams") and isinstance(event, events.MemberRejoined):
            return  # it goes on with what it has
        if event.member_type != "classic":
            self._enter(event.group_id, member, "JOINING", now)
            return
        if self._last.get(event.group_id, ("Empty",))[0] == "Empty":
            self._follows(node, event.group_id, "PreparingRebalance", now)
        if member.join is None:
            member.join = self._request(member, node, "JoinGroup", now)
        if COOPERATIVE not in event.protocols:
            self._own_exactly(event.group_id, member, (), now)
        self._enter(event.group_id, member, "PREPARING_REBALANCE", now)

    def _removed(self, node: str, event: events.MemberRemoved, now: int) -> None:
        member = self._meet(event.group_id, event.member_id, event.client_id)
        self._answer(member.join, member.generation, now)
        self._own_exactly(event.group_id, member, (), now)
        if not self._consumers.writes(event.group_id, member.name):
            self._tasks.ended(member.name, now)
        member.generation = -1
        self._enter(event.group_id, member, "UNJOINED", now)
        self._members[event.group_id].remove(event.member_id)
        if not self._members[event.group_id]:
            self._follows(node, event.group_id, "Empty", now)
        # A consumer that was paused finds out later, and says so. One that was killed says nothing any more.
        is_its_own = self._memberships.get(member.name) == event.member_id
        if is_its_own and self._consumers.is_silent_after(event.member_id, now):
            self._end_membership(member.name, now)

    def _replaced(self, node: str, event: events.StaticMemberReplaced, now: int) -> None:
        members = self._members.setdefault(event.group_id, _Members())
        member = members.remove(event.old_member_id)
        if member is None:
            member = self._meet(event.group_id, event.member_id)
        members[event.member_id] = member
        self._name(event.group_id, event.member_id, member.name)
        if event.rebalance and event.member_type == "classic":
            self._answer(member.join, member.generation, now)
            member.join = self._request(member, node, "JoinGroup", now)
            self._enter(event.group_id, member, "PREPARING_REBALANCE", now)

    def _join_phase_ended(self, node: str, event: events.JoinPhaseEnded, now: int) -> None:
        for member in self._in_generation(event):
            member.generation = event.generation
            self._answer(member.join, event.generation, now)
            member.join = None
            self._enter(event.group_id, member, "COMPLETING_REBALANCE", now)
        leader = self._meet(event.group_id, event.leader).name if event.leader else ""
        self.add("leaders", now, event.group_id, leader, event.protocol)
        self._group(now, event.group_id, node, "CompletingRebalance", event.generation)

    def _in_generation(self, event: events.JoinPhaseEnded) -> list[_Member]:
        """The members of a generation that begins. Logs may not name them: then those that wait."""
        if not event.members:
            waiting = self._members.get(event.group_id, {}).values()
            return [each for each in waiting if each.state == "PREPARING_REBALANCE"]
        absent = set(event.absent)
        return [self._meet(event.group_id, each) for each in event.members if each not in absent]

    def _assignment_received(self, node: str, event: events.AssignmentReceived, now: int) -> None:
        if not event.leader:
            return
        leader = self._meet(event.group_id, event.leader)
        self._sync[event.group_id] = self._request(leader, node, "SyncGroup", now)

    def _completed(self, _: str, event: events.RebalanceCompleted, now: int) -> None:
        self._answer(self._sync.pop(event.group_id, None), event.generation, now)
        if event.group_type == "consumer":
            self.add("leaders", now, event.group_id, "", event.protocol)
        named = event.members_after or [*self._members.get(event.group_id, {})]
        met = [(each, self._meet(event.group_id, each)) for each in named]
        own = {each: _partitions(event.owned_after.get(each, {})) for each, _ in met}
        for each, member in met:  # first all that is given up: a partition has one owner at a time
            self._own_exactly(event.group_id, member, member.owned & own[each], now)
        for each, member in met:
            self._own_exactly(event.group_id, member, own[each], now)
            if event.group_type == "consumer" or member.state == "COMPLETING_REBALANCE":
                member.generation = event.generation
                self._enter(event.group_id, member, "STABLE", now)

    def _reconciled(self, _: str, event: consumer_events.MemberReconciled, now: int) -> None:
        member = self._meet(event.group_id, event.member_id)
        member.generation = event.member_epoch
        self._own_exactly(event.group_id, member, _partitions(event.partitions), now)
        self._enter(event.group_id, member, "STABLE", now)

    def _revocation_requested(self, _: str, event: consumer_events.RevocationRequested, now: int) -> None:
        member = self._meet(event.group_id, event.member_id)
        member.generation = event.member_epoch
        self._enter(event.group_id, member, "RECONCILING", now)

    def _revoked(self, _: str, event: consumer_events.RevocationCompleted, now: int) -> None:
        member = self._meet(event.group_id, event.member_id)
        self._own_exactly(event.group_id, member, member.owned - _partitions(event.partitions), now)

    def _epoch_fenced(self, _: str, event: consumer_events.MemberEpochFenced, now: int) -> None:
        self._enter(event.group_id, self._meet(event.group_id, event.member_id), "FENCED", now)

    def _static_left(self, _: str, event: consumer_events.StaticMemberLeft, now: int) -> None:
        self._enter(event.group_id, self._meet(event.group_id, event.member_id), "UNJOINED", now)

    # -- what consumers say themselves

    def _client_state(self, state: str) -> Callable[[str, client_events.MemberEvent, int], None]:
        """A handler for an event that puts a consumer's own membership into this state."""

        def enter(_: str, event: client_events.MemberEvent, now: int) -> None:
            self._memberships[event.client_id] = event.member_id
            self.add("members", now, event.client_id, state, event.generation)

        return enter

    def _join_sent(self, node: str, event: client_events.JoinSent, now: int) -> None:
        if not event.member_id and not event.owned:  # a process that begins, whatever became of the one before
            self._release_all(event.client_id, now)
        self._client_state("PREPARING_REBALANCE")(node, event, now)

    def _group_left(self, _: str, event: client_events.GroupLeft, now: int) -> None:
        self._end_membership(event.client_id, now)

    def _end_membership(self, client_id: str, now: int) -> None:
        """A consumer is no member any more, and owns nothing."""
        self._memberships.pop(client_id, None)
        self._release_all(client_id, now)
        self._tasks.ended(client_id, now)
        self.add("members", now, client_id, "UNJOINED", -1)


def _partitions(topics: dict[str, list[int]]) -> set[tuple[str, int]]:
    return {(topic, index) for topic, indexes in topics.items() for index in indexes}
