"""Coordinators, one after the other, leave nothing behind: no task, no socket, no file, no memory."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path

import aiohttp

from rejoin.coordinator.testing import running, running_in_thread
from tests.coordinator.control.samples import parse, stable
from tests.coordinator.service.helpers import join

GROWTH_BYTES = 400_000
"""What caches may take in; a single coordinator that stayed takes more."""


def open_files() -> int:
    """How many files this process has open, without those that earlier tests left to the garbage collector."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


async def open_files_at_rest() -> int:
    """Like :func:`open_files`, once transports that are closing have closed: they do so in the loop's next rounds."""
    for _ in range(5):
        await asyncio.sleep(0)
    return open_files()


async def start_and_stop(count: int, socket: bool) -> None:
    for _ in range(count):
        async with running(clock="virtual", topics={"orders": 3}, socket=socket) as coordinator:
            if socket:
                async with aiohttp.ClientSession() as session, session.get(f"{coordinator.url}/healthz") as answer:
                    assert answer.status == 200
            await stable(coordinator)
            fault = await coordinator.add_fault(keys="Heartbeat", pause=True)
            await coordinator.add_fault(keys="JoinGroup", latency_ms=1_000)
            late = asyncio.ensure_future(coordinator.call(parse("JoinGroup", join("late"))))
            await coordinator.snapshot()
            await asyncio.sleep(0)
            assert fault.held == 0
        await asyncio.gather(late, return_exceptions=True)


async def test_coordinators_leave_nothing() -> None:
    await start_and_stop(5, socket=True)
    await start_and_stop(5, socket=False)
    files = await open_files_at_rest()
    tasks = len(asyncio.all_tasks())
    tracemalloc.start()
    try:
        # The newest coordinator may still be there, before and after.
        await start_and_stop(5, socket=True)
        await start_and_stop(5, socket=False)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        await start_and_stop(5, socket=True)
        await start_and_stop(5, socket=False)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < GROWTH_BYTES, f"{grown} bytes are left of 10 coordinators"
    assert await open_files_at_rest() <= files
    assert len(asyncio.all_tasks()) == tasks


def test_threads_end_with_their_coordinators() -> None:
    with running_in_thread():
        pass
    files = open_files()
    for _ in range(20):
        with running_in_thread(topics={"orders": 1}):
            pass
    assert open_files() <= files
