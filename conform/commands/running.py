"""One run of ``rejoin conform``: checks what is wanted, plays, prints, writes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rejoin.atomic_file import FileNotWritten, check_writable
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.conform.commands.access import access_by
from rejoin.conform.comparison.outcomes import ScriptOutcome
from rejoin.conform.judged_broker import BrokerRefused, look
from rejoin.conform.judging import Judge
from rejoin.conform.nearest_release import nearest_release
from rejoin.conform.player.connection import Address, BrokerAccess, ConnectionClosed
from rejoin.conform.recordings.by_release import RELEASES, branch_of, read_release, release_named
from rejoin.conform.recordings.reading import SETS, PackedScript, read_set
from rejoin.conform.reports import baseline
from rejoin.conform.reports.junit import junit
from rejoin.conform.reports.table import table
from rejoin.error_lines import print_error, refuse
from rejoin.files import read_text
from rejoin.output import print_aside, print_progress, print_text
from rejoin.protocol.validation import nearest

EQUAL, DIFFERENT, NOT_PLAYED, STOPPED = 0, 1, 2, 130
MOST_AT_ONCE: Final = 32
MOST_BASELINE_BYTES: Final = 2**24


@dataclass(frozen=True)
class Wanted:
    """The options of the command."""

    server: str
    sets: tuple[str, ...] = ()
    only: str = ""
    at_once: int = 6
    command_config: str | None = None
    junit: Path | None = None
    html: Path | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None
    kafka: str = ""
    """The release to compare with; without one, the nearest."""
    lists: bool = False
    verbose: bool = False

    @property
    def written(self) -> list[tuple[str, Path]]:
        """The files to write, each with its option."""
        files = (("--junit", self.junit), ("--html", self.html), ("--write-baseline", self.write_baseline))
        return [(option, path) for option, path in files if path is not None]


def main(wanted: Wanted) -> int:
    """Run; the exit code."""
    try:
        scripts = chosen(wanted)
        if wanted.lists:
            for script in scripts:
                print_text(f"{script.full_name}{f'  ({script.unplayable})' if script.unplayable else ''}")
            return EQUAL
        address = address_of(wanted.server)
        for option, path in wanted.written:
            check_writable(option, path)
        known = known_differences(wanted.baseline)
        access = access_by(security_from(wanted.command_config))
        return asyncio.run(_run(wanted, scripts, address, access, known))
    except (WrongOption, FileNotWritten, BrokerRefused, ValueError) as problem:
        return refuse(problem)
    except KeyboardInterrupt:
        return STOPPED


def address_of(server: str) -> Address:
    """Host and port. Raises WrongOption."""
    if not server:
        raise WrongOption("--bootstrap-server is missing: expected HOST:PORT of the broker to judge")
    host, colon, port = server.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise WrongOption(f"--bootstrap-server {server}: expected HOST:PORT")
    return host.strip("[]"), int(port)


def chosen(wanted: Wanted) -> list[PackedScript]:
    """The scripts that are wanted. Raises WrongOption."""
    for name in wanted.sets:
        if name not in SETS:
            raise WrongOption(f"--set {name}: there is no such set{nearest(name, SETS)}; expected {', '.join(SETS)}")
    if not 0 < wanted.at_once <= MOST_AT_ONCE:
        raise WrongOption(f"--at-once {wanted.at_once}: expected 1 to {MOST_AT_ONCE}")
    if wanted.kafka and release_named(wanted.kafka) is None:
        known = ", ".join(map(branch_of, RELEASES))
        raise WrongOption(f"--kafka {wanted.kafka}: there is no recording of this release; expected {known}")
    scripts = [
        script
        for name in SETS
        if name in (wanted.sets or SETS)
        for script in read_set(name)
        if wanted.only in script.full_name
    ]
    if not scripts:
        raise WrongOption(f"--only {wanted.only}: no script of these sets is called so; --list shows them")
    return scripts


def known_differences(path: Path | None) -> baseline.Baseline:
    """The differences of a baseline file. Raises WrongOption."""
    if path is None:
        return {}
    try:
        return baseline.read(read_text(path, MOST_BASELINE_BYTES))
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise WrongOption(f"--baseline {path}: {why}; expected a file of --write-baseline") from None


async def _run(
    wanted: Wanted, scripts: list[PackedScript], address: Address, access: BrokerAccess, known: baseline.Baseline
) -> int:
    broker = await look(address, access)
    release = release_named(wanted.kafka) or nearest_release(broker.features.versions)
    judge = Judge(broker, at_once=wanted.at_once, release=read_release(release))
    count = 0

    def done(_: ScriptOutcome) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            print_progress(f"{count} of {len(scripts)} scripts ")

    try:
        found = await judge.judge(scripts, done)
    except (OSError, ConnectionClosed) as problem:
        raise BrokerRefused(f"{wanted.server} went away: {problem or 'the connection was closed'}") from None
    finally:
        for left in await judge.clean_up():
            print_error(f"not removed: {left}; names begin with {judge.prefix}")
    if sys.stderr.isatty():
        print_aside()
    outcomes = [baseline.beside(each, known) for each in found]
    _write(wanted, found, outcomes, release)
    why = "" if wanted.kafka else f" (nearest to the ApiVersions of {wanted.server}; --kafka chooses another)"
    print_text(f"Apache Kafka {release}, recorded, and {wanted.server}{why}\n")
    print_text(table(outcomes, shows_all=wanted.verbose))
    gone = baseline.gone(found, known)
    if gone:
        print_text(f"\n{len(gone)} scripts of the baseline have fewer differences now: {', '.join(gone[:5])}")
    if all(each.not_applicable is not None for each in outcomes):
        print_error(f"no script was played on {wanted.server}: --verbose shows the reason for each")
        return NOT_PLAYED
    return DIFFERENT if any(each.differences for each in outcomes) else EQUAL


def _write(wanted: Wanted, found: list[ScriptOutcome], outcomes: list[ScriptOutcome], release: str) -> None:
    """Write the files that are wanted. Raises WrongOption."""
    files: list[tuple[str, Path, bytes]] = []
    if wanted.junit is not None:
        files.append(("--junit", wanted.junit, junit(outcomes, wanted.server)))
    if wanted.html is not None:
        from rejoin.conform.reports.page import page  # noqa: PLC0415 (templates take their time)

        files.append(("--html", wanted.html, page(outcomes, wanted.server, release).encode()))
    if wanted.write_baseline is not None:
        files.append(("--write-baseline", wanted.write_baseline, baseline.written(found, release).encode()))
    for option, path, data in files:
        try:
            path.write_bytes(data)
        except OSError as problem:
            raise WrongOption(f"{option} {path}: {problem.strerror}") from None
