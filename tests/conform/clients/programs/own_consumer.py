"""``rejoin.Consumer`` until SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal

from rejoin import Consumer


async def main() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    consumer = Consumer(
        os.environ["TOPIC"],
        bootstrap_servers=os.environ["BOOTSTRAP_SERVERS"],
        group_id=os.environ["GROUP_ID"],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        auto_commit_interval_ms=200,
    )
    async with consumer:
        while not ended.is_set():
            await consumer.poll(100)


asyncio.run(main())
