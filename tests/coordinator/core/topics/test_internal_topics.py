"""Internal topics are among all topics from their first use on; and the first answer about an automatic topic."""

from __future__ import annotations

import pytest

from rejoin.protocol.brokers.releases import RELEASES
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from rejoin.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from tests.coordinator.core.driver import DrivenNode
from tests.coordinator.core.topics.test_topics import metadata
from tests.coordinator.core.topics.test_topics_log import two

GROUP, TRANSACTION = 0, 1
CLIENTS = ("t", False, 1)
Listed = list[tuple[str, bool, int]]


def listed(driven: DrivenNode) -> Listed:
    """All topics, as Metadata lists them: each with whether it is internal, and its partitions."""
    found = [(each.name or "", each.is_internal, len(each.partitions)) for each in metadata(driven).topics]
    request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=2_000, cursor=None)
    described = driven.ask(request, 0).topics
    assert found == [(each.name, each.is_internal, len(each.partitions)) for each in described]
    return found


def find(driven: DrivenNode, key_type: int) -> None:
    driven.ask(FindCoordinatorRequest(coordinator_keys=("g",), key_type=key_type), 4)


def test_internal_topics_are_listed_from_their_first_use_on() -> None:
    driven = DrivenNode(offsets_topic_num_partitions=5, transaction_state_log_num_partitions=3)
    assert listed(driven) == [CLIENTS]
    find(driven, GROUP)
    assert listed(driven) == [(OFFSETS_TOPIC, True, 5), CLIENTS]
    find(driven, TRANSACTION)
    assert listed(driven) == [(OFFSETS_TOPIC, True, 5), (TRANSACTION_STATE_TOPIC, True, 3), CLIENTS]


@pytest.mark.parametrize("creates", [False, True])
def test_its_name_in_metadata_is_a_use_where_it_may_create_topics(creates: bool) -> None:
    driven = DrivenNode(offsets_topic_num_partitions=5)
    assert metadata(driven, OFFSETS_TOPIC, creates=creates).topics[0].error_code is ErrorCode.NONE
    assert listed(driven) == ([(OFFSETS_TOPIC, True, 5), CLIENTS] if creates else [CLIENTS])


def test_the_use_of_one_node_is_known_to_others_and_written_once() -> None:
    one, other = two()
    for _ in range(3):
        one.ask(FindCoordinatorRequest(coordinator_keys=("g",), key_type=GROUP), 4)
    assert len(one.replies) == 3, "no answer waits for that"
    one.end_append()
    assert not one.pending
    other.read_topics()
    for node in (one, other):
        answer = node.replies[node.ask(MetadataRequest(topics=None), 9)]
        assert isinstance(answer, MetadataResponse)
        assert [each.name for each in answer.topics] == [OFFSETS_TOPIC]
    other.ask(FindCoordinatorRequest(coordinator_keys=("g",), key_type=GROUP), 4)
    assert not other.pending


@pytest.mark.parametrize("release", ["", *RELEASES])
def test_a_topic_that_is_being_made_lacks_a_leader_before_3_0_and_is_unknown_since(release: str) -> None:
    driven = DrivenNode(emulator_as_kafka=release)
    request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
    (first,), (then,) = driven.ask(request, 1).topics, driven.ask(request, 1).topics
    is_old = bool(release) and tuple(map(int, release.split("."))) < (3, 0)
    assert first.error_code is (ErrorCode.LEADER_NOT_AVAILABLE if is_old else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert then.error_code is ErrorCode.NONE
