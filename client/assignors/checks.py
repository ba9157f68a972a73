"""Catches an assignor that breaks the rules before its answer reaches the group.

Kafka trusts assignors, apart from one check for cooperative ones (KIP-429): it accepts silently that a partition
is assigned twice, or not at all. Here such an answer is refused, naming the partition and the member, so that the
leader can rejoin instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from rejoin.client.assignors.base import (
    Assignments,
    Assignor,
    ClusterView,
    MemberSubscription,
    Partition,
    RebalanceProtocol,
)


class BadAssignment(Exception):
    """An assignor raised, or its answer breaks a rule.

    `partition` and `member_id` are those of the fault, None where it concerns none.
    """

    def __init__(self, reason: str, partition: Partition | None = None, member_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.partition = partition
        self.member_id = member_id


def run_assignor(
    assignor: Assignor,
    cluster: ClusterView,
    members: Mapping[str, MemberSubscription],
    protocol: RebalanceProtocol = RebalanceProtocol.EAGER,
) -> Assignments:
    """Run an assignor and check its answer: the way for a leader to use one.

    `protocol` is the one the consumer runs. Raises BadAssignment, also for anything that the assignor
    itself raises; the original is its cause.
    """
    try:
        assignments = assignor.assign(cluster, members)
    except Exception as error:
        raise BadAssignment(f"assignor {assignor.name} raised {type(error).__name__}: {error}") from error
    if assignor.checked:
        try:
            check_assignment(cluster, members, assignments, protocol)
        except BadAssignment as bad:
            raise BadAssignment(f"assignor {assignor.name}: {bad.reason}", bad.partition, bad.member_id) from None
    return assignments


def check_assignment(
    cluster: ClusterView,
    members: Mapping[str, MemberSubscription],
    assignments: Assignments,
    protocol: RebalanceProtocol = RebalanceProtocol.EAGER,
) -> None:
    """Refuse an answer in which a member or a partition is unknown, or a partition is assigned twice, assigned
    to a member that does not subscribe to its topic, or left out.

    Under the cooperative protocol a partition that some member still owns may be left out for one round, and
    must not go to another member in the round in which its owner loses it. Raises BadAssignment.
    """
    given = _given(cluster, members, assignments)
    owners = _owners(members) if protocol is RebalanceProtocol.COOPERATIVE else {}
    _check_nothing_forgotten(cluster, members, given, owners)
    for partition, owner in owners.items():
        taker = given.get(partition)
        # Kafka: ConsumerCoordinator.validateCooperativeAssignment. The old owner is still reading it.
        if taker is not None and taker not in owner:
            raise BadAssignment(
                f"{_named(partition)} goes to {taker} while {owner[0]} still owns it: "
                "under the cooperative protocol it must be given up first",
                partition,
                taker,
            )


def _given(
    cluster: ClusterView, members: Mapping[str, MemberSubscription], assignments: Assignments
) -> dict[Partition, str]:
    """Partition → the member that gets it. Raises BadAssignment for an answer that makes no sense."""
    if not isinstance(assignments, Mapping):
        raise BadAssignment(f"the answer is {assignments!r:.60}; expected a mapping of member ids to partitions")
    given: dict[Partition, str] = {}
    for member_id, partitions in assignments.items():
        if member_id not in members:
            raise BadAssignment(f"{member_id} is not a member", None, member_id)
        if isinstance(partitions, str) or not isinstance(partitions, Iterable):
            reason = f"{member_id} is given {partitions!r:.60}; expected a list of (topic, partition) pairs"
            raise BadAssignment(reason, None, member_id)
        wanted = frozenset(members[member_id].subscription.topics)
        for partition in partitions:
            reason = _fault(cluster, wanted, partition)
            if reason is not None:
                raise BadAssignment(f"{_named(partition)} given to {member_id}: {reason}", partition, member_id)
            if partition in given:
                first = given[partition]
                both = f"twice to {member_id}" if first == member_id else f"to {first} and to {member_id}"
                raise BadAssignment(f"{_named(partition)} given {both}", partition, member_id)
            given[partition] = member_id
    for member_id in members:
        if member_id not in assignments:
            raise BadAssignment(f"{member_id} is missing from the answer", None, member_id)
    return given


def _fault(cluster: ClusterView, wanted: frozenset[str], partition: Partition) -> str | None:
    try:
        topic, number = partition
    except (TypeError, ValueError):
        return "not a (topic, partition) pair"
    if not isinstance(topic, str) or not isinstance(number, int):
        return "not a (topic, partition) pair"
    count = cluster.partition_counts.get(topic, 0)
    if not 0 <= number < count:
        return f"it does not exist, {topic} has {count} partition{'' if count == 1 else 's'}"
    if topic not in wanted:
        return f"it does not subscribe to {topic}"
    return None


def _owners(members: Mapping[str, MemberSubscription]) -> dict[Partition, list[str]]:
    """Partition → the members that claim to own it."""
    owners: dict[Partition, list[str]] = {}
    for member_id, member in members.items():
        for partition in member.subscription.owned_partitions:
            owners.setdefault(partition, []).append(member_id)
    return owners


def _check_nothing_forgotten(
    cluster: ClusterView,
    members: Mapping[str, MemberSubscription],
    given: Mapping[Partition, str],
    owners: Mapping[Partition, list[str]],
) -> None:
    subscribed = dict.fromkeys(chain.from_iterable(member.subscription.topics for member in members.values()))
    for topic in subscribed:
        for number in range(cluster.partition_counts.get(topic, 0)):
            partition = (topic, number)
            if partition not in given and partition not in owners:
                subscriber = next(m for m, member in members.items() if topic in member.subscription.topics)
                raise BadAssignment(
                    f"{_named(partition)} is assigned to no member, though {subscriber} subscribes to {topic}",
                    partition,
                    subscriber,
                )


def _named(partition: object) -> str:
    """`orders-3`, as Kafka writes it; anything that is not a partition as Python writes it."""
    if isinstance(partition, tuple) and len(partition) == 2:
        return f"{partition[0]}-{partition[1]}"
    return repr(partition)
