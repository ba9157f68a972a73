"""A classic group: members, protocols, leader and state. Its invariants are kept here.

Deciding what a request or a timer does to a group is the work of ``joining``, ``rebalance`` and
``member_operations``.

Kafka: ClassicGroup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from rejoin.coordinator.core.groups.classic.member import (
    CONSUMER_PROTOCOL_TYPE,
    Member,
    Protocols,
    names_of,
)
from rejoin.coordinator.core.groups.classic.state import (
    CAN_REBALANCE,
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    ON_COMMIT,
    ON_DELETE_GROUP,
    PREPARING_REBALANCE,
    STABLE,
    WHY,
    GroupState,
)
from rejoin.coordinator.core.groups.classic.subscriptions import topics_of
from rejoin.coordinator.core.groups.group import Committer, RetentionStart
from rejoin.coordinator.core.groups.statistics import owned_partitions
from rejoin.coordinator.core.groups.timers import join_timer, sync_timer
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.journal.events.coordinator import Ownership
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import hash_map_order
from rejoin.protocol.messages.groups.join_group import JoinGroupResponseMember
from rejoin.protocol.records.consumer_offsets import GroupMetadataValue
from rejoin.protocol.types import TopicPartition

K = TypeVar("K")

CLASSIC: Final = "classic"
"""The kind of these groups, as ListGroups names it."""


@dataclass(slots=True)
class InitialDelay:
    """The window for more members that a group which was Empty opens (KIP-134). Lengths in ms."""

    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class ClassicGroup:
    """A group of one offsets partition. ``members`` is in join order; ``member_order`` says what order is shown.

    ``supported`` counts members by the names they list, ``ballots`` by their whole lists.
    """

    group_id: str
    partition: TopicPartition
    state_since: Millis
    member_order: str = "join"
    state: GroupState = EMPTY
    previous_state: GroupState = DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_join: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    supported: dict[str, int] = field(default_factory=dict)
    awaiting_join: int = 0
    new_member_added: bool = False
    subscribed_topics: dict[str, None] | None = None
    initial_delay: InitialDelay | None = None
    persisted: bool = False
    ballots: dict[tuple[str, ...], int] = field(default_factory=dict)
    hash_capacity: int = 16

    # --- names of its timers

    @property
    def join_key(self) -> TimerKey:
        return join_timer(self.partition, self.group_id)

    @property
    def sync_key(self) -> TimerKey:
        return sync_timer(self.partition, self.group_id)

    # --- questions

    @property
    def can_rebalance(self) -> bool:
        return self.state in CAN_REBALANCE

    @property
    def all_joined(self) -> bool:
        """All members wait for the join phase to end, and no handed-out id is still to come."""
        return self.awaiting_join == len(self.members) and not self.pending_join

    @property
    def is_initial(self) -> bool:
        """Whether the join phase that goes on is one of a group that was Empty."""
        return self.state is PREPARING_REBALANCE and self.previous_state is EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member reads the topic; a consumer group whose subscriptions are unknown may read anything."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Whether this is a member. Kafka: ClassicGroup.validateMember; without an instance id only the id counts."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols fits: the group's type, and one name that all members know."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(
            self.supported.get(protocol.name, 0) == len(self.members) for protocol in protocols
        )

    def ordered_members(self) -> list[Member]:
        """All members in the order that is shown: by joining, or as Java's HashMap would have them."""
        # Differs: Kafka has no order here; a HashMap's shows through. Join order unless the setting says otherwise.
        if self.member_order == "join":
            return list(self.members.values())
        return [self.members[member_id] for member_id in hash_map_order(list(self.members), self.hash_capacity)]

    def member_of_instance(self, group_instance_id: str) -> str | None:
        """The member id that a static member has now."""
        return self.static_members.get(group_instance_id)

    # --- what any kind of group answers

    @property
    def kind(self) -> str:
        """Which protocol its members speak, as ListGroups names it."""
        return CLASSIC

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def parked_joins(self) -> list[Token]:
        """Who waits for the join phase to end, by member."""
        return [member.parked_join.token for member in self.members.values() if member.parked_join is not None]

    @property
    def parked_syncs(self) -> list[Token]:
        """Who waits for the leader's assignment, by member."""
        return [member.parked_sync for member in self.members.values() if member.parked_sync is not None]

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and none is about to join."""
        return self.state in (EMPTY, DEAD)

    def validate_offset_commit(
        self, committer: Committer, version: int = 0, partitions: Iterable[TopicPartition] = ()
    ) -> ErrorCode:
        """Whether the group takes this commit. Kafka: ClassicGroup.validateOffsetCommit."""
        if self.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if committer.generation < 0 and self.state is EMPTY:
            return ErrorCode.NONE
        if committer.generation >= 0 or committer.member_id or committer.group_instance_id is not None:
            error = self.check_member(committer.member_id, committer.group_instance_id)
            if error is not ErrorCode.NONE:
                return error
            if committer.generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not committer.is_transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if committer.is_transactional else ON_COMMIT.get(self.state, ErrorCode.NONE)

    def validate_offset_fetch(self, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
        """Whether the group's offsets can be read; no member is asked for."""
        return ErrorCode.GROUP_ID_NOT_FOUND if self.state is DEAD else ErrorCode.NONE

    def validate_offset_delete(self) -> ErrorCode:
        """Whether single offsets may be deleted: those that members of a consumer group do not read."""
        if self.state is DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if self.is_empty or self.uses_consumer_protocol else ErrorCode.NON_EMPTY_GROUP

    def validate_delete(self) -> ErrorCode:
        """Whether the whole group may be deleted."""
        return ON_DELETE_GROUP[self.state]

    def offsets_retained_from(self) -> RetentionStart | None:
        """Since the group is Empty, or since each commit. Kafka: ClassicGroup.offsetExpirationCondition."""
        if self.protocol_type is not None and self.state is EMPTY:
            return lambda _: self.state_since
        subscriptions_known = self.uses_consumer_protocol and self.subscribed_topics is not None
        if self.protocol_type is None or (subscriptions_known and self.state is STABLE):
            return lambda value: value.commit_timestamp
        return None

    # --- membership

    def add(self, member: Member) -> None:
        """Add a member; the first of a memberless group sets its type, the first of a leaderless one leads."""
        assert member.member_id not in self.members, "a member is added once"
        assert not member.is_static or member.group_instance_id not in self.static_members, "an instance has one member"
        self.members[member.member_id] = member
        while len(self.members) * 4 > self.hash_capacity * 3:
            self.hash_capacity *= 2
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count_protocols(member.protocols, 1)
        if member.parked_join is not None:
            self.awaiting_join += 1
        if self.leader is None:
            self.leader = member.member_id
        self.pending_join.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Take a member, or a pending id, out; a lost leader is followed by the first of those that remain."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member.protocols, -1)
            if member.parked_join is not None:
                self.awaiting_join -= 1
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = self._first_member_id()
        self.pending_join.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        return member

    def rename(self, member: Member, new_member_id: str) -> Member:
        """Give a static member a new id and keep all the rest, its assignment and leadership too.

        Its parked requests must have been answered before.
        """
        # Kafka: ClassicGroup.replaceStaticMember. The old id stays in pending_sync, and may cause one late rebalance.
        assert member.group_instance_id is not None, "only a static member is renamed"
        assert member.parked_join is None, "the old id's JoinGroup is answered first"
        del self.members[member.member_id]
        renamed = Member(
            group_id=member.group_id,
            partition=member.partition,
            member_id=new_member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocols=member.protocols,
            assignment=member.assignment,
        )
        self.members[new_member_id] = renamed
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader == member.member_id:
            self.leader = new_member_id
        return renamed

    def replace_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)

    def _first_member_id(self) -> str | None:
        if self.member_order == "join":
            return next(iter(self.members), None)
        rest = self.ordered_members()
        return rest[0].member_id if rest else None

    def _count_protocols(self, protocols: Protocols, change: int) -> None:
        names = names_of(protocols)
        _add(self.ballots, names, change)
        for name in dict.fromkeys(names):
            _add(self.supported, name, change)

    # --- choices

    def elect_rejoined_leader(self) -> bool:
        """Make sure that the leader waits for the join phase to end; false when no member does."""
        if self.leader is None:
            return False
        if self.members[self.leader].parked_join is not None:
            return True
        for member in self.ordered_members():
            if member.parked_join is not None:
                self.leader = member.member_id
                return True
        return False

    def select_protocol(self) -> str:
        """The protocol that most members vote for among those that all support.

        Ties go to the name that comes first in a Java HashMap of the names voted for, as in Kafka, where that is not
        promised.
        """
        members = len(self.members)
        candidates = dict.fromkeys(name for name, count in self.supported.items() if count == members)
        votes: dict[str, int] = {}
        for names, count in self.ballots.items():
            name = next(name for name in names if name in candidates)
            votes[name] = votes.get(name, 0) + count
        most = max(votes.values())
        return next(name for name in hash_map_order(list(votes)) if votes[name] == most)

    def compute_subscribed_topics(self) -> dict[str, None] | None:
        """The topics of all members; none when they are unknown. Kafka: ClassicGroup.computeSubscribedTopics."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return {}
        if self.protocol_name is None:
            return None
        topics: dict[str, None] = {}
        for member in self.members.values():
            subscribed = topics_of(member.metadata_for(self.protocol_name))
            if subscribed is None:
                return None
            topics.update(dict.fromkeys(subscribed))
        return topics

    # --- transitions

    def enter(self, state: GroupState, now: Millis) -> None:
        """Go to another state. Only legal transitions are possible; the others are bugs."""
        assert (self.state, state) in WHY, f"a group does not go from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since = now

    def become_stable(self, generation: int) -> None:
        """Members that were in a consumer group go on in a generation, with the protocol that most vote for."""
        self.state = STABLE
        self.generation = generation
        self.protocol_type = CONSUMER_PROTOCOL_TYPE
        self.protocol_name = self.select_protocol()
        self.subscribed_topics = self.compute_subscribed_topics()
        self.persisted = True

    def next_generation(self, now: Millis) -> None:
        """End the join phase: another generation, with a protocol if there are members."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.enter(COMPLETING_REBALANCE if self.members else EMPTY, now)
        self.pending_sync.clear()

    # --- how it is shown and stored

    def join_response_members(self) -> tuple[JoinGroupResponseMember, ...]:
        """All members with their metadata for the selected protocol, for the leader."""
        assert self.protocol_name is not None, "a generation with members has a protocol"
        name = self.protocol_name
        return tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata_for(name),
            )
            for member in self.ordered_members()
        )

    def assignments(self) -> dict[str, bytes]:
        return {member_id: member.assignment for member_id, member in self.members.items()}

    def ownership(self, assignments: dict[str, bytes]) -> Ownership:
        """Assignments as people read them; nothing for groups whose assignments are not the consumer protocol's."""
        if not self.uses_consumer_protocol:
            return {}
        return {member_id: owned_partitions(data) or {} for member_id, data in assignments.items()}

    def metadata(self, assignments: dict[str, bytes] | None = None) -> GroupMetadataValue:
        """The group's record with these assignments, or with those that members have.

        Kafka: only the metadata for the selected protocol is kept.
        """
        name = self.protocol_name or ""
        members = self.members.values()
        if assignments is None:
            stored = tuple(member.stored(name, member.assignment) for member in members)
        else:
            stored = tuple(member.stored(name, assignments.get(member.member_id, b"")) for member in members)
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_since,
            members=stored,
        )


def _add(counts: dict[K, int], key: K, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
