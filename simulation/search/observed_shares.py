"""Observations of share-partitions: who was given which records, what was acknowledged, and what the log keeps.

Acknowledgements are taken from requests and responses, states from ``__share_group_state``. Deliveries come from
events: a response waits for the acknowledgements of its request, and may come after the lock of its records has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.effects import Append, Reply
from rejoin.coordinator.core.inputs import ConnectionLost, Input, Received
from rejoin.journal.events.coordinator import GroupLoaded, MemberRemoved
from rejoin.journal.events.share_partitions import SharePartitionLoaded, ShareRecordsAcquired
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch, AcknowledgeType
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchRequest, ShareFetchResponse
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.records.share_group_state import ShareSnapshotValue, ShareStateRecord
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC, SharePartitionKey
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.records import read_batch
from rejoin.protocol.wire.state_topics.share_group_state import read_record
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange
from rejoin.simulation.search.observations import ObservedStep
from rejoin.simulation.simulation import Simulation

NONE: Final = ErrorCode.NONE
FINAL_EPOCH: Final = -1
AVAILABLE: Final = 0
FINAL_STATES: Final = frozenset({2, 3, 4})
"""Acknowledged, waiting for its dead letter, archived: a record in these is not delivered again."""

_ANSWERED: Final = (AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)

_ShareRequest: TypeAlias = ShareFetchRequest | ShareAcknowledgeRequest
SessionOfNode: TypeAlias = tuple[str, int, str, str]
"""A node, its incarnation, a group and a member id."""


class Logged(NamedTuple):
    """One record as the log has it. Of two, the one with more deliveries counts, then the later state."""

    delivery_count: int
    state: int


@dataclass(slots=True)
class LoggedShare:
    """A share-partition as the records of its log leave it."""

    start: int = -1
    records: dict[int, Logged] = field(default_factory=dict)

    def is_final(self, offset: int) -> bool:
        """Whether a record is done with."""
        return offset < self.start or (offset in self.records and self.records[offset].state in FINAL_STATES)


@dataclass(slots=True)
class Hold:
    """A record in the hands of a member."""

    member: str
    count: int
    until: Millis
    """The end of its lock, without renewals."""
    latest: Millis
    """The latest instant at which the lock can end, with renewals."""
    is_given_up: bool = False
    """The member has acknowledged it, closed its session, or lost its connection."""


@dataclass(slots=True)
class Term:
    """A share-partition in the memory of one node, from the moment it was loaded."""

    loaded_at: Millis = 0
    holds: dict[int, Hold] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    """By offset: the count of the last delivery."""


TermKey: TypeAlias = tuple[str, int, SharePartitionKey]


class GivenRecords(NamedTuple):
    """A run of records that a member is given."""

    key: SharePartitionKey
    member: str
    first: int
    last: int
    delivery_count: int


class Verdicts(NamedTuple):
    """Acknowledgements that a response reports as stored."""

    key: SharePartitionKey
    member: str
    accepted: tuple[int, ...]
    """Offsets that are done with by them: accepted, rejected, or without a record."""


class ObservedShares:
    """The share groups of a run."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        settings = simulation.cluster.settings
        self.lock_ms: Millis = settings.group_share_record_lock_duration_ms
        self.delivery_limit = settings.group_share_delivery_count_limit
        self.logged: dict[SharePartitionKey, LoggedShare] = {}
        self.broken_snapshots: list[str] = []
        """Snapshots that differ from the records before them."""
        self.terms: dict[TermKey, Term] = {}
        self.done: dict[SharePartitionKey, dict[int, Millis]] = {}
        """By offset: when the share-partition was loaded that answered a verdict as stored."""
        self.asked: dict[SharePartitionKey, set[int]] = {}
        """Offsets for which a member has sent a verdict, answered or not."""
        self.deliveries: dict[SharePartitionKey, dict[int, int]] = {}
        """By offset: how often the record was given to a member."""
        self.given: set[tuple[SharePartitionKey, str, int, int]] = set()
        """Every delivery so far: its member, offset and count."""
        self.session_epochs: dict[SessionOfNode, int] = {}
        """The epoch of the next request of each session."""
        self.wrong_epochs: dict[Exchange, int] = {}
        """Requests with another epoch than their session's, and that epoch."""
        self.not_held: dict[Exchange, dict[SharePartitionKey, tuple[int, str]]] = {}
        """Verdicts about a record that another member holds: its offset, and that member."""
        self.beats: dict[SessionOfNode, Millis] = {}
        """When a heartbeat of a member was accepted last, or its group was loaded."""
        self._came_at: dict[Exchange, Millis] = {}
        """Heartbeats without an answer: a session counts from when they came."""
        self._sessions_of: dict[str, SessionOfNode] = {}
        simulation.disk.on_append.append(self._on_append)

    # -- names

    def key(self, group_id: str, topic: str, partition: int) -> SharePartitionKey:
        """A share-partition by the name of its topic."""
        log = self.simulation.cluster.log_of(TopicPartition(topic, partition))
        return SharePartitionKey(group_id, log.topic_id, partition)

    def partitions(self) -> Iterator[tuple[SharePartitionKey, TopicPartition]]:
        """All share-partitions of the scenario, each with the partition that it reads."""
        scenario = self.simulation.scenario
        for group_id in scenario.groups:
            for topic in scenario.topics_of(group_id):
                for index in range(scenario.topics[topic].partitions):
                    yield self.key(group_id, topic, index), TopicPartition(topic, index)

    def log_of(self, key: SharePartitionKey) -> LoggedShare:
        """A share-partition as its log has it."""
        return self.logged.setdefault(key, LoggedShare())

    def term(self, node: NodeActor, key: SharePartitionKey) -> Term:
        """A share-partition in a node's memory."""
        return self.terms.setdefault((node.name, node.incarnation, key), Term())

    # -- the log

    def _on_append(self, append: Append) -> None:
        partition = append.partition
        if not isinstance(partition, TopicIdPartition) or partition.topic != SHARE_GROUP_STATE_TOPIC:
            return
        for entry in append.records:
            if isinstance(entry, BatchEntry):
                for record in read_batch(entry.data):
                    found = None if record.key is None else read_record(record.key, record.value)
                    if found is not None:
                        self._logged(found)

    def _logged(self, record: ShareStateRecord) -> None:
        key, value = record
        if value is None:
            self.logged.pop(key, None)
            return
        log = self.log_of(key)
        written = {
            offset: Logged(batch.delivery_count, batch.delivery_state)
            for batch in value.state_batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        before = {offset: each for offset, each in log.records.items() if offset >= max(log.start, value.start_offset)}
        if isinstance(value, ShareSnapshotValue):
            for offset, each in before.items():
                if offset not in written or written[offset] < each:
                    self.broken_snapshots.append(f"{key}: offset {offset} was {each}, now {written.get(offset)}")
            if value.start_offset < log.start:
                self.broken_snapshots.append(f"{key}: the start was {log.start}, now {value.start_offset}")
        log.start = max(log.start, value.start_offset)
        for offset, each in written.items():
            log.records[offset] = max(each, log.records.get(offset, each))

    # -- requests

    def before(self, node: NodeActor, what: Input) -> None:
        """Observe an input before it changes anything."""
        if isinstance(what, ConnectionLost):
            session = self._sessions_of.pop(what.connection, None)
            if session is not None:
                self._give_up(node, session[2], session[3])
            return
        if not isinstance(what, Received) or not isinstance(what.token, Exchange):
            return
        request = what.request
        if isinstance(request, ShareGroupHeartbeatRequest):
            self._came_at[what.token] = self.simulation.world.now
        if not isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            return
        group_id, member = request.group_id or "", request.member_id or ""
        session = (node.name, node.incarnation, group_id, member)
        epoch = request.share_session_epoch
        if epoch not in (0, FINAL_EPOCH) and epoch != self.session_epochs.get(session):
            self.wrong_epochs[what.token] = epoch
            return
        if epoch > 0:
            self.session_epochs[session] = epoch + 1
        if epoch == 0:
            self.session_epochs[session] = 1
            if what.context.connection:
                self._sessions_of[what.context.connection] = session
        now = self.simulation.world.now
        for key, batches in _asked(request, group_id):
            self._verdicts_sent(what.token, node, key, member, _verdicts(batches), now)
        if epoch == FINAL_EPOCH:
            self._give_up(node, group_id, member)

    def _verdicts_sent(
        self,
        exchange: Exchange,
        node: NodeActor,
        key: SharePartitionKey,
        member: str,
        verdicts: Iterable[tuple[int, int]],
        now: Millis,
    ) -> None:
        holds = self.term(node, key).holds
        for offset, verdict in verdicts:
            hold = holds.get(offset)
            if verdict in _ANSWERED:
                is_others = hold is not None and hold.member != member
                if hold is None or not is_others:
                    self.asked.setdefault(key, set()).add(offset)
                elif not hold.is_given_up and now < hold.until and not self.log_of(key).is_final(offset):
                    self.not_held.setdefault(exchange, {})[key] = (offset, hold.member)
            if hold is None or hold.member != member:
                continue
            if verdict == AcknowledgeType.RENEW:
                hold.latest = max(hold.latest, now + self.lock_ms)
            else:
                hold.is_given_up = True

    def _give_up(self, node: NodeActor, group_id: str, member: str) -> None:
        for (name, incarnation, key), term in self.terms.items():
            if (name, incarnation, key.group_id) == (node.name, node.incarnation, group_id):
                for hold in term.holds.values():
                    hold.is_given_up |= hold.member == member

    # -- responses

    def loaded(self, step: ObservedStep) -> Iterator[tuple[SharePartitionKey, SharePartitionLoaded]]:
        """Share-partitions that this step has read anew from the share coordinator."""
        for event in step.events(SharePartitionLoaded):
            yield self.key(event.group_id, event.topic, event.partition), event

    def deliveries_of(self, step: ObservedStep) -> Iterator[GivenRecords]:
        """Records that a step gives to members, in order. Their responses may come later, and in another order."""
        for event in step.events(ShareRecordsAcquired):
            key = self.key(event.group_id, event.topic, event.partition)
            yield GivenRecords(key, event.member_id, event.first_offset, event.last_offset, event.delivery_count)

    def responses_of(self, step: ObservedStep) -> Iterator[GivenRecords]:
        """Records that the responses of a step give to members."""
        for exchange, response in step.replies(ShareFetchResponse):
            request = exchange.request
            assert isinstance(request, ShareFetchRequest), "a ShareFetch is answered"
            for topic in response.responses:
                for each in topic.partitions:
                    key = SharePartitionKey(request.group_id or "", topic.topic_id, each.partition_index)
                    for row in each.acquired_records:
                        member = request.member_id or ""
                        yield GivenRecords(key, member, row.first_offset, row.last_offset, row.delivery_count)

    def verdicts_of(self, step: ObservedStep) -> Iterator[tuple[Exchange, Verdicts]]:
        """Verdicts that the responses of a step report as stored."""
        for effect in step.effects:
            if not isinstance(effect, Reply) or not isinstance(effect.token, Exchange):
                continue
            request, response = effect.token.request, effect.response
            if not isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
                continue
            errors = _acknowledge_errors(response)
            group_id, member = request.group_id or "", request.member_id or ""
            for key, batches in _asked(request, group_id):
                if batches and errors.get((key.topic_id, key.partition)) is NONE:
                    done = tuple(offset for offset, verdict in _verdicts(batches) if verdict in _ANSWERED)
                    yield effect.token, Verdicts(key, member, done)

    def answers_to_wrong_epochs(self, step: ObservedStep) -> Iterator[tuple[str, int, ErrorCode]]:
        """Member, epoch and error of each answer to a request whose epoch is not that of its session."""
        for effect in step.effects:
            if isinstance(effect, Reply) and isinstance(effect.token, Exchange) and effect.token in self.wrong_epochs:
                request, response = effect.token.request, effect.response
                if isinstance(response, ShareFetchResponse | ShareAcknowledgeResponse):
                    member = getattr(request, "member_id", "")
                    yield member, self.wrong_epochs[effect.token], response.error_code

    def _beats_of(self, step: ObservedStep) -> None:
        who = (step.node.name, step.node.incarnation)
        for exchange, response in step.replies(ShareGroupHeartbeatResponse):
            request = exchange.request
            assert isinstance(request, ShareGroupHeartbeatRequest), "a ShareGroupHeartbeat is answered"
            came_at = self._came_at.pop(exchange, step.now)
            if response.error_code is NONE and request.member_epoch >= 0:
                key = (*who, request.group_id, request.member_id)
                self.beats[key] = max(came_at, self.beats.get(key, 0))
        for loaded in step.events(GroupLoaded):
            for member_id in loaded.members:
                self.beats[*who, loaded.group_id, member_id] = step.now
        for removed in step.events(MemberRemoved):
            self.beats.pop((*who, removed.group_id, removed.member_id), None)

    def after(self, step: ObservedStep) -> None:
        """Observe a step that has passed the checks."""
        self._beats_of(step)
        for key, _ in self.loaded(step):
            self.terms[step.node.name, step.node.incarnation, key] = Term(step.now)
        for _, verdicts in self.verdicts_of(step):
            done = self.done.setdefault(verdicts.key, {})
            for offset in verdicts.accepted:
                done.setdefault(offset, self.term(step.node, verdicts.key).loaded_at)
        for key, member, first, last, count in self.deliveries_of(step):
            term, until = self.term(step.node, key), step.now + self.lock_ms
            for offset in range(first, last + 1):
                term.holds[offset] = Hold(member, count, until, until)
                term.counts[offset] = count
                delivered = self.deliveries.setdefault(key, {})
                delivered[offset] = delivered.get(offset, 0) + 1
                self.given.add((key, member, offset, count))


def _asked(
    request: _ShareRequest, group_id: str
) -> Iterator[tuple[SharePartitionKey, tuple[AcknowledgementBatch, ...]]]:
    for topic in request.topics:
        for each in topic.partitions:
            yield SharePartitionKey(group_id, topic.topic_id, each.partition_index), each.acknowledgement_batches


def _verdicts(batches: tuple[AcknowledgementBatch, ...]) -> Iterator[tuple[int, int]]:
    """Each offset with its acknowledgement type."""
    for batch in batches:
        types = batch.acknowledge_types
        for offset in range(batch.first_offset, batch.last_offset + 1):
            yield offset, types[0] if len(types) == 1 else types[offset - batch.first_offset]


def _acknowledge_errors(response: object) -> dict[tuple[str, int], ErrorCode]:
    """The error of the acknowledgements of each partition; empty where the whole request has failed."""
    if isinstance(response, ShareFetchResponse) and response.error_code is NONE:
        return {
            (topic.topic_id, each.partition_index): each.acknowledge_error_code
            for topic in response.responses
            for each in topic.partitions
        }
    if isinstance(response, ShareAcknowledgeResponse) and response.error_code is NONE:
        return {
            (topic.topic_id, each.partition_index): each.error_code
            for topic in response.responses
            for each in topic.partitions
        }
    return {}
