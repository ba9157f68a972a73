"""A message that no handler can work on is delivered five times, and lands in the dead-letter topic."""

from __future__ import annotations

import pytest

from rejoin import AcknowledgeType, ShareConsumer
from rejoin.client.transports.in_process import InProcessTransport
from rejoin.coordinator.testing import GroupCoordinator

SETTINGS = {
    "errors.deadletterqueue.auto.create.topics.enable": True,
    "group.share.min.heartbeat.interval.ms": 10,
    "group.share.heartbeat.interval.ms": 10,
    "group.share.assignment.interval.ms": 0,
}
GROUP_CONFIGS = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.jobs"}


@pytest.mark.group_coordinator(clock="virtual", topics={"jobs": 1}, settings=SETTINGS)
async def test_a_poison_message_lands_in_the_dead_letter_topic(group_coordinator: GroupCoordinator) -> None:
    await group_coordinator.set_group("workers", GROUP_CONFIGS)
    await group_coordinator.produce("jobs", 0, ["poison"])
    transport = InProcessTransport(group_coordinator)
    worker = ShareConsumer("jobs", group_id="workers", share_acknowledgement_mode="explicit", transport=transport)
    async with worker:
        for delivery in range(1, 6):  # share.delivery.count.limit is 5
            record = await worker.getone()
            assert record.delivery_count == delivery
            worker.acknowledge(record, AcknowledgeType.RELEASE)  # its handler has failed
            await worker.commit()
    await group_coordinator.advance(1_000)  # the topic is new, and its leader is asked again after a second
    (letter,) = await group_coordinator.records("dlq.jobs")
    assert ("__dlq.errors.delivery.count", b"5") in letter.headers
