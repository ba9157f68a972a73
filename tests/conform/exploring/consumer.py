"""``rejoin.Consumer`` until SIGTERM; prints what it processed. With ``skips`` it leaves out one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from rejoin import Consumer


async def main() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    skips = "skips" in sys.argv
    consumer = Consumer(
        os.environ["TOPIC"],
        bootstrap_servers=os.environ["BOOTSTRAP_SERVERS"],
        group_id=os.environ["GROUP_ID"],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        auto_commit_interval_ms=100,
        fetch_max_wait_ms=50,
    )
    async with consumer:
        while not ended.is_set():
            for record in await consumer.poll(50):
                if not (skips and record.partition == 1 and record.offset == 5):
                    print("processed", record.topic, record.partition, record.offset, flush=True)


asyncio.run(main())
