"""Judge real clients with ``rejoin conform-client``, and write results.jsonl and docs/conform-client.md.

A client that cannot be made ready here, since its language or a native part is missing, keeps the results that it has.
A trouble that fails is played once more, alone: on a busy machine, requests pile up in flight.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from conformance.clients.conform.judged import JUDGED, JudgedClient
from conformance.clients.conform.results import (
    FAILED,
    NOT_APPLICABLE,
    NOT_PLAYED,
    PASSED,
    TroubleResult,
    read_results,
    replace_results,
    write_table,
)
from conformance.clients.results import ROOT
from rejoin.conform.clients.troubles import BY_NAME as TROUBLES

SECONDS: Final = 1_800.0
OUTCOMES: Final = {"failure": FAILED, "error": NOT_PLAYED, "skipped": NOT_APPLICABLE}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.clients.conform", description=__doc__)
    names = list(dict.fromkeys(each.name for each in JUDGED))
    parser.add_argument("client", nargs="*", metavar="CLIENT", help=f"of {', '.join(names)}; all without")
    parser.add_argument("--only", action="append", default=[], metavar="TROUBLE", help="this trouble only")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="troubles played at the same time")
    parser.add_argument("--lives", type=Path, metavar="DIR", help="write the transcripts here")
    parser.add_argument("--failed", action="store_true", help="play only what failed or is missing")
    parser.add_argument("--table", action="store_true", help="play nothing, and write the table of what is there")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.client if name not in names]:
        parser.error(f"unknown client {unknown[0]}: expected one of {', '.join(names)}")
    if arguments.table:
        write_table(read_results())
        return 0
    missing = []
    for client in JUDGED:
        only = [name for name in arguments.only if not client.only or name in client.only] or list(client.only)
        if arguments.failed:
            only = _unsettled(client)
        if arguments.client and client.name not in arguments.client:
            continue
        if (arguments.only and not set(only) & set(arguments.only)) or (arguments.failed and not only):
            continue
        try:
            command = client.started_by()
        except (RuntimeError, OSError) as problem:
            print(f"{client.title} is not at hand: {problem}", flush=True)
            missing.append(client.title)
            continue
        _judge(client, command, only, arguments)
    return 1 if missing else 0


def _unsettled(client: JudgedClient) -> list[str]:
    """Troubles that have no verdict yet, or failed."""
    settled = {
        each.trouble
        for each in read_results()
        if each.client == client.title and each.outcome in (PASSED, NOT_APPLICABLE)
    }
    return [name for name in client.only or TROUBLES if name not in settled]


def _judge(client: JudgedClient, command: list[str], only: list[str], arguments: argparse.Namespace) -> None:
    print(f"\n{client.title}", flush=True)
    results = _played(client, command, only, arguments.at_once, arguments.lives)
    failed = [each.trouble for each in results if each.outcome in (FAILED, NOT_PLAYED)]
    if failed:
        print("once more:", flush=True)
        again = {each.trouble: each for each in _played(client, command, failed, 1, arguments.lives)}
        results = [again.get(each.trouble, each) for each in results]
    replace_results(client.title, results, [each.title for each in JUDGED])


def _played(
    client: JudgedClient, command: list[str], only: list[str], at_once: int, lives: Path | None
) -> list[TroubleResult]:
    """The verdicts on a client in some troubles, or in all of them."""
    with tempfile.TemporaryDirectory(prefix="judged-") as folder:
        report = Path(folder) / "junit.xml"
        options = [word for name in only for word in ("--only", name)]
        options += ["--junit", str(report), "--at-once", str(at_once)]
        if lives is not None:
            options += ["--transcripts", str(lives / client.title.replace("/", "-").replace(" ", "-"))]
        subprocess.run(
            [sys.executable, "-m", "rejoin", "conform-client", *options, "--", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            check=False,
            timeout=SECONDS,
        )
        day = datetime.now(UTC).date().isoformat()
        return [_result(client, day, case) for case in ElementTree.parse(report).getroot()]


def _result(client: JudgedClient, day: str, case: ElementTree.Element) -> TroubleResult:
    name = case.get("name", "")
    course = {each.get("name"): each.get("value", "") for each in case.iter("property")}
    for tag, outcome in OUTCOMES.items():
        if (problem := case.find(tag)) is not None:
            return TroubleResult(client.title, day, name, outcome, problem.get("message", ""))
    well_ms = course.get("well_after_ms")
    return TroubleResult(client.title, day, name, PASSED, well_after_ms=None if well_ms is None else int(well_ms))


if __name__ == "__main__":
    sys.exit(main())
