"""A node with a store that is started again: what members of a share group are done with stays done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
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
from tests.coordinator.core.share.several_nodes import ACCEPT, RELEASE, acquired, only
from tests.coordinator.durability.members import SETTINGS

TOPIC = "jobs"


async def ask(app: App, request: Request, version: int) -> Any:
    return await asyncio.wait_for(app.runtime.submit(request, Context(version, "m", connection="c")).answer(), 60)


async def fetch(app: App, topic_id: str) -> list[tuple[int, int, int]]:
    """The records that a new session acquires, as soon as the logs are read."""
    topic = ShareFetchTopic(topic_id=topic_id, partitions=(ShareFetchPartition(partition_index=0),))
    request = ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=0,
        max_wait_ms=10_000,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=(topic,),
        forgotten_topics_data=(),
    )
    async with asyncio.timeout(60):
        while True:
            response = await ask(app, request, 2)
            if response.responses[0].partitions[0].error_code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return acquired(response)


async def test_acknowledgements_and_delivery_counts_outlive_a_restart(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"share_coordinator_state_topic_num_partitions": 1})
    options = Options(settings=settings, data=tmp_path / "data", topics=(InitialTopic(TOPIC, 1),), listen=False)
    async with App(options) as app:
        topic_id = app.runtime.node._topics.by_name[TOPIC].topic_id
        await ask(app, FindCoordinatorRequest(key_type=2, coordinator_keys=(f"g:{topic_id}:0",)), 6)
        made = InitializedTopic(
            topic_id=topic_id, partitions=(InitializedPartition(partition=0, state_epoch=1, start_offset=0),)
        )
        initialized = await ask(app, InitializeShareGroupStateRequest(group_id="g", topics=(made,)), 0)
        assert initialized.results[0].partitions[0].error_code is ErrorCode.NONE
        data = PartitionProduceData(index=0, records=batch("a", "b", "c"))
        topic = TopicProduceData(name=TOPIC, partition_data=(data,))
        await ask(app, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)), 9)
        assert await fetch(app, topic_id) == [(0, 2, 1)]
        batches = tuple(
            AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(kind,))
            for offset, kind in ((0, ACCEPT), (1, RELEASE))
        )
        acknowledged = ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=1,
            topics=(ShareAcknowledgeTopic(topic_id=topic_id, partitions=(acknowledged,)),),
        )
        assert only(await ask(app, request, 2)).error_code is ErrorCode.NONE
    async with App(options) as app:
        assert await fetch(app, topic_id) == [(1, 1, 2), (2, 2, 1)]
