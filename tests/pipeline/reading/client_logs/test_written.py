"""Logs that are written of simulated consumers, in the words of each library and version: what was done is found.

``make client-log-seeds`` tries more lives.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

import pytest

from benchmarks.recovered.from_written_client_logs import BASE_MS, GROUP, Life, found_in, is_of, play
from rejoin.client.log_writer.java import JavaLog
from rejoin.client.log_writer.libraries import LIBRARIES
from rejoin.client.log_writer.rdkafka import RdkafkaLog
from rejoin.journal.events.client import GenerationJoined, PartitionsAssigned
from rejoin.journal.kafka_logs.template import Version
from tests.pipeline.reading.client_logs.logs import kinds, read

FIRST: Final = int(os.environ.get("REJOIN_CLIENT_LOG_SEED", "1"))
SEEDS: Final = range(FIRST, FIRST + int(os.environ.get("REJOIN_CLIENT_LOG_SEEDS", "1")))
KINDS: Final = {"eager": (False, False), "cooperative": (False, True), "static": (True, True)}
VERSIONS: Final = [(library, version) for library, (_, versions) in LIBRARIES.items() for version in versions]
SAYS_LITTLE: Final = {"restart", "kill", "start", "stop", "broker-restart"}
"""What librdkafka's default log does not show."""
MEMBER: Final[dict[str, Any]] = {
    "client_id": "c",
    "group_id": GROUP,
    "group_instance_id": None,
    "member_id": "c-1",
    "generation": 3,
}


@cache
def life(seed: int, kind: str) -> Life:
    static, cooperative = KINDS[kind]
    return play(seed, static=static, cooperative=cooperative)


def lives() -> list[tuple[str, str, Version]]:
    """Each kind of life, with every library and version that can live it."""
    return [
        (kind, library, version)
        for kind, (static, cooperative) in KINDS.items()
        for library, version in VERSIONS
        if is_of(library, version, static=static, cooperative=cooperative)
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "library", "version"), lives())
def test_what_was_done_to_simulated_consumers_is_found_in_the_words_of_a_library(
    kind: str, library: str, version: Version, seed: int
) -> None:
    found = found_in(life(seed, kind), library, version)
    missed = [each for each in found.missed if library != "rdkafka" or each.split()[0] not in SAYS_LITTLE]
    assert (missed, found.invented, found.unread) == ([], [], 0)


def test_versions_differ_in_their_words() -> None:
    joined = GenerationJoined(**MEMBER, protocol="range", leader="c-1", member_count=2, waited_ms=1)
    by_version = {
        version: JavaLog("c", GROUP, version=version).lines(joined, BASE_MS)[0] for version in ((2, 5), (4, 4))
    }
    assert "Successfully joined group with generation 3 (org" in by_version[2, 5]
    assert "generation Generation{generationId=3, memberId='c-1', protocol='range'} (org" in by_version[4, 4]


def test_a_written_line_is_read_as_what_it_was_written_for() -> None:
    line = RdkafkaLog("c", GROUP).lines(PartitionsAssigned(**MEMBER, partitions={"orders": [4]}), BASE_MS + 7)
    assert line == [f'%7|1700000000.007|PARTADD|c#consumer-1| [thrd:main]: Group "{GROUP}": add orders [4]']
    (assigned,) = read(*line)[0]
    assert (kinds([assigned]), assigned.values["partitions"]) == (["partitions_assigned"], [("orders", 4)])
