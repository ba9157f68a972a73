"""Cuts of recorded groups: parts of their logs, drawn by seed."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks.recovered.from_client_logs import Action, actions_of
from rejoin.pipeline.reading.peeling.order import LineOrder, look_at_order
from tests.paths import GOLDEN
from tests.pipeline.findings.tables import READS, findings_of
from tests.pipeline.reading.peeling.wrappers import WRAPPERS
from tests.pipeline.recorded import events_of_logs

Row = dict[str, Any]

CLIENT_LOGS: Final = GOLDEN / "client-logs"
GROUPS: Final = tuple(
    f"{recording.parent.name}/{folder.name}"
    for recording in sorted(CLIENT_LOGS.glob("*/ledger.json"))
    for folder in sorted(recording.parent.iterdir())
    if folder.is_dir()
)
AMBIGUOUS: Final = ("grep -n", "grep over files", "an indent")
"""A number before a number, or an indented one, may be anything: these are not put around each other."""
BROKERS_LOG: Final = "server.log.gz"
MOST_LINES: Final = 1_500
"""Of one file of a cut."""
SHORTEST_MS: Final = 5_000
_TIME: Final = re.compile(
    r"(?:(?P<date>\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)|^%\d\|(?P<epoch>\d{10}))(?:[.,](?P<ms>\d{3}))?"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """The choices of one seed."""

    group: str
    members: tuple[str, ...]
    """Names of the files that are there."""
    from_ms: int
    to_ms: int
    is_reversed: bool
    wrappers: tuple[str, ...]
    """From the inside to the outside."""
    of_broker: bool = False
    """Whether the log of the broker, which has other groups as well, is the only one."""
    most_lines: int = MOST_LINES
    """Of each file."""

    def files(self) -> Iterator[tuple[str, list[str]]]:
        """Names of files, with their lines."""
        for name in self.members:
            folder = CLIENT_LOGS / self.group
            lines = _between((folder.parent if self.of_broker else folder) / name, self.from_ms, self.to_ms)[
                : self.most_lines
            ]
            if self.is_reversed:
                lines = [line for line in lines if line.strip() and not line[0].isspace()]
            for wrapper in self.wrappers:
                lines = [WRAPPERS[wrapper](line, nth) for nth, line in enumerate(lines)]
            # A file whose times fall by less than a second is read as it is.
            if self.is_reversed and look_at_order(_file(reversed(lines))) is LineOrder.NEWEST_FIRST:
                lines.reverse()
            yield name, lines


def cut(seed: int) -> Cut:
    """A group's logs, or the log of one member, in a window of time or as a whole."""
    chance = random.Random(seed)
    group = chance.choice(GROUPS)
    names = sorted(each.name for each in (CLIENT_LOGS / group).glob("*.log.gz"))
    members = tuple(names) if chance.random() < 0.4 else (chance.choice(names),)
    first, last = _span(group)
    if chance.random() < 0.2 and len(members) == 1:
        from_ms, to_ms = first, last + 1
    else:
        length = int(SHORTEST_MS * (0.7 * (last - first) / SHORTEST_MS) ** chance.random())
        from_ms = chance.randint(first - length // 2, last - length // 2)
        to_ms = from_ms + length
    inner = chance.choice(list(WRAPPERS))
    others = [each for each in WRAPPERS if inner not in AMBIGUOUS or each not in AMBIGUOUS]
    wrappers = chance.choice([(), (), (inner,), (inner, chance.choice(others))])
    return Cut(group, members, from_ms, to_ms, chance.random() < 0.25, wrappers)


def cut_of_broker(seed: int) -> Cut:
    """A window of the log of the broker that coordinated a group."""
    chosen = cut(seed)
    return replace(chosen, members=(BROKERS_LOG,), of_broker=True)


@cache
def findings_of_all(group: str, of_broker: bool) -> tuple[Row, ...]:
    """The findings from all logs of a group's members, or from the whole log of the broker."""
    names = [BROKERS_LOG] if of_broker else sorted(each.name for each in (CLIENT_LOGS / group).glob("*.log.gz"))
    whole = Cut(group, tuple(names), 0, sys.maxsize, False, (), of_broker, most_lines=sys.maxsize)
    with tempfile.TemporaryDirectory() as folder:
        return tuple(findings_of_files(Path(folder) / group, whole.files()))


def findings_of_files(folder: Path, files: Iterable[tuple[str, list[str]]]) -> list[Row]:
    """The findings from these files, which are written below a folder."""
    return findings_of(events_of_files(folder, files), tuple(READS))


def events_of_files(folder: Path, files: Iterable[tuple[str, list[str]]]) -> pa.Table:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, lines in files:
        paths.append(folder / name.removesuffix(".gz"))
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return events_of_logs(paths)


@cache
def done_to(group: str) -> tuple[Action, ...]:
    """The actions on a recorded group, by its ledger."""
    recording, name = group.split("/")
    ledger: Mapping[str, Any] = json.loads((CLIENT_LOGS / recording / "ledger.json").read_text())
    return tuple(actions_of(ledger["done"], name, bool(ledger["groups"][name].get("static"))))


@cache
def _lines(path: Path) -> tuple[list[str], list[int]]:
    """Lines of a log, with their times; a line without one has that of the line before it."""
    lines, times, at_ms = gzip.decompress(path.read_bytes()).decode().splitlines(), [], 0
    for line in lines:
        if found := _TIME.search(line):
            seconds = _seconds(found["date"]) if found["date"] else int(found["epoch"])
            at_ms = max(at_ms, seconds * 1_000 + int(found["ms"] or 0))
        times.append(at_ms)
    return lines, times


@cache
def _seconds(date: str) -> int:
    return int(datetime.fromisoformat(date.replace("/", "-")).replace(tzinfo=UTC).timestamp())


def _between(path: Path, from_ms: int, to_ms: int) -> list[str]:
    lines, times = _lines(path)
    return lines[bisect_left(times, from_ms) : bisect_left(times, to_ms)]


@cache
def _span(group: str) -> tuple[int, int]:
    times = [_lines(each)[1] for each in (CLIENT_LOGS / group).glob("*.log.gz")]
    return min(at for each in times for at in each if at), max(each[-1] for each in times if each)


def _file(lines: Iterable[str]) -> io.BytesIO:
    return io.BytesIO("".join(f"{line}\n" for line in lines).encode())
