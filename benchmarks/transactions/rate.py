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
The cheapest round of each counts, so that other load on the machine is left out; below its bound the benchmark fails.
The rate also depends on the disk of the hour, and has an aim only.

Refused: the three requests of a transaction, of a producer that the node does not know. Each is answered at once and
changes nothing: what is left of a transaction when nothing is decided, kept, stored or emitted.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import structlog
from rich.table import Table

from benchmarks import printer
from benchmarks.commits import Rate
from benchmarks.server_load import loop_factory
from benchmarks.transactions.bare import bare_transactions
from benchmarks.transactions.producers import TransactionalProducer, make_topic
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector

PRODUCERS: Final = 16
WRITES: Final = 8
SECONDS: Final = 2.0
WARM_UP: Final = 10
ROUNDS: Final = 5
AIM: Final = 0.5
CPU_BOUNDS = {"memory": 0.3, "SQLite": 0.13}
"""The CPU of bare writes over that of a transaction, at least."""


@asynccontextmanager
async def _producers(options: Options) -> AsyncIterator[list[TransactionalProducer]]:
    """Producers with their producer ids, on a service of their own."""
    app = App(options)
    await app.start()
    try:
        await make_topic(app, 1)
        producers = [TransactionalProducer(app, f"transformer-{number}") for number in range(PRODUCERS)]
        for producer in producers:
            await producer.init()
        yield producers
    finally:
        await app.stop()


@asynccontextmanager
async def node(options: Options) -> AsyncIterator[Callable[[int, int], Awaitable[None]]]:
    async with _producers(options) as producers:

        async def transact(number: int, count: int) -> None:
            producer = producers[number]
            await producer.produce()
            await producer.send_offsets(count)
            await producer.end()

        yield transact


@asynccontextmanager
async def refused(options: Options) -> AsyncIterator[Callable[[int, int], Awaitable[None]]]:
    async with _producers(options) as producers:

        async def transact(number: int, count: int) -> None:
            await producers[number].be_refused(count)

        yield transact


async def rate(transact: Callable[[int, int], Awaitable[None]]) -> Rate:
    """Transactions of all producers together."""
    loop = asyncio.get_running_loop()
    counts = [0] * PRODUCERS

    async def run(producer: int, least: int, end: float) -> None:
        while counts[producer] < least or loop.time() < end:
            counts[producer] += 1
            await transact(producer, counts[producer])

    async def run_all(least: int, seconds: float) -> None:
        end = loop.time() + seconds
        await asyncio.gather(*(run(producer, least, end) for producer in range(PRODUCERS)))

    await run_all(WARM_UP, 0)
    before = sum(counts)
    gc.collect()
    began, used = time.perf_counter(), time.process_time()
    await run_all(WARM_UP + 1, SECONDS)
    done = sum(counts) - before
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
                "refused": refused(Options(listen=False)),
                "memory": node(Options(listen=False)),
                "SQLite": node(Options(data=folder / "node", listen=False)),
            }
            for what, maker in makers.items():
                async with maker as transact:
                    found.setdefault(what, []).append(await rate(transact))
    return found


def main() -> int:
    """Measure, and print a table. Returns 1 where a bound is missed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        found = runner.run(measure())
    table = Table(title=f"transactions of {PRODUCERS} producers, {WRITES} writes each, {ROUNDS} rounds")
    for column in ("what", "transactions/s", "of bare", "aim", "CPU µs each", "of bare ", "bound"):
        table.add_column(column, justify="left" if column == "what" else "right")
    bare = found["bare writes"]
    least, is_missed = min(each.micros for each in bare), False
    for what, rates in found.items():
        of_bare = statistics.median(mine.per_second / other.per_second for mine, other in zip(rates, bare, strict=True))
        micros = min(each.micros for each in rates)
        bound = CPU_BOUNDS.get(what)
        is_missed |= bound is not None and least / micros < bound
        table.add_row(
            what,
            f"{statistics.median(each.per_second for each in rates):,.0f}",
            f"{of_bare:.2f}",
            "" if bound is None else f"≥ {AIM}",
            f"{micros:,.0f}",
            f"{least / micros:.2f}",
            "" if bound is None else f"≥ {bound}",
        )
    printer().print(table)
    print("a transaction costs more CPU than its bound" if is_missed else "every bound is kept")
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
