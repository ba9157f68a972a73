"""Lives of applications on a real Kafka and on Rejoin beside each other.

    python -m conformance.clients.streams_groups.on_kafka [--record] [LIFE ...]

Compared are the outcome of each step; group states, topologies, numbers of tasks, internal topics with their settings,
offsets and counts at its end; and the heartbeats of each application.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from conformance.clients.streams_groups.lives import LIVES, STEPS
from conformance.clients.streams_groups.playing import StreamsPlay, played
from conformance.clients.streams_groups.recording import write_recording
from conformance.clients.streams_groups.requests import heartbeats_in_words, words_of
from conformance.kafka.broker import class_path, kafka_version

GROUPS: Final = {life: ("nowhere", "reached", "later") if life == "missing" else (life,) for life in LIVES}


def differences(kafka: Any, rejoin: Any, path: str = "") -> Iterator[str]:
    """The places at which two values differ."""
    if isinstance(kafka, dict) and isinstance(rejoin, dict):
        for name in kafka | rejoin:
            yield from differences(kafka.get(name), rejoin.get(name), f"{path}.{name}")
    elif isinstance(kafka, list) and isinstance(rejoin, list) and len(kafka) == len(rejoin):
        for number, (one, other) in enumerate(zip(kafka, rejoin, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif kafka != rejoin:
        yield f"{path}: Kafka {kafka}; Rejoin {rejoin}"


def steps_table(kafka: StreamsPlay, rejoin: StreamsPlay) -> Iterator[str]:
    """The steps: how each ended, and whether both brokers had the same to see."""
    yield f"| step | Kafka {kafka_version()} | Rejoin | seen |\n|---|---|---|---|"
    for step in STEPS:
        if step in kafka.problems:
            results = [each.problems.get(step, "–") or "passed" for each in (kafka, rejoin)]
            found = list(differences(kafka.seen.get(step), rejoin.seen.get(step)))
            yield f"| {step} | {' | '.join(results)} | {'; '.join(found) or 'the same'} |"


def requests_table(kafka: StreamsPlay, rejoin: StreamsPlay, lives: Iterable[str]) -> Iterator[str]:
    """The heartbeats of each application."""
    yield "| application | heartbeats that change something, on Kafka | on Rejoin | kinds |\n|---|---|---|---|"
    for group in (group for life in lives for group in GROUPS[life]):
        theirs, ours = (heartbeats_in_words(each.exchanges, group) for each in (kafka, rejoin))
        kinds = sorted(words_of(theirs) ^ words_of(ours))
        counts = (sum(map(len, each.values())) for each in (theirs, ours))
        yield f"| {group} | {' | '.join(map(str, counts))} | {kinds or f'the same {len(words_of(theirs))}'} |"


async def run(lives: list[str], records: bool) -> int:
    """Play the lives on both and print the tables; 1 where a result differs or a step failed."""
    jars = await class_path()
    kafka = await played("kafka", jars, lives)
    if records:
        write_recording(kafka.exchanges)
    rejoin = await played("rejoin", jars, lives)
    print("\n".join([*steps_table(kafka, rejoin), "", *requests_table(kafka, rejoin, lives)]), flush=True)
    is_alike = kafka.problems == rejoin.problems and not any(differences(kafka.seen, rejoin.seen))
    return 0 if is_alike and not rejoin.defects else 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Play lives of applications on a real Kafka and on Rejoin.")
    parser.add_argument("life", nargs="*", choices=[*LIVES, []], metavar="LIFE", help="all without any")
    parser.add_argument("--record", action="store_true", help="write tests/golden/streams-groups/applications.jsonl.gz")
    given = parser.parse_args()
    return asyncio.run(run(given.life or list(LIVES), given.record))


if __name__ == "__main__":
    sys.exit(main())
