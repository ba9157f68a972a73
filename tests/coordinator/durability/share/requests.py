"""Requests of a member of a share group to a node in this process, and of who prepares the topic and the group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch
from rejoin.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from rejoin.protocol.messages.share.share_fetch import ShareFetchPartition, ShareFetchRequest, ShareFetchTopic
from rejoin.protocol.messages.share.share_group_state import (
    InitializedPartition,
    InitializedTopic,
    InitializeShareGroupStateRequest,
)
from tests.coordinator.core.partitions.real_topic import batch
from tests.coordinator.core.share.several_nodes import acquired, only

GROUP: Final = "g"
PATIENCE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.05
ELSEWHERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors after which a member asks again."""


async def ask(app: App, request: Request, version: int) -> Any:
    context = Context(version, "m", connection="c")
    return await asyncio.wait_for(app.runtime.submit(request, context).answer(), PATIENCE_SECONDS)


def topic_id(app: App, topic: str) -> str:
    found: str = app.runtime.node._topics.by_name[topic].topic_id
    return found


async def find(app: App, topic: str) -> int:
    """The node that coordinates the state of the topic's first partition, as soon as there is one."""
    key = f"{GROUP}:{topic_id(app, topic)}:0"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await ask(app, FindCoordinatorRequest(key_type=2, coordinator_keys=(key,)), 6)
            if answer.coordinators[0].error_code is ErrorCode.NONE:
                node_id: int = answer.coordinators[0].node_id
                return node_id
            await asyncio.sleep(PAUSE_SECONDS)


async def initialize(app: App, topic: str) -> None:
    """The coordinator, which this is, begins to keep the state of the topic's first partition."""
    partition = InitializedPartition(partition=0, state_epoch=1, start_offset=0)
    topics = (InitializedTopic(topic_id=topic_id(app, topic), partitions=(partition,)),)
    request = InitializeShareGroupStateRequest(group_id=GROUP, topics=topics)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            error = (await ask(app, request, 0)).results[0].partitions[0].error_code
            if error not in ELSEWHERE:
                assert error is ErrorCode.NONE
                return
            await asyncio.sleep(PAUSE_SECONDS)


async def produce(app: App, topic: str, *values: str) -> None:
    data = PartitionProduceData(index=0, records=batch(*values))
    topics = (TopicProduceData(name=topic, partition_data=(data,)),)
    answer = await ask(app, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


async def fetch(app: App, topic: str) -> list[tuple[int, int, int]]:
    """The records that a new session acquires, as soon as the logs are read."""
    topics = (ShareFetchTopic(topic_id=topic_id(app, topic), partitions=(ShareFetchPartition(partition_index=0),)),)
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id="m",
        share_session_epoch=0,
        max_wait_ms=10_000,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=topics,
        forgotten_topics_data=(),
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            response = await ask(app, request, 2)
            if response.responses and response.responses[0].partitions[0].error_code not in ELSEWHERE:
                return acquired(response)
            await asyncio.sleep(PAUSE_SECONDS)


async def acknowledge(app: App, topic: str, epoch: int, kinds: Sequence[tuple[int, int]]) -> ErrorCode:
    """The result of acknowledgements, each an offset and a type, by a member in its session."""
    batches = tuple(
        AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(kind,))
        for offset, kind in kinds
    )
    partition = ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topics = (ShareAcknowledgeTopic(topic_id=topic_id(app, topic), partitions=(partition,)),)
    request = ShareAcknowledgeRequest(group_id=GROUP, member_id="m", share_session_epoch=epoch, topics=topics)
    error: ErrorCode = only(await ask(app, request, 2)).error_code
    return error
