"""Plays the scripts on older releases of Kafka and records answers that differ: ``python -m conformance.releases``.

Writes ``conform/recordings/releases`` and ``docs/releases.md``. The newest release is played in the same way: what
differs there is left out of the recordings.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final

from conformance.judged.brokers import kafka
from conformance.kafka.broker import class_path
from conformance.releases.page import PAGE, page
from conformance.releases.recordings import recording, unsteady_steps
from conformance.releases.runs import both_runs, keep_runs, read_runs
from rejoin.conform.recordings.by_release import OLDER_RELEASES, RELEASES, read_release, write_release
from rejoin.conform.recordings.reading import RELEASE, SETS, PackedScript, read_set

RUNS: Final = Path("out/releases")


def playable() -> list[PackedScript]:
    """The scripts that can be asked of any broker."""
    return [script for of_set in SETS for script in read_set(of_set) if script.unplayable is None]


async def play(releases: list[str], only: str, folder: Path, at_once: int) -> None:
    """Play both runs of each release, one broker at a time, and keep them."""
    scripts = [script for script in playable() if only in script.full_name]
    for release in releases:
        runs = await both_runs(kafka(await class_path(release), release), scripts, at_once)
        keep_runs(folder / f"{release}.json", runs)


def record(folder: Path) -> None:
    """Make the recordings from the runs that are kept."""
    control = read_runs(folder / f"{RELEASE}.json")
    steady = recording(RELEASE, control)
    for script in steady.scripts:
        print(f"{RELEASE} differs from its own recording twice: {script}", file=sys.stderr)
    names = [script.full_name for script in playable()]
    for release in OLDER_RELEASES:
        found = recording(release, read_runs(folder / f"{release}.json"), unsteady_steps(control), names)
        size = write_release(found)
        print(f"{release}: {len(found.scripts)} of {found.played} scripts differ, {size:,} bytes")
    read_release.cache_clear()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record what older releases of Kafka answer otherwise.")
    parser.add_argument("releases", nargs="*", help=f"releases to play: {', '.join(RELEASES)}; all without any")
    parser.add_argument("--only", default="", help="play scripts whose names contain this")
    parser.add_argument("--at-once", type=int, default=5, help="number of scripts played at the same time")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder in which the runs are kept")
    parser.add_argument("--from-runs", action="store_true", help="play nothing: use the runs that are kept")
    parser.add_argument("--page", action="store_true", help="write the page alone, from the recordings")
    given = parser.parse_args()
    if unknown := set(given.releases) - set(RELEASES):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(RELEASES)}")
    if not given.page:
        if not given.from_runs:
            asyncio.run(play(given.releases or list(RELEASES), given.only, given.runs, given.at_once))
        record(given.runs)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
