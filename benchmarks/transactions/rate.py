"""Transactions a second of 16 producers, each of which waits for each of its answers, beside as many bare writes.

A transaction has one record for the one partition, and an offset of the one group, as of a consumer that transforms:
Produce, TxnOffsetCommit, EndTxn. Its writes, each of which waits for the one before, except for the two markers:

1. the transaction is open, with the partition; 2. the record; 3. the group's offsets partition is part of it; 4. the
pending offset; 5. the end is decided; 6. the marker behind the record; 7. that behind the offset; 8. it is complete.

Bare: the same rows, made as the node makes them, in the same order: each waits for the group commit of the one before,
which does nothing else. No rule is checked; nothing is kept in memory, indexed or emitted. The two markers go together,
so a transaction of either side waits for seven commits. Its rows are those that a node stores: six batches with their
checksums, and two records of the offsets log.

CPU is that of this process with all its threads; a service in memory writes nothing, and has the same to compare with.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.commits import Rate
from benchmarks.server_load import loop_factory
from benchmarks.transactions.bare import bare_transactions
from benchmarks.transactions.producers import TransactionalProducer, make_topic
from rejoin.coordinator.commands.serve import calm_collector
from rejoin.coordinator.service.app import App, Options

PRODUCERS: Final = 16
WRITES: Final = 8
SECONDS: Final = 2.0
ROUNDS: Final = 5
AT_LEAST: Final = 0.5


@asynccontextmanager
async def node(options: Options) -> AsyncIterator[Callable[[int, int], Awaitable[None]]]:
    app = App(options)
    await app.start()
    try:
        await make_topic(app, 1)
        producers = [TransactionalProducer(app, f"transformer-{number}") for number in range(PRODUCERS)]
        for producer in producers:
            await producer.init()

        async def transact(number: int, count: int) -> None:
            producer = producers[number]
            await producer.produce()
            await producer.send_offsets(count)
            await producer.end()

        yield transact
    finally:
        await app.stop()


async def rate(transact: Callable[[int, int], Awaitable[None]]) -> Rate:
    """Transactions of all producers together."""
    loop = asyncio.get_running_loop()
    counts = [0] * PRODUCERS
    end = loop.time() + SECONDS

    async def run(producer: int) -> None:
        while not counts[producer] or loop.time() < end:
            counts[producer] += 1
            await transact(producer, counts[producer])

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(run(producer) for producer in range(PRODUCERS)))
    done = sum(counts)
    return Rate(done / (time.perf_counter() - began), (time.process_time() - used) / done * 1e6)


async def measure() -> dict[str, list[Rate]]:
    """The rates of each, by rounds."""
    found: dict[str, list[Rate]] = {}
    with tempfile.TemporaryDirectory() as name:
        for number in range(ROUNDS):
            folder = Path(name) / str(number)
            folder.mkdir()
            makers: dict[str, Any] = {
                "bare writes": bare_transactions(folder, PRODUCERS),
                "memory": node(Options(listen=False)),
                "SQLite": node(Options(data=folder / "node", listen=False)),
            }
            for what, maker in makers.items():
                async with maker as transact:
                    gc.collect()
                    found.setdefault(what, []).append(await rate(transact))
    return found


def main() -> None:
    """Measure, and print a table."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        found = runner.run(measure())
    table = Table(title=f"transactions of {PRODUCERS} producers, {WRITES} writes each (median of {ROUNDS} rounds)")
    for column in ("what", "transactions/s", "of bare", "wanted", "CPU µs each", "of bare "):
        table.add_column(column, justify="left" if column == "what" else "right")
    least = found["bare writes"]
    for what, rates in found.items():
        of_bare = statistics.median(mine.per_second / bare.per_second for mine, bare in zip(rates, least, strict=True))
        of_cpu = statistics.median(bare.micros / mine.micros for mine, bare in zip(rates, least, strict=True))
        table.add_row(
            what,
            f"{statistics.median(each.per_second for each in rates):,.0f}",
            f"{of_bare:.2f}",
            "" if rates is least else f"≥ {AT_LEAST}",
            f"{statistics.median(each.micros for each in rates):,.0f}",
            f"{of_cpu:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
