"""Judges Kafka, this broker, and other emulators by all recordings: ``python -m conformance.judged``; prints a table.

Each recording is played on a broker with the settings with which it was made, where the broker has settings.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from conformance.judged.brokers import Candidate, Profile, kafka, kfake, mock_cluster, rejoin, tansu
from conformance.kafka.broker import class_path
from rejoin.conform.comparison.outcomes import ScriptOutcome
from rejoin.conform.judged_broker import BrokerRefused, look
from rejoin.conform.judging import PROBLEMS, Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.recordings.reading import RELEASE, SETS, PackedScript, read_set
from rejoin.conform.reports.page import page
from rejoin.conform.reports.table import table as report

NAMES: Final = ("kafka", "rejoin", "kfake", "mock", "tansu")
AT_A_TIME: Final = 40
"""Scripts on one process of an emulator; some requests crash one, and then each gets a process of its own."""


def by_profile(scripts: Iterable[PackedScript]) -> Iterator[tuple[Profile, list[PackedScript]]]:
    """The scripts that can be asked, by the settings of their recordings."""
    found: dict[str, tuple[Profile, list[PackedScript]]] = {}
    for script in scripts:
        settings = script.header["settings"]
        features = {name: int(level) for name, level in script.header.get("features", {}).items()}
        found.setdefault(repr((sorted(settings.items()), features)), (Profile(settings, features), []))[1].append(
            script
        )
    yield from found.values()


async def judged(candidate: Candidate, scripts: list[PackedScript], at_once: int) -> list[ScriptOutcome]:
    """The outcomes of a broker."""
    found: list[ScriptOutcome] = []
    if candidate.has_settings:
        for profile, some in by_profile(scripts):
            outcomes, left = await _played(candidate, profile, some, at_once)
            assert not left, f"{candidate.name} left {left}"
            found += outcomes
        return found
    nothing = Profile({}, {})
    for begin in range(0, len(scripts), AT_A_TIME):
        some = scripts[begin : begin + AT_A_TIME]
        try:
            outcomes, left = await _played(candidate, nothing, some, at_once)
        except (BrokerRefused, *PROBLEMS):
            left = ["everything"]
        if any("Refused" in each or each == "everything" for each in left):
            outcomes = [await _alone(candidate, script) for script in some]
        found += outcomes
    return found


async def _played(
    candidate: Candidate, profile: Profile, scripts: Iterable[PackedScript], at_once: int
) -> tuple[list[ScriptOutcome], list[str]]:
    async with candidate.start(profile) as address:
        judge = Judge(await look(address, BrokerAccess()), at_once=at_once)
        outcomes = await judge.judge(scripts, lambda _: None)
        left = await judge.clean_up()
    print(f"{candidate.name}: {len(outcomes)} scripts", file=sys.stderr)
    return outcomes, left


async def _alone(candidate: Candidate, script: PackedScript) -> ScriptOutcome:
    (outcome,), _ = await _played(candidate, Profile({}, {}), [script], 1)
    return outcome


def row(name: str, outcomes: list[ScriptOutcome]) -> str:
    """A row of the table: equal scripts of those that were played, for each set and in all."""
    words = Counter((each.of_set, each.word) for each in outcomes)
    all_words = Counter(each.word for each in outcomes)
    cells = [f"{words[of_set, 'equal']} of {words[of_set, 'equal'] + words[of_set, 'different']}" for of_set in SETS]
    equal, different = all_words["equal"], all_words["different"]
    return f"| {' | '.join((name, *cells, f'{equal} of {equal + different}', str(all_words['not applicable'])))} |"


async def run(names: list[str], only: str, at_once: int, jars: str, into: Path | None, verbose: bool) -> None:
    """Judge the brokers with these names, and print the table."""
    scripts = [
        script
        for of_set in SETS
        for script in read_set(of_set)
        if script.unplayable is None and only in script.full_name
    ]
    head = ("", *SETS, "all", "not applicable")
    print(f"Measured on {datetime.now(UTC):%Y-%m-%d}.\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    reports = []
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        for name in names:
            candidate = await _candidate(name, folder, jars)
            outcomes = await judged(candidate, scripts, at_once)
            print(row(candidate.name, outcomes), flush=True)
            reports.append(f"\n{candidate.name}\n{report(outcomes, shows_all=True)}")
            if into is not None:
                into.mkdir(parents=True, exist_ok=True)
                (into / f"{name}.html").write_text(page(outcomes, candidate.name, RELEASE))
    if verbose:
        print("\n".join(reports))


async def _candidate(name: str, folder: str, jars: str) -> Candidate:
    match name:
        case "kafka":
            return kafka(jars)
        case "rejoin":
            return rejoin()
        case "kfake":
            return await kfake(folder)
        case "tansu":
            return await tansu(folder)
    return mock_cluster()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Judge Kafka, this broker, and other emulators by the recordings.")
    parser.add_argument("names", nargs="*", help=f"brokers: {', '.join(NAMES)}; all without any")
    parser.add_argument("--only", default="", help="only scripts whose names contain this")
    parser.add_argument("--at-once", type=int, default=6, help="number of scripts played at the same time")
    parser.add_argument("--jars", type=Path, help="file with the class path of Kafka; without it, Maven resolves it")
    parser.add_argument("--html", type=Path, help="folder in which each broker gets its page")
    parser.add_argument("--verbose", action="store_true", help="print every difference")
    given = parser.parse_args()
    names = given.names or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(NAMES)}")

    async def judge_all() -> None:
        jars = ""
        if "kafka" in names:
            jars = given.jars.read_text().strip() if given.jars else await class_path()
        await run(names, given.only, given.at_once, jars, given.html, given.verbose)

    asyncio.run(judge_all())


if __name__ == "__main__":
    main()
