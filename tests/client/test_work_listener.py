"""What a simulated user's listener does when partitions come and go."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.client.workload.worker import Work, WorkListener
from rejoin.protocol.types import TopicPartition

PARTITIONS = [TopicPartition("t", index) for index in range(3)]


async def test_the_listener_takes_its_time_for_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float | str] = []

    async def sleep(seconds: float) -> None:
        done.append(seconds)

    async def commit() -> None:
        done.append("commit")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    work = Work(
        topics=("t",),
        pattern=None,
        client_ids=("a",),
        instance_ids=(),
        assignors=(),
        settings={},
        commit="async",
        processing_time=parse_processing_time("0"),
        revoke_time=parse_processing_time("40ms"),
        assign_time=parse_processing_time("100ms"),
        seed=1,
        node="a",
        run_id="run",
    )
    listener = WorkListener(work, Random(1), commit)
    await listener.on_partitions_assigned(PARTITIONS)
    await listener.on_partitions_revoked(PARTITIONS[:2])
    await listener.on_partitions_assigned([])
    await listener.on_partitions_lost(PARTITIONS)
    assert done == [pytest.approx(0.3), pytest.approx(0.08), "commit"]
