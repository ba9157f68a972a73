"""The assignors of other Python clients, asked the same questions: kafka-python and aiokafka.

Both are peers for tests and benchmarks only. Neither knows racks; aiokafka has no cooperative assignor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rejoin.client.assignors import ClusterView, MemberSubscription
from rejoin.client.assignors.stickiness.user_data import decode_sticky_user_data
from rejoin.protocol.embedded.consumer_protocol import encode_subscription

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 calls outdated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

Answer = dict[str, list[tuple[str, int]]]

PEERS: dict[str, tuple[str, ...]] = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}


@dataclass
class PeerTask:
    """A question put in the peer's own terms. `ask` is the peer's work alone; `read` makes its answer ours."""

    ask: Callable[[], Any]
    read: Callable[[Any], Answer]


def prepare(
    peer: str,
    assignor: str,
    cluster: ClusterView,
    members: Mapping[str, MemberSubscription],
    own_user_data: bool = True,
) -> PeerTask:
    """Put a question to a peer. Raises KeyError for an assignor that it does not have.

    kafka-python writes the user data of `sticky` in a form of its own and cannot read Kafka's. It is given
    its own, unless `own_user_data` is False.
    """
    metadata = _Metadata(cluster.partition_counts)
    if peer == "kafka-python":
        return PeerTask(_kafka_python(assignor, metadata, members, own_user_data), _read)
    return PeerTask(_aiokafka(assignor, metadata, members), _read)


class _Metadata:
    """As much of a client's cluster metadata as the assignors look at."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._partitions = {topic: set(range(count)) for topic, count in counts.items()}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        found = self._partitions.get(topic)
        return None if found is None else set(found)


class _Member(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: Any


def _kafka_python(
    assignor: str, metadata: _Metadata, members: Mapping[str, MemberSubscription], own_user_data: bool
) -> Callable[[], Any]:

    found = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[assignor]()

    asked = []
    for member_id, member in members.items():
        subscription = ConsumerProtocolSubscription.decode(encode_subscription(member.subscription, 2))
        if assignor == "sticky" and member.subscription.user_data and own_user_data:
            subscription.user_data = StickyAssignorUserData(
                *decode_sticky_user_data(member.subscription.user_data)
            ).encode()
        asked.append(_Member(member_id, member.group_instance_id, subscription))
    return lambda: found.assign(metadata, asked)


def _aiokafka(assignor: str, metadata: _Metadata, members: Mapping[str, MemberSubscription]) -> Callable[[], Any]:

    found = {
        "range": AiokafkaRange,
        "roundrobin": AiokafkaRoundRobin,
        "sticky": AiokafkaSticky,
    }[assignor]
    asked = {
        member_id: ConsumerProtocolMemberMetadata.decode(encode_subscription(member.subscription, 0))
        for member_id, member in members.items()
    }
    return lambda: found.assign(metadata, asked)


def _read(answer: Any) -> Answer:
    found: Answer = {}
    for member_id, assignment in answer.items():
        listed = getattr(assignment, "assigned_partitions", None) or getattr(assignment, "assignment", None) or ()
        found[member_id] = [(topic, number) for topic, numbers in listed for number in numbers]
    return found
