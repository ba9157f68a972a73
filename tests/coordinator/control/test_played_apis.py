"""The transcript of every API plays; what a transcript cannot say is a comment with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rejoin.coordinator.core.inputs import (
    CompactionWanted,
    ControlInput,
    FetchWaited,
    LockExpired,
    PersisterFault,
    RecordReleased,
    RecordsWritten,
    SessionLost,
)
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.message import Response
from rejoin.protocol.registry import APIS, Api
from rejoin.transcript.player import differences, play
from tests.coordinator.control.samples import parse, sample, stable

TRANSACTION = {"transactionalId": "x"}
OFFSET = {"partitionIndex": 0, "committedOffset": 4, "committedLeaderEpoch": -1, "committedMetadata": ""}
TOPICS = [{"name": "orders", "partitions": [OFFSET]}]
MEMBER = {"generationIdOrMemberEpoch": -1, "memberId": "", "groupInstanceId": None}


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as started:
        yield started


async def played(coordinator: GroupCoordinator) -> str:
    transcript = await coordinator.transcript()
    assert list(differences(play(transcript))) == []
    return transcript


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_a_transcript_with_a_request_of_each_api_plays(coordinator: GroupCoordinator, api: Api) -> None:
    member_id = await stable(coordinator)
    asked = asyncio.ensure_future(coordinator.call(sample(api.name, member_id)))
    await asyncio.sleep(0)
    await coordinator.advance(50_000)
    await played(coordinator)
    asked.cancel()


WRITTEN: dict[type[ControlInput], str] = {
    SessionLost: "expire app",
    RecordsWritten: "",
    CompactionWanted: "compact prices",
    FetchWaited: "",
    LockExpired: "",
    RecordReleased: "",
    PersisterFault: "",
}
"""A transcript's words for the inputs that only tests make; nothing where nothing came of one:
no Fetch waits, no lock is held, and no state is stored."""


async def test_a_transcript_with_each_input_of_a_test_plays(coordinator: GroupCoordinator) -> None:
    # A dataclass with slots is made twice.
    assert {each.__name__ for each in WRITTEN} == {each.__name__ for each in ControlInput.__subclasses__()}
    policy = ({"name": "cleanup.policy", "value": "compact"},)
    prices = {"name": "prices", "numPartitions": 1, "replicationFactor": 1, "assignments": (), "configs": policy}
    await coordinator.call(parse("CreateTopics", {"topics": [prices], "timeoutMs": 1_000, "validateOnly": False}))
    await coordinator.set_topic("clicks", 1, records_per_second=1.0)
    await coordinator.expire("g", await stable(coordinator))
    await coordinator.produce("clicks", 0, 5)
    for _ in range(3):
        await coordinator.produce("prices", 0, [("key", "value")])
    await coordinator.compact("prices")
    transcript = await played(coordinator)
    assert [text for text in WRITTEN.values() if text not in transcript] == []


async def call(coordinator: GroupCoordinator, api: str, version: int, body: dict[str, Any]) -> Response:
    asked = asyncio.ensure_future(coordinator.call(parse(api, body, version), version))
    while not asked.done():
        await asyncio.sleep(0)
        await coordinator.advance(20)
    return asked.result()


async def offset(coordinator: GroupCoordinator) -> int:
    body = {
        "groups": [{"groupId": "g", "topics": [{"name": "orders", "partitionIndexes": [0]}]}],
        "requireStable": True,
    }
    answer: Any = await coordinator.call(parse("OffsetFetch", body, 9), 9)
    found: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return found


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("is_old", [True, False])
async def test_a_run_with_transactions_plays(coordinator: GroupCoordinator, committed: bool, is_old: bool) -> None:
    initialized = {**TRANSACTION, "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}
    producer: Any = await call(coordinator, "InitProducerId", 5, initialized)
    for _ in range(2):
        who = {**TRANSACTION, "producerId": producer.producer_id, "producerEpoch": producer.producer_epoch}
        if is_old:
            await call(coordinator, "AddOffsetsToTxn", 3, {**who, "groupId": "g"})
        commit = {**who, "groupId": "g", **MEMBER, "topics": TOPICS}
        await call(coordinator, "TxnOffsetCommit", 3 if is_old else 5, commit)
        ended: Any = await call(coordinator, "EndTxn", 3 if is_old else 5, {**who, "committed": committed})
        assert ended.error_code.name == "NONE"
        producer = producer if is_old else ended
    assert await offset(coordinator) == (4 if committed else -1)
    transcript = await played(coordinator)
    assert "# not expressible: EndTxn: transcripts have no transaction coordinator" in transcript
    assert f"end {producer.producer_id} {'commit' if committed else 'abort'}" in transcript


async def test_a_commit_that_the_transaction_coordinator_refuses_is_a_comment(coordinator: GroupCoordinator) -> None:
    who = {**TRANSACTION, "producerId": 9, "producerEpoch": 0}
    await call(coordinator, "TxnOffsetCommit", 5, {**who, "groupId": "g", **MEMBER, "topics": TOPICS})
    assert "# not expressible: TxnOffsetCommit: answered " in await played(coordinator)
