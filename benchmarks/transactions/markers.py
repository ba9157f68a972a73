"""The end of a transaction over many partitions: a marker for each, which costs the same however many there are.

CPU of a service in memory, from EndTxn until the transaction is complete; every record is written by one Produce. It
fails where a marker costs more among many partitions than ``GROWTH`` times what it costs among the fewest.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from typing import Final

import structlog
from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import loop_factory
from benchmarks.transactions.producers import TransactionalProducer, make_topic
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector

PARTITIONS: Final = (125, 250, 500, 1_000, 2_000)
ROUNDS: Final = 7
GROWTH: Final = 1.6


async def measure() -> dict[int, float]:
    """The seconds of CPU of an end, by the partitions of its transaction."""
    found: dict[int, list[float]] = {}
    app = App(Options(listen=False))
    await app.start()
    try:
        await make_topic(app, max(PARTITIONS))
        producer = TransactionalProducer(app, "payments")
        await producer.init()
        for _ in range(ROUNDS):
            for count in PARTITIONS:
                await producer.produce(range(count))
                gc.collect()
                began = time.process_time()
                await producer.end()
                found.setdefault(count, []).append(time.process_time() - began)
    finally:
        await app.stop()
    return {count: min(seconds) for count, seconds in found.items()}


def main() -> int:
    """Measure, and print a table. Returns 1 where the bound is missed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        found = runner.run(measure())
    table = Table(title=f"markers of one transaction (the cheapest of {ROUNDS} rounds)")
    for column in ("partitions", "CPU ms", "µs a partition", "of the fewest"):
        table.add_column(column, justify="right")
    of_one = {count: seconds / count for count, seconds in found.items()}
    least = next(iter(of_one.values()))
    for count, seconds in found.items():
        growth = of_one[count] / least
        table.add_row(f"{count:,}", f"{seconds * 1e3:.2f}", f"{of_one[count] * 1e6:.1f}", f"{growth:.2f}")
    printer().print(table)
    is_linear = max(of_one.values()) <= GROWTH * least
    print(f"a marker among many partitions, aim ≤ {GROWTH:g} × one among few: {'met' if is_linear else 'MISSED'}")
    return 0 if is_linear else 1


if __name__ == "__main__":
    sys.exit(main())
