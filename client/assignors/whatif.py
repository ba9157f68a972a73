"""A group without a server: members join, leave and change, and an assignor answers each time.

Everything a real group would put on the wire is encoded and decoded here too. Time does not exist: every
member is alive and rejoins at once, and a rebalance goes on until no member has to revoke anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rejoin.client.assignors.base import Assignor, ClusterView, MemberSubscription, Partition, RebalanceProtocol
from rejoin.client.assignors.checks import BadAssignment, run_assignor
from rejoin.client.assignors.registry import assignor_named
from rejoin.protocol.embedded.consumer_protocol import (
    NO_GENERATION,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_partitions,
    encode_subscription,
)
from rejoin.protocol.java import utf16_key
from rejoin.protocol.types import TopicPartition

MOST_PARTITIONS: Final = 100_000
MOST_ROUNDS = 10

STEPS_IN_WORDS = "leave:MEMBER, join:MEMBER[:TOPIC+TOPIC], subscribe:MEMBER:TOPIC+TOPIC or grow:TOPIC:PARTITIONS"


@dataclass(frozen=True)
class RebalanceRound:
    """One generation of the group: what each member owns, and what its old owner has yet to revoke."""

    generation: int
    owned: Mapping[str, tuple[Partition, ...]]
    withheld: tuple[Partition, ...]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one step.

    `before` and `after`: partition → owner. A partition *moved* when it went from one living member to
    another, was *taken over* when its owner had left, and *stayed* otherwise, unless it is new.
    """

    step: str
    rounds: tuple[RebalanceRound, ...]
    before: Mapping[Partition, str]
    after: Mapping[Partition, str]

    @property
    def owned(self) -> Mapping[str, tuple[Partition, ...]]:
        """Member → its partitions in the end."""
        return self.rounds[-1].owned

    @property
    def moved(self) -> list[tuple[Partition, str, str]]:
        """(partition, from, to)."""
        return [(p, self.before[p], m) for p, m in self.after.items() if self._from_living(p) and self.before[p] != m]

    @property
    def taken_over(self) -> list[tuple[Partition, str, str]]:
        """(partition, from, to), the first of whom is gone."""
        return [(p, self.before[p], m) for p, m in self.after.items() if p in self.before and not self._from_living(p)]

    @property
    def stayed(self) -> int:
        """How many partitions have the owner they had."""
        return sum(self.before.get(partition) == member_id for partition, member_id in self.after.items())

    @property
    def new(self) -> int:
        """How many partitions have an owner for the first time."""
        return sum(partition not in self.before for partition in self.after)

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest and the most partitions that a member has."""
        counts = [len(partitions) for partitions in self.owned.values()]
        return (min(counts, default=0), max(counts, default=0))

    def changes(self) -> dict[str, tuple[list[Partition], list[Partition]]]:
        """Member → what it gained and what it lost, by topic and number."""
        gained: dict[str, list[Partition]] = {member_id: [] for member_id in self.owned}
        lost: dict[str, list[Partition]] = {member_id: [] for member_id in self.owned}
        for partition in in_order(list({**self.before, **self.after})):
            then, now = self.before.get(partition), self.after.get(partition)
            if then != now:
                if now is not None:
                    gained[now].append(partition)
                if then in lost:
                    lost[then].append(partition)
        return {member_id: (gained[member_id], lost[member_id]) for member_id in self.owned}

    def _from_living(self, partition: Partition) -> bool:
        return self.before.get(partition) in self.owned


@dataclass
class _Member:
    assignor: Assignor
    topics: tuple[str, ...] | None
    generation: int = NO_GENERATION
    owned: tuple[TopicPartition, ...] = ()


@dataclass
class WhatIf:
    """A group and its topics. Each member has its own assignor object, which remembers as Kafka's do.

    `topics`: topic → number of partitions. Members without topics of their own want all there are.
    """

    assignor: str
    topics: dict[str, int]
    generation: int = 0
    _members: dict[str, _Member] = field(default_factory=dict)

    def start(self, members: Mapping[str, Sequence[str] | None]) -> Outcome:
        """All members join at once. Raises as `run` does."""
        for member_id, topics in members.items():
            self._join(member_id, topics)
        return self._rebalance("start", {})

    def run(self, step: str) -> Outcome:
        """Take one step (see STEPS_IN_WORDS) and rebalance.

        Raises ValueError for a step that makes no sense, BadAssignment when the assignor fails.
        """
        before = self._owners()
        match step.split(":"):
            case ["leave", member_id]:
                self._member(member_id)
                del self._members[member_id]
            case ["join", member_id]:
                self._join(member_id, None)
            case ["join", member_id, topics]:
                self._join(member_id, topics.split("+"))
            case ["subscribe", member_id, topics]:
                self._member(member_id).topics = self._known(topics.split("+"))
            case ["grow", topic, count]:
                self._grow(topic, count)
            case _:
                raise ValueError(f"unknown step {step!r}; a step is {STEPS_IN_WORDS}")
        return self._rebalance(step, before)

    def _join(self, member_id: str, topics: Sequence[str] | None) -> None:
        if not member_id:
            raise ValueError("a member needs a name")
        if member_id in self._members:
            raise ValueError(f"{member_id} is already a member")
        self._members[member_id] = _Member(
            assignor_named(self.assignor), None if topics is None else self._known(topics)
        )

    def _grow(self, topic: str, count: str) -> None:
        self._known([topic])
        wanted = partitions_from(count)
        if wanted is None or wanted <= self.topics[topic]:
            raise ValueError(
                f"{topic} has {self.topics[topic]} partitions and can only grow, not to {count[:40]!r}; "
                f"expected at most {MOST_PARTITIONS}"
            )
        self.topics[topic] = wanted

    def _member(self, member_id: str) -> _Member:
        if member_id not in self._members:
            raise ValueError(f"{member_id} is not a member; members are {', '.join(self._members) or 'none'}")
        return self._members[member_id]

    def _known(self, topics: Sequence[str]) -> tuple[str, ...]:
        for topic in topics:
            if topic not in self.topics:
                raise ValueError(f"{topic!r} is no topic here; topics are {', '.join(self.topics)}")
        return tuple(topics)

    def _rebalance(self, step: str, before: Mapping[Partition, str]) -> Outcome:
        """Rounds until the last one takes nothing away; under the eager protocol that is one."""
        rounds = [] if self._members else [RebalanceRound(self.generation, {}, ())]
        while self._members:
            lost_something, done = self._round()
            rounds.append(done)
            if not lost_something:
                break
            if len(rounds) == MOST_ROUNDS:
                raise BadAssignment(f"after {step}: partitions still change owners after {MOST_ROUNDS} rebalances")
        return Outcome(step, tuple(rounds), before, self._owners())

    def _round(self) -> tuple[bool, RebalanceRound]:
        """One generation; also whether members that keep what they hold must now give something up and rejoin."""
        leader = next(iter(self._members.values())).assignor
        cooperative = RebalanceProtocol.COOPERATIVE in leader.protocols
        protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
        asked = {member_id: self._subscription(member, cooperative) for member_id, member in self._members.items()}
        assignments = run_assignor(leader, ClusterView(self.topics), asked, protocol)
        self.generation += 1
        lost = False
        for member_id, member in self._members.items():
            assignment = decode_assignment(encode_partitions(assignments.get(member_id, ())))
            lost = lost or not set(member.owned).issubset(assignment.partitions)
            member.assignor.on_assignment(assignment, self.generation)
            member.generation = self.generation
            member.owned = assignment.partitions
        owned: dict[str, tuple[Partition, ...]] = {m: tuple(member.owned) for m, member in self._members.items()}
        given = self._owners()
        wanted = dict.fromkeys(topic for member in asked.values() for topic in member.subscription.topics)
        withheld = [(t, n) for t in wanted for n in range(self.topics[t]) if (t, n) not in given]
        return cooperative and lost, RebalanceRound(self.generation, owned, tuple(in_order(withheld)))

    def _subscription(self, member: _Member, cooperative: bool) -> MemberSubscription:
        topics = tuple(self.topics) if member.topics is None else member.topics
        user_data = member.assignor.subscription_user_data(topics)
        owned = member.owned if cooperative else ()
        data = encode_subscription(Subscription(topics, user_data, owned, member.generation))
        return MemberSubscription(decode_subscription(data))

    def _owners(self) -> dict[Partition, str]:
        return {
            (topic, number): member_id for member_id, member in self._members.items() for topic, number in member.owned
        }


def partitions_from(text: str) -> int | None:
    """How many partitions a topic shall have, or none for a number that a coordinator would refuse, too."""
    if not text.isdecimal() or len(text) > 9 or int(text) > MOST_PARTITIONS:
        return None
    return int(text)


def in_order(partitions: Sequence[Partition]) -> list[Partition]:
    """Partitions by topic and number."""
    return sorted(partitions, key=lambda partition: (utf16_key(partition[0]), partition[1]))
