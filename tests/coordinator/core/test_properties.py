"""What must hold whatever happens: random members, times, and a log that hesitates, fails and moves away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoin.coordinator.core.effects import Append, Effect, ReadLog, Reply
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.state import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Elapsed, Input, Millis
from rejoin.coordinator.storage.codec import encode
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.driver import PARTITION, TOPIC, DrivenNode, join, protocols

GROUPS = ("g", "h")
CLIENTS = 5
LOG_ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE)

STEPS = st.one_of(
    st.tuples(st.just("join"), st.integers(0, CLIENTS - 1), st.sampled_from((0, 3, 4, 8, 9)), st.integers(0, 2)),
    st.tuples(st.just("join"), st.integers(0, CLIENTS - 1), st.just(9), st.just(0)),
    st.tuples(st.just("restart"), st.integers(0, CLIENTS - 1)),
    st.tuples(st.just("sync"), st.integers(0, CLIENTS - 1), st.integers(-1, 0)),
    st.tuples(st.just("sync"), st.integers(0, CLIENTS - 1), st.just(0)),
    st.tuples(st.just("beat"), st.integers(0, CLIENTS - 1)),
    st.tuples(st.just("leave"), st.lists(st.integers(0, CLIENTS - 1), min_size=1, max_size=3)),
    st.tuples(st.just("commit"), st.integers(-1, CLIENTS - 1), st.integers(0, 2)),
    st.tuples(st.just("txn"), st.integers(-1, CLIENTS - 1), st.integers(7, 8), st.integers(0, 2)),
    st.tuples(st.just("end"), st.integers(7, 8), st.booleans()),
    st.tuples(st.just("fetch")),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("delete")),
    st.tuples(st.just("describe")),
    st.tuples(st.just("elapse"), st.sampled_from((0, 1, 500, 3_000, 3_000, 5_000, 10_000, 60_000, 600_000))),
    st.tuples(st.just("other group")),
    st.tuples(st.just("settle")),
    st.tuples(st.just("stay"), st.integers(1, 4)),
    st.tuples(st.just("stay"), st.integers(1, 4)),
)
"""What may happen as long as the log does what it should."""

TROUBLE = st.one_of(
    st.tuples(st.just("hold")),
    st.tuples(st.just("store")),
    st.tuples(st.just("fail"), st.sampled_from(LOG_ERRORS)),
    st.tuples(st.just("move"), st.sampled_from((0, 1, 4_000))),
)
"""A log that waits, fails, and is taken away; ``store`` lets it be well again."""

PATIENCE = st.one_of(st.tuples(st.just("hold")), st.tuples(st.just("store")))


def driven(**given: Any) -> DrivenNode:
    """A node with a topic of three partitions."""
    made = DrivenNode(offsets_retention_minutes=20, **given)
    grown = CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)
    made.ask(CreatePartitionsRequest(topics=(grown,), timeout_ms=1000, validate_only=False), 3)
    return made


def watched(driven: DrivenNode, inputs: list[tuple[Millis, Input]], effects: list[str]) -> DrivenNode:
    """Write down what goes in and what comes out."""
    effects_of = driven.effects_of

    def written_down(what: Input) -> list[Effect]:
        inputs.append((driven.now, what))
        found = effects_of(what)
        effects.append(written(found))
        if isinstance(what, Elapsed):
            due = driven.node.next_deadline()
            assert due is None or due > driven.now, "what is due has fired"
        return found

    driven.effects_of = written_down  # type: ignore[method-assign]
    return driven


class World:
    """Some clients that are not quite right in the head, and a node that must be."""

    def __init__(self, **given: Any) -> None:
        self.inputs: list[tuple[Millis, Input]] = []
        self.effects: list[str] = []
        self.generations: dict[int, tuple[ClassicGroup, int]] = {}
        self.driven = watched(driven(**given), self.inputs, self.effects)
        self.group_id = "g"
        self.members: dict[tuple[str, int], JoinGroupResponse] = {}
        self.asked: dict[int, tuple[str, int]] = {}
        self.failing: ErrorCode = ErrorCode.NONE

    # --- clients

    def known(self, client: int) -> tuple[str, int]:
        """Member id and generation as this client remembers them."""
        answer = self.members.get((self.group_id, client))
        return ("", -1) if answer is None else (answer.member_id, answer.generation_id)

    def send(self, request: Request, version: int, client: int = -1) -> None:
        number = self.driven.send(request, version)
        self.asked[number] = (self.group_id, client)
        self.listen()

    def listen(self) -> None:
        """Clients learn from the answers to their JoinGroups, whenever those come."""
        for number in [number for number in self.asked if number in self.driven.replies]:
            answer = self.driven.replies[number]
            asked = self.asked.pop(number)
            if isinstance(answer, JoinGroupResponse) and answer.member_id:
                self.members[asked] = answer

    def do(self, step: tuple[Any, ...]) -> None:
        name, *rest = step
        getattr(self, f"do_{name.replace(' ', '_')}")(*rest)
        if self.failing is not ErrorCode.NONE:
            while self.driven.logs.pending_appends:
                self.driven.logs.end_append(self.failing)
        self.listen()
        self.check()

    def do_join(self, client: int, version: int, wishes: int) -> None:
        member_id, _ = self.known(client)
        static = client >= 3 and version >= 5
        listed = (protocols("range", "sticky"), protocols("sticky", "range"), protocols("range", topics=("t", "u")))
        request = join(
            version,
            group_id=self.group_id,
            member_id=member_id,
            group_instance_id=f"i{client}" if static else None,
            protocols=listed[wishes],
            session_timeout_ms=6_000 + 4_000 * (client % 2),
        )
        self.send(request, version, client)

    def do_restart(self, client: int) -> None:
        self.members.pop((self.group_id, client), None)
        self.do_join(client, 9, 0)

    def do_sync(self, client: int, error: int) -> None:
        member_id, generation = self.known(client)
        joined = [self.known(other)[0] for other in range(CLIENTS)]
        shares = tuple(
            SyncGroupRequestAssignment(member_id=other, assignment=f"{generation} {other}".encode()) for other in joined
        )
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=generation + error, member_id=member_id, assignments=shares
        )
        self.send(request, 4, client)

    def do_beat(self, client: int) -> None:
        member_id, generation = self.known(client)
        self.send(HeartbeatRequest(group_id=self.group_id, generation_id=generation, member_id=member_id), 4)

    def do_settle(self) -> None:
        """All who think that they are members rejoin and sync."""
        here = [client for client in range(CLIENTS) if (self.group_id, client) in self.members]
        for client in here:
            self.do_join(client, 9, 0)
        self.driven.elapse(3_000)
        self.listen()
        for client in here:
            self.do_sync(client, 0)

    def do_stay(self, times: int) -> None:
        """All who think that they are members send heartbeats."""
        for _ in range(times):
            for client in range(CLIENTS):
                if (self.group_id, client) in self.members:
                    self.do_beat(client)
            self.driven.elapse(3_000)

    def do_leave(self, clients: list[int]) -> None:
        members = tuple(
            MemberIdentity(member_id="", group_instance_id=f"i{client}")
            if client >= 3
            else MemberIdentity(member_id=self.known(client)[0])
            for client in clients
        )
        self.send(LeaveGroupRequest(group_id=self.group_id, members=members), 5)

    def do_commit(self, client: int, partition: int) -> None:
        member_id, generation = self.known(client)
        mark = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=len(self.inputs), committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(mark,)),),
        )
        self.send(request, 9)

    def do_txn(self, client: int, producer: int, partition: int) -> None:
        member_id, generation = self.known(client)
        mark = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=len(self.inputs), committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=self.group_id,
            producer_id=producer,
            producer_epoch=0,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(mark,)),),
        )
        self.send(request, 3)

    def do_end(self, producer: int, committed: bool) -> None:
        marker = WritableTxnMarker(
            producer_id=producer,
            producer_epoch=0,
            transaction_result=committed,
            topics=(WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=(0,)),),
            coordinator_epoch=0,
        )
        self.send(WriteTxnMarkersRequest(markers=(marker,)), 1)

    def do_fetch(self) -> None:
        groups = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in GROUPS)
        self.send(OffsetFetchRequest(groups=groups, require_stable=True), 9)

    def do_forget(self, partition: int) -> None:
        marks = (OffsetDeleteRequestPartition(partition_index=partition),)
        topics = (OffsetDeleteRequestTopic(name=TOPIC, partitions=marks),)
        self.send(OffsetDeleteRequest(group_id=self.group_id, topics=topics), 0)

    def do_delete(self) -> None:
        self.send(DeleteGroupsRequest(groups_names=(self.group_id,)), 2)

    def do_describe(self) -> None:
        self.send(DescribeGroupsRequest(groups=GROUPS, include_authorized_operations=True), 5)

    def do_other_group(self) -> None:
        self.group_id = GROUPS[1 - GROUPS.index(self.group_id)]

    # --- surroundings

    def do_elapse(self, length_ms: Millis) -> None:
        self.driven.elapse(length_ms)

    def do_hold(self) -> None:
        self.driven.logs.defers_appends = True
        self.failing = ErrorCode.NONE

    def do_store(self) -> None:
        self.driven.logs.defers_appends = False
        self.failing = ErrorCode.NONE
        while self.driven.logs.pending_appends:
            self.driven.logs.end_append()

    def do_fail(self, error: ErrorCode) -> None:
        self.driven.logs.defers_appends = True
        self.failing = error

    def do_move(self, away_ms: Millis) -> None:
        self.driven.resign()
        self.driven.elapse(away_ms)
        self.driven.elect()

    # --- what must hold

    def check(self) -> None:
        assert not self.driven.emitted(CoreFailed)
        for group in self.groups():
            check_group(group)
            self.check_timers(group)
            before = self.generations.get(id(group), (group, 0))[1]
            assert group.generation >= before, "a generation never goes back"
            self.generations[id(group)] = (group, group.generation)

    def groups(self) -> list[ClassicGroup]:
        return classic_groups(self.driven.shard()) if self.driven.node.shard(PARTITION) else []

    def check_timers(self, group: ClassicGroup) -> None:
        set_timers = {
            (timer.timer, timer.member_id) for timer in self.driven.node.timers() if timer.group_id == group.group_id
        }
        for member in group.members.values():
            # A parked request stands in for the session, whose timer may have fired already.
            assert ("session", member.member_id) in set_timers or member.has_satisfied_heartbeat
        for member_id in group.pending_join:
            assert ("session", member_id) in set_timers
        if group.state is PREPARING_REBALANCE:
            assert ("join", "") in set_timers
        if group.pending_sync and group.state in (COMPLETING_REBALANCE, STABLE):
            assert ("sync", "") in set_timers


def check_group(group: ClassicGroup) -> None:
    """What a group's fields say of each other."""
    members = group.members.values()
    assert group.awaiting_join == sum(member.parked_join is not None for member in members)
    listed = Counter(name for member in members for name in set(member.protocol_names()))
    assert group.supported == dict(listed)
    assert group.static_members == {
        member.group_instance_id: member.member_id for member in members if member.group_instance_id is not None
    }
    assert all(key == member.member_id for key, member in group.members.items())
    assert not set(group.pending_join) & set(group.members)
    assert (group.leader in group.members) if group.members else (group.leader is None)
    if group.members:
        assert any(count == len(group.members) for count in group.supported.values()), "they have something in common"


def written(effects: list[Effect]) -> str:
    """Effects as text, to compare byte for byte."""
    return "\n".join(as_text(effect) for effect in effects)


def as_text(effect: Effect) -> str:
    match effect:
        case Reply(token=token, response=response):
            version = BY_NAME[type(response).__name__.removesuffix("Response")].max_version
            return f"reply {token} {response.to_json(version).decode()}"
        case Append(append_id=append_id, records=records):
            return f"append {append_id} {[tuple(encode(record)) for record in records]}"
        case ReadLog(partition=partition, epoch=epoch):
            return f"read {partition.partition} {epoch}"
        case Event():
            return f"{effect.name} {effect.model_dump_json()}"
    raise AssertionError(f"a node without a topics log asked for {effect}")


def play(world: World, steps: list[tuple[Any, ...]]) -> None:
    for step in steps:
        world.do(step)


def steps(*kinds: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Sequences, of which half begin with members that have joined and share out an assignment."""
    joining = [("join", client, 9, 0) for client in (0, 0, 1, 1, 3, 4)]
    opening = [*joining, ("elapse", 6_000), *(("sync", client, 0) for client in (1, 3, 0))]
    return st.lists(st.one_of(STEPS, *kinds), min_size=5, max_size=40).flatmap(
        lambda drawn: st.sampled_from((drawn, opening + drawn))
    )


def usual(test: Callable[..., None]) -> Callable[..., None]:
    return settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])(test)


@usual
@given(drawn=steps(TROUBLE), delay_ms=st.sampled_from((0, 3_000)), limit=st.sampled_from((1, 2, 100)))
def test_every_request_is_answered_once_and_the_group_stays_whole(
    drawn: list[tuple[Any, ...]], delay_ms: int, limit: int
) -> None:
    world = World(group_initial_rebalance_delay_ms=delay_ms, group_max_size=limit)
    play(world, drawn)
    world.driven.resign()
    assert set(world.driven.replies) == set(range(1, world.driven.requests + 1))
    assert world.driven.node.next_deadline() is None, "a node that leads nothing waits for nothing"


@usual
@given(drawn=steps(TROUBLE), order=st.sampled_from(("join", "hashmap")))
def test_the_same_inputs_have_the_same_effects(drawn: list[tuple[Any, ...]], order: str) -> None:
    world = World(emulator_member_order=order)
    play(world, drawn)
    again = driven(emulator_member_order=order)
    for (now, what), effects in zip(world.inputs, world.effects, strict=True):
        again.now = now
        assert written(again.effects_of(what)) == effects


@usual
@given(drawn=steps(PATIENCE), delay_ms=st.sampled_from((0, 3_000)))
def test_what_is_in_memory_is_in_the_log(drawn: list[tuple[Any, ...]], delay_ms: int) -> None:
    """Offsets of every group, and members, generation and assignments of Stable ones, survive the node."""
    world = World(group_initial_rebalance_delay_ms=delay_ms, offsets_commit_timeout_ms=10**9)
    play(world, drawn)
    world.do_store()
    successor = DrivenNode(logs=world.driven.logs)
    shard, before = successor.shard(), world.driven.shard()
    loaded = {group.group_id: group for group in classic_groups(shard)}
    assert set(loaded) <= {group.group_id for group in world.groups()}, "what is deleted stays deleted"
    for group in world.groups():
        kept = loaded.get(group.group_id)
        offsets, offsets_before = shard.offsets.of(group.group_id), before.offsets.of(group.group_id)
        held = offsets.pending
        assert offsets.stored == offsets_before.stored
        assert {
            producer: {partition: offset.value for partition, offset in of.items()} for producer, of in held.items()
        } == {
            producer: {partition: offset.value for partition, offset in of.items()}
            for producer, of in offsets_before.pending.items()
        }
        if kept is not None:
            assert kept.generation <= group.generation
            assert kept.generation or not kept.members, "only an assignment makes members last"
        if group.state is STABLE:
            assert kept is not None
            assert as_stored(kept) == as_stored(group)


def classic_groups(shard: GroupsShard) -> list[ClassicGroup]:
    return [group for group in shard.groups.values() if isinstance(group, ClassicGroup)]


def as_stored(group: ClassicGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "generation": group.generation,
        "leader": group.leader,
        "protocol": (group.protocol_type, group.protocol_name),
        "members": {
            member.member_id: (member.group_instance_id, member.assignment) for member in group.members.values()
        },
    }
