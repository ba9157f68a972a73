"""A share consumer's core without sockets: what it sends, and responses in its place.

bench = ShareBench()
bench.join({"t": 2})
bench.poll()                        # ["ShareFetch 0 t-0 t-1"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rejoin.client.core.effects import (
    AcknowledgementCallback,
    AcknowledgementsCommitted,
    CallDone,
    Effect,
    PollFailed,
    PollReturned,
    Send,
)
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import Answered, Closed, Elapsed, Failed, Failure, Polled, Subscribed
from rejoin.client.core.share.core import ShareConsumerCore
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked, ShareInput
from rejoin.client.share_config import ShareConsumerConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import Coordinator, FindCoordinatorResponse
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.share.share_acknowledge import (
    AcknowledgedPartition,
    AcknowledgedTopic,
    ShareAcknowledgeResponse,
)
from rejoin.protocol.messages.share.share_fetch import (
    AcquiredRecords,
    ShareFetchablePartition,
    ShareFetchableTopic,
    ShareFetchResponse,
)
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareAssignment,
    SharedTopicPartitions,
    ShareGroupHeartbeatResponse,
)
from rejoin.protocol.registry import BY_REQUEST, Api
from rejoin.protocol.types import TopicPartition
from tests.client.core.fetch.test_batches import batch, plain
from tests.client.core.heartbeats import topic_id

GROUP: Final = "g"
MEMBER_ID: Final = "member-0"
START: Final = 1_700_000_000_000


class ShareBench:
    """One core. Partition p of each topic is led by ``leaders[p]``, or by node 1 where no leaders are given."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        leaders: Sequence[int] = (),
        ids: Mapping[str, str] | None = None,
        versions: Mapping[Api, int] | None = None,
        deserializers: Any = (None, None),
        group_id: str = GROUP,
        **settings: Any,
    ) -> None:
        self.topics = {"t": 2} if topics is None else dict(topics)
        self.ids = {name: topic_id(name) for name in self.topics} if ids is None else dict(ids)
        self.leaders = list(leaders)
        config = ShareConsumerConfig(group_id=group_id, client_id="bench", **settings)
        self.core = ShareConsumerCore(
            config,
            lambda: 0.5,
            member_id=MEMBER_ID,
            explicit=config.share_acknowledgement_mode == "explicit",
            limit_records=config.share_acquire_mode == "record_limit",
            versions=versions,
            deserializers=deserializers,
        )
        self.now = START
        self.waiting: list[Send] = []
        self.records: list[ConsumerRecord] = []
        self.polls: list[list[ConsumerRecord] | KafkaError] = []
        self.commits: list[Mapping[TopicPartition, KafkaError | None]] = []
        self.calls: list[KafkaError | None] = []
        self.callbacks: list[AcknowledgementCallback] = []

    # -- inputs

    def step(self, what: ShareInput) -> None:
        """Hand in an input. Metadata and FindCoordinator are answered at once."""
        self._apply(self.core.step(what, self.now))

    def _apply(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(request=MetadataRequest()):
                    self.step(Answered(effect.request_id, self._metadata()))
                case Send() if BY_REQUEST[type(effect.request)].name == "FindCoordinator":
                    found = Coordinator(key=self.core.config.group_id or "", node_id=1, host="h", port=9001)
                    self.step(Answered(effect.request_id, FindCoordinatorResponse(coordinators=(found,))))
                case Send():
                    self.waiting.append(effect)
                case PollReturned():
                    self.polls.append([record for part in effect.records or () for record in part])
                case PollFailed():
                    self.polls.append(effect.error)
                case AcknowledgementsCommitted():
                    self.commits.append(effect.results)
                case AcknowledgementCallback():
                    self.callbacks.append(effect)
                case CallDone():
                    self.calls.append(effect.error)
                case _:
                    pass

    def _metadata(self) -> MetadataResponse:
        nodes = sorted({1, *self.leaders})
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=each, host="h", port=9000 + each) for each in nodes),
            topics=tuple(
                MetadataResponseTopic(
                    name=name,
                    topic_id=self.ids[name],
                    partitions=tuple(
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=self.leaders[index] if self.leaders else 1,
                            leader_epoch=1,
                            replica_nodes=(1,),
                            isr_nodes=(1,),
                        )
                        for index in range(count)
                    ),
                )
                for name, count in self.topics.items()
            ),
        )

    def advance(self, millis: int) -> None:
        """Let time pass, with each timer at its instant."""
        until = self.now + millis
        while (due := self.core.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.step(Elapsed())
        self.now = until

    def subscribe(self) -> None:
        self.step(Subscribed(tuple(self.topics)))

    def poll(self, timeout_ms: int = 1_000) -> None:
        self.step(Polled(timeout_ms))

    def acknowledge(self, topic: str, partition: int, offset: int, kind: int) -> KafkaError | None:
        self.step(RecordAcknowledged("ack", topic, partition, offset, kind))
        return self.calls.pop()

    def commit(self) -> None:
        self.step(ShareCommitAsked("commit"))

    def close(self) -> None:
        self.step(Closed("close"))

    # -- responses

    def respond(self, response: Response) -> None:
        """Answer the request that has waited longest."""
        sent = self.waiting.pop(0)
        assert isinstance(response, BY_REQUEST[type(sent.request)].response), sent.request
        self.step(Answered(sent.request_id, response))

    def disconnect(self) -> None:
        """The request that has waited longest is lost."""
        self.step(Failed(self.waiting.pop(0).request_id, Failure.DISCONNECT))

    def beat(self, epoch: int = 0, partitions: Sequence[int] | None = None, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a heartbeat; ``partitions`` are of the first topic."""
        assignment = None
        if partitions is not None:
            first = self.ids[next(iter(self.topics))]
            given = SharedTopicPartitions(topic_id=first, partitions=tuple(partitions))
            assignment = ShareAssignment(topic_partitions=(given,) if partitions else ())
        self.respond(
            ShareGroupHeartbeatResponse(
                error_code=error,
                member_id=MEMBER_ID,
                member_epoch=epoch,
                heartbeat_interval_ms=5_000,
                assignment=assignment,
            )
        )

    def join(self, partitions: Sequence[int] | None = None) -> None:
        """Subscribe, poll, and get partitions of the first topic: all of them unless some are named."""
        self.subscribe()
        self.poll()
        count = next(iter(self.topics.values()))
        self.beat(2, list(range(count)) if partitions is None else partitions)
        heartbeat = next(each for each in self.waiting if "Heartbeat" in type(each.request).__name__)
        self.waiting.remove(heartbeat)
        self.waiting.insert(0, heartbeat)
        self.beat(2)

    # -- requests

    def sent(self) -> list[str]:
        """The requests that wait, as lines."""
        return [self.shown(each) for each in self.waiting]

    def shown(self, sent: Send) -> str:
        """A request as a line: session epoch, partitions with acknowledgements, and what is unusual."""
        request: Any = sent.request
        name = BY_REQUEST[type(request)].name
        if name == "ShareGroupHeartbeat":
            topics = request.subscribed_topic_names
            return f"{name} {request.member_epoch}" + ("" if topics is None else f" {list(topics)}")
        names = {each: topic for topic, each in self.ids.items()}
        node = "" if sent.to is None or sent.to.node_id == 1 else f"@{sent.to.node_id}"
        parts = [f"{name}{node} {request.share_session_epoch}"]
        for topic in request.topics:
            for partition in topic.partitions:
                parts.append(f"{names[topic.topic_id]}-{partition.partition_index}")
                for each in partition.acknowledgement_batches:
                    types = "".join(map(str, each.acknowledge_types))
                    parts.append(f"{each.first_offset}..{each.last_offset}:{types}")
        for topic in getattr(request, "forgotten_topics_data", ()):
            parts += [f"-{names[topic.topic_id]}-{each}" for each in topic.partitions]
        if getattr(request, "max_records", 1) == 0:
            parts.append("no-records")
        if request.is_renew_ack:
            parts.append("renews")
        return " ".join(parts)


def acquired(
    partition: int,
    *ranges: tuple[int, int, int],
    error: ErrorCode = ErrorCode.NONE,
    acknowledged: ErrorCode = ErrorCode.NONE,
    data: bytes | None = None,
) -> ShareFetchablePartition:
    """A partition of a ShareFetch response, with one batch for each range (first, last, delivery count)."""
    made = b"".join(batch(first, plain(last - first + 1, first)) for first, last, _ in ranges)
    rows = [AcquiredRecords(first_offset=f, last_offset=last, delivery_count=n) for f, last, n in ranges]
    return ShareFetchablePartition(
        partition_index=partition,
        error_code=error,
        acknowledge_error_code=acknowledged,
        records=made if data is None else data,
        acquired_records=tuple(rows),
    )


def fetched(topic: str, *partitions: ShareFetchablePartition, error: ErrorCode = ErrorCode.NONE) -> ShareFetchResponse:
    """A ShareFetch response."""
    found = (ShareFetchableTopic(topic_id=topic_id(topic), partitions=partitions),) if partitions else ()
    return ShareFetchResponse(error_code=error, acquisition_lock_timeout_ms=30_000, responses=found)


def taken_in(topic: str, *partitions: tuple[int, ErrorCode], error: ErrorCode = ErrorCode.NONE) -> Response:
    """A ShareAcknowledge response."""
    rows = tuple(AcknowledgedPartition(partition_index=index, error_code=code) for index, code in partitions)
    found = (AcknowledgedTopic(topic_id=topic_id(topic), partitions=rows),) if rows else ()
    return ShareAcknowledgeResponse(error_code=error, responses=found)
