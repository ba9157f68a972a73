"""DescribeProducers: what partitions remember of their producers. Kafka: ReplicaManager.activeProducerState.

Followers answer as well. Differs: in Kafka with what they have copied; here with what their leader says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import NO_LEADER, Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.partitions.producer_state import ProducerStateEntry
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.records.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResponse,
    ProducerState,
)
from rejoin.protocol.types import TopicIdPartition

VERSION: Final = 0
Found: TypeAlias = DescribeProducersPartitionResponse
AskPeer: TypeAlias = Callable[[int, Request, int, Callable[[Response | None], None]], None]
"""Sends a request in a version to a node, and calls back with the response, if there is one."""


class _Wanted(NamedTuple):
    """A partition that a request names."""

    name: str
    partition: int


class ProducerRequests:
    """Describes producers."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        partitions: Partitions,
        admission: Admission,
        ask: AskPeer,
    ) -> None:
        """``ask`` sends a request to a node."""
        self._ctx = ctx
        self._cluster = cluster
        self._partitions = partitions
        self._admission = admission
        self._ask_peer = ask
        self._asked: set[TopicIdPartition] = set()
        """Partitions that leaders are being asked about. Two nodes that take each other for the leader ask once."""

    def describe_producers(self, token: Token, request: DescribeProducersRequest, context: Context) -> None:
        pending = _PendingDescription(self._ctx, token, request)
        of_leaders: dict[int, list[_Wanted]] = {}
        for topic in request.topics:
            for index in topic.partition_indexes:
                wanted = _Wanted(topic.name, index)
                if wanted in pending.found:
                    continue
                found = pending.found[wanted] = self._describe(topic.name, index, context)
                leader = self._leader_followed(wanted) if found.error_code is _ELSEWHERE else None
                if leader is not None:
                    of_leaders.setdefault(leader, []).append(wanted)
        pending.left = len(of_leaders)
        for leader, some in of_leaders.items():
            self._ask(leader, some, pending)
        if not of_leaders:
            pending.reply()

    def _ask(self, leader: int, wanted: list[_Wanted], pending: _PendingDescription) -> None:
        """Ask the leader of some partitions."""
        partitions = {each for some in wanted if (each := self._partitions.identify(some.name, some.partition))}
        topics = tuple([DescribeProducersTopic(name=each.name, partition_indexes=(each.partition,)) for each in wanted])

        def answered(response: Response | None) -> None:
            self._asked -= partitions
            pending.answered(wanted, response)

        self._asked |= partitions
        self._ask_peer(leader, DescribeProducersRequest(topics=topics), VERSION, answered)

    def _leader_followed(self, wanted: _Wanted) -> int | None:
        """The leader of a partition that this node follows, if it is not being asked."""
        identity = self._partitions.identify(wanted.name, wanted.partition)
        registration = None if identity is None else self._cluster.registration(identity)
        if identity is None or registration is None or identity in self._asked:
            return None
        is_followed = self._ctx.settings.broker_id in registration.replicas
        is_led = registration.leader not in (self._ctx.settings.broker_id, NO_LEADER)
        return registration.leader if is_followed and is_led else None

    def _describe(self, name: str, index: int, context: Context) -> Found:
        message = None
        if not self._admission.allows(DescribeProducersRequest, context, Resource.TOPIC, name):
            found, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"no permission to read {name}"
        else:
            partition = self._partitions.find(name, index)
            if not isinstance(partition, ErrorCode):
                states = tuple(_describe(entry) for entry in partition.producers.entries.values())
                return Found(partition_index=index, active_producers=states)
            found = partition
        return Found(partition_index=index, error_code=found, error_message=message)


_ELSEWHERE: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER


@dataclass(slots=True)
class _PendingDescription:
    """A DescribeProducers, until the leaders have answered of what this node follows."""

    ctx: StepContext
    token: Token
    request: DescribeProducersRequest
    found: dict[_Wanted, Found] = field(default_factory=dict)
    left: int = 0

    def answered(self, asked: list[_Wanted], response: Response | None) -> None:
        """Take in the response of a leader; an unreachable one has none."""
        if isinstance(response, DescribeProducersResponse):
            for wanted, topic in zip(asked, response.topics, strict=True):
                (self.found[wanted],) = topic.partitions
        self.left -= 1
        if not self.left:
            self.reply()

    def reply(self) -> None:
        described = tuple(
            DescribeProducersTopicResponse(
                name=topic.name,
                partitions=tuple(self.found[_Wanted(topic.name, index)] for index in topic.partition_indexes),
            )
            for topic in self.request.topics
        )
        self.ctx.reply(self.token, DescribeProducersResponse(topics=described))


def _describe(entry: ProducerStateEntry) -> ProducerState:
    first_offset = entry.current_txn_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if first_offset is None else first_offset,
    )
