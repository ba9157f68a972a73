"""Recorded logs say the same in every wrapper: a window of a recording, wrapped and turned round by seed."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile
from rejoin.pipeline.reading.peeling.order import LineOrder, OldestFirst, look_at_order
from tests.paths import GOLDEN
from tests.pipeline.reading.peeling.wrappers import WRAPPERS

RECORDED: Final = sorted((GOLDEN / "client-logs").glob("*/*/*.log.gz"))
OF_BROKERS: Final = sorted((GOLDEN / "incidents").glob("*/server.log.gz"))
SEEDS: Final = range(*map(int, os.environ.get("WRAPPED_SEEDS", "0:150").split(":")))
"""``make wrapped-seeds`` runs thousands."""
SHORTEST: Final = 5
LONGEST: Final = 80
OF_THE_ORIGIN: Final = frozenset(("consumer", "member", "was"))
"""Values in which a consumer without an id of its own is called by the pod or host that the wrapper names."""
AMBIGUOUS: Final = ("grep -n", "grep over files", "an indent")
"""A number before a number, or an indented one, may be anything: these are not put around each other."""


class Composition(NamedTuple):
    """The choices of one seed."""

    recording: Path
    first: int
    length: int
    wrappers: tuple[str, ...]
    """From the inside to the outside."""

    def lines(self) -> list[str]:
        return _lines_of(self.recording)[self.first : self.first + self.length]

    def wrapped(self, lines: list[str] | None = None) -> list[str]:
        lines = self.lines() if lines is None else lines
        for name in self.wrappers:
            lines = [WRAPPERS[name](line, nth) for nth, line in enumerate(lines)]
        return lines


@cache
def _lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def composition(seed: int, recordings: Sequence[Path] = RECORDED) -> Composition:
    chance = random.Random(seed)
    recording = chance.choice(recordings)
    length = chance.randint(SHORTEST, LONGEST)
    first = chance.randrange(max(1, len(_lines_of(recording)) - length))
    inner = chance.choice(list(WRAPPERS))
    others = [each for each in WRAPPERS if inner not in AMBIGUOUS or each not in AMBIGUOUS]
    wrappers = (inner,) if chance.random() < 0.5 else (inner, chance.choice(others))
    return Composition(recording, first, length, wrappers)


def said_by_client(lines: Iterable[str]) -> list[tuple[Any, ...]]:
    return _said(ClientLogFile("app.log", "shop/app").statements(line.encode() for line in lines))


def _said(found: Iterable[object]) -> list[tuple[Any, ...]]:
    """The statements of a reader, without line numbers."""
    said: list[tuple[Any, ...]] = []
    for each in found:
        if isinstance(each, Statement):
            values = {name: value for name, value in each.values.items() if name not in OF_THE_ORIGIN}
            said.append((each.kind, each.group, each.at_ms, str(sorted(values.items()))))
        elif isinstance(each, BrokenLine):
            said.append((each.reason,))
        else:
            said.append((type(each).__name__,))
    return said


@pytest.mark.parametrize("seed", SEEDS)
def test_a_consumers_log_says_the_same_in_wrappers(seed: int) -> None:
    chosen = composition(seed)
    assert said_by_client(chosen.wrapped()) == said_by_client(chosen.lines()), chosen


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_a_brokers_log_says_the_same_in_wrappers(seed: int) -> None:
    chosen = composition(seed, OF_BROKERS)

    def said(lines: list[str]) -> list[tuple[Any, ...]]:
        return _said(LogFile("server.log", "1").statements(line.encode() for line in lines))

    assert said(chosen.wrapped()) == said(chosen.lines()), chosen


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_a_log_whose_newest_line_is_the_first_says_the_same(seed: int) -> None:
    """Lines of one millisecond have no order that can be found again, so only what was said is compared. A file whose
    times fall by less than a second is read as it is.

    Consoles turn messages round and not their lines, so messages of several lines are left out.
    """
    for more in range(100):
        chosen = composition(seed + 1_000_003 * more)
        of_one_line = [line for line in chosen.lines() if line.strip() and not line[0].isspace()]
        records = chosen.wrapped(of_one_line)
        file = io.BytesIO("".join(f"{line}\n" for line in reversed(records)).encode())
        if look_at_order(file) is LineOrder.NEWEST_FIRST:
            break
    else:
        pytest.fail("no recording is long enough to be turned round")
    said = _said(ClientLogFile("app.log", "shop/app").statements(OldestFirst(file)))
    assert sorted(each[:3] for each in said) == sorted(each[:3] for each in said_by_client(records)), chosen
