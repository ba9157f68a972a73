"""The speed of the simulation: skipped intervals cost nothing, and a step costs little more than one of a bare heap.

    python -m benchmarks.simulation             everything but the long day
    python -m benchmarks.simulation --day       1,000 consumers, 10,000 partitions, 24 hours, hourly rolling deploys
    python -m benchmarks.simulation --protocols that day for both protocols, with records: what deploys cost groups
    python -m benchmarks.simulation --same      some minutes of that day with and without skipping: equal events?

Both sides of a ratio are measured by the same run: times differ between machines, ratios hardly do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from hashlib import sha256
from heapq import heappop, heappush
from time import process_time
from typing import Any

from rejoin.journal.events.base import Event
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario

HOURS = (1, 24, 30 * 24)
BARE_STEPS = 500_000
CONSUMERS = 1_000
PARTITIONS = 10_000
GROUPS = (20, 1)
"""Of the day: into how many groups its consumers are divided."""
DAY_AIM = 30.0
"""CPU seconds for 24 hours of it."""
RECORDS_PER_SECOND = 0.001
"""Of each partition, where the protocols are compared."""
BUSY_MINUTES = 40
BUSY_AIM = 15.0
"""CPU seconds for :func:`busy`."""


def quiet(hours: int) -> Scenario:
    """Ten members that have nothing to do."""
    return Scenario.model_validate(
        {
            "horizon": f"{hours}h",
            "topics": {"orders": {"partitions": 100}},
            "groups": {"app": {"topics": ["orders"], "consumers": 10, "commit": "after"}},
        }
    )


def busy(minutes: int) -> Scenario:
    """Forty members, each of which processes records most of the time."""
    return Scenario.model_validate(
        {
            "horizon": f"{minutes}m",
            "topics": {"orders": {"partitions": 200, "records_per_second": 5}},
            "groups": {"app": {"topics": ["orders"], "consumers": 40, "commit": "after"}},
        }
    )


def day(
    hours: int, groups: int, *, static: bool, protocol: str = "classic", records_per_second: float = 0.0
) -> Scenario:
    """Many consumers and partitions; every hour each group is deployed, a quarter at a time."""
    topic = {"partitions": PARTITIONS // groups, "records_per_second": records_per_second}
    names = [f"app{number}" for number in range(groups)]
    size = CONSUMERS // groups
    return Scenario.model_validate(
        {
            "horizon": f"{hours}h",
            "topics": {f"t-{name}": topic for name in names},
            "groups": {
                name: {
                    "topics": [f"t-{name}"],
                    "consumers": size,
                    "assignor": ["range"],
                    "commit": "after",
                    "static": static,
                    "session_timeout": "2m",
                    "protocol": protocol,
                }
                for name in names
            },
            "coordinator": {"settings": {"group.consumer.session.timeout.ms": 120_000}},
            "events": [
                {
                    "at": f"{5 + 40 * number // groups}m",
                    "deploy": {"group": name, "batch": size // 4, "every": "3m", "down": "1m", "repeat": "1h"},
                }
                for number, name in enumerate(names)
            ],
        }
    )


def consumers(groups: int, *, static: bool) -> str:
    """The consumers of a day, in words."""
    return f"{CONSUMERS:,} {'static' if static else 'dynamic'} consumers in {groups} group{'s' if groups > 1 else ''}"


def timed(scenario: Scenario, *, skip: bool = True) -> tuple[float, Any]:
    """CPU seconds of a run, and its simulation."""
    began = process_time()
    simulation, _ = play(scenario, skip=skip)
    return process_time() - began, simulation


def bare(steps: int) -> float:
    """CPU seconds of a heap loop that does nothing else: as many things in it as a small world has."""
    heap: list[tuple[int, int, int, Any, Any]] = [(number, 0, number, None, None) for number in range(100)]
    began = process_time()
    for serial in range(steps):
        when, lane, _, act, argument = heappop(heap)
        heappush(heap, (when + 97, lane, serial, act, argument))
    return process_time() - began


def fingerprint(scenario: Scenario, *, skip: bool) -> tuple[str, int, Any]:
    """All events of a run in their order, with their instants, as one SHA-256; their number; the simulation."""
    digest = sha256()
    count = 0

    def on_event(actor: Actor, event: Event, now: Millis) -> None:
        nonlocal count
        count += 1
        digest.update(f"{now} {actor.name} {event!r}\n".encode())

    simulation, _ = play(scenario, skip=skip, listeners=[on_event])
    return digest.hexdigest(), count, simulation


def compared(seconds: float, aim: float) -> str:
    """An aim and whether it is met."""
    return f", aim < {aim:g}: {'met' if seconds < aim else 'missed'}"


def whole_day(hours: int) -> None:
    """Print what each kind of membership costs."""
    for groups, static in ((groups, static) for static in (True, False) for groups in GROUPS):
        seconds, simulation = timed(day(hours, groups, static=static))
        aim = compared(seconds, DAY_AIM) if hours >= 24 else ""
        print(
            f"{hours} h of {consumers(groups, static=static)} and {PARTITIONS:,} partitions: "
            f"{seconds:.1f} s{aim}; {simulation.world.steps} steps",
            flush=True,
        )


def protocols(hours: int) -> None:
    """Print what a day costs the groups of either protocol, as a table."""
    print(
        "| protocol, members | rebalances | consumer-seconds stopped | partition-seconds unowned | late | twice | CPU |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for static, protocol in ((static, protocol) for static in (False, True) for protocol in ("classic", "consumer")):
        began = process_time()
        scenario = day(hours, GROUPS[0], static=static, protocol=protocol, records_per_second=RECORDS_PER_SECOND)
        _, summary = play(scenario)
        found = list(summary.groups.values())
        cells = (
            f"{protocol}, {'static' if static else 'dynamic'}",
            f"{sum(each.started for each in found):,}",
            f"{sum(each.stopped_ms for each in found) / 1_000:,.0f}",
            f"{sum(each.unowned_ms for each in found) / 1_000:,.0f}",
            f"{sum(each.late for each in found):,}",
            f"{sum(each.twice for each in found):,}",
            f"{process_time() - began:.0f} s",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def same_events(minutes: int) -> bool:
    """Print whether skipping changes any event of the day's first minutes."""
    fine = True
    for groups, static in ((GROUPS[0], True), (GROUPS[0], False), (1, True)):
        scenario = day(1, groups, static=static).model_copy(update={"horizon": minutes * 60_000})
        skipped, count, simulation = fingerprint(scenario, skip=True)
        plain, _, plain_lab = fingerprint(scenario, skip=False)
        fine = fine and skipped == plain
        print(
            f"{minutes} min, {consumers(groups, static=static)}: "
            f"{count} events in {simulation.world.steps} steps, and in {plain_lab.world.steps} with every heartbeat: "
            f"{'the same, ' + plain[:16] if skipped == plain else 'THEY DIFFER'}",
            flush=True,
        )
    return fine


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--day", action="store_true", help="the day of 1,000 consumers")
    parser.add_argument("--protocols", action="store_true", help="that day for both protocols, as a table")
    parser.add_argument("--hours", type=int, default=24, help="hours of that day to play")
    parser.add_argument("--same", action="store_true", help="compare events with and without skipping")
    parser.add_argument("--minutes", type=int, default=12, help="minutes to compare")
    options = parser.parse_args(arguments)
    if options.day:
        whole_day(options.hours)
        return 0
    if options.protocols:
        protocols(options.hours)
        return 0
    if options.same:
        return 0 if same_events(options.minutes) else 1
    print("a quiet group of 10, heartbeats skipped")
    for hours in HOURS:
        seconds, simulation = timed(quiet(hours))
        print(f"  {hours:>4} h  {seconds:7.3f} s  {simulation.world.steps:>7} steps")
    plain, simulation = timed(quiet(1), skip=False)
    reference = bare(BARE_STEPS)
    rate, bare_rate = simulation.world.steps / plain, BARE_STEPS / reference
    print(f"every heartbeat played, 1 h: {plain:.2f} s, {simulation.world.steps} steps, {rate:,.0f} steps/s")
    print(f"bare heapq loop: {bare_rate:,.0f} steps/s; a step of the simulation costs {bare_rate / rate:.0f} of its")
    seconds, simulation = timed(busy(BUSY_MINUTES))
    print(
        f"{BUSY_MINUTES} min of 40 consumers, 200 partitions and 5 records a second: "
        f"{seconds:.1f} s{compared(seconds, BUSY_AIM)}; {simulation.world.steps} steps"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
