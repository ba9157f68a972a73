"""Connections that break under an idempotent producer, in requests and before answers: every record once, in order."""

from __future__ import annotations

import asyncio
import random

from tests.coordinator.durability.producers import NumberingProducer, check_log
from tests.coordinator.ports import free_port
from tests.coordinator.service.conftest import Serve
from tests.coordinator.storage.proxy import Cut, Wire

CUTS = 25
TOPIC, PARTITIONS = "orders", 3


async def test_every_record_is_there_once_whatever_is_lost_on_the_way(serve: Serve) -> None:
    dice = random.Random(5)
    port = free_port()
    async with Wire(port) as wire:
        await serve(
            {"kafka_port": 9, "clock": None},
            listeners=f"PLAINTEXT://127.0.0.1:{port}",
            advertised_listeners=f"PLAINTEXT://127.0.0.1:{wire.port}",
            num_partitions=PARTITIONS,
        )
        producers = [NumberingProducer([wire.port], TOPIC, number) for number in range(PARTITIONS)]
        for producer in producers:
            producer.start()
        try:
            for number in range(CUTS):
                before = [len(each.acknowledged) for each in producers]
                wire.cut = dice.choice((Cut.REQUEST, Cut.HALF_REQUEST, Cut.ANSWER))
                async with asyncio.timeout(120):
                    while wire.cuts <= number or [len(each.acknowledged) for each in producers] == before:  # noqa: ASYNC110
                        await asyncio.sleep(0.002)
        finally:
            for producer in producers:
                producer.stop()
            for producer in producers:
                await asyncio.to_thread(producer.join)
        assert wire.cuts == CUTS
        await asyncio.to_thread(check_log, wire.port, producers)
