"""Plays the orders on the versions with and without each bug: ``python -m conformance.clients.orders [FILE ...]``.

Prints a table of how many plays failed; its versions are installed from PyPI and npm. Returns 1 if a version with the
bug never fails, or one without it does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from conformance.clients.orders.bugs import BUGS, ORDERS, ROOT, ClientBug

PLAYS = 5
SECONDS = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [each.file.removesuffix(".order") for each in BUGS]
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=f"of {', '.join(names)}; all without any")
    parser.add_argument("--plays", type=int, default=PLAYS, help="plays of each version")
    given = parser.parse_args()
    if unknown := [each for each in given.bugs if each not in names]:
        parser.error(f"unknown bug {unknown[0]}: expected one of {', '.join(names)}")
    differs = False
    print("| order | client | plays | failed | seen |\n|---|---|---|---|---|", flush=True)
    for bug, name in zip(BUGS, names, strict=True):
        if given.bugs and name not in given.bugs:
            continue
        for version in (bug.broken, bug.mended):
            problems = [problem for _ in range(given.plays) if (problem := played(bug, version))]
            differs |= bool(problems) != (version == bug.broken)
            seen = problems[0] if problems else ""
            print(f"| `{name}` | {bug.package} {version} | {given.plays} | {len(problems)} | {seen} |", flush=True)
    return int(differs)


def played(bug: ClientBug, version: str) -> str:
    """The problem that one play shows; empty where it passed. Raises RuntimeError where it could not be played."""
    options = ["--order", str(ORDERS / bug.file), "--timeout", "10", "--brokers", str(bug.brokers)]
    done = subprocess.run(
        [sys.executable, "-m", "rejoin", "explore-client", *options, "--", *bug.command(version)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    name, _, rest = done.stdout.splitlines()[0].partition("  ") if done.stdout else ("", "", "")
    if done.returncode not in (0, 1) or name != "order":
        raise RuntimeError(f"{bug.package} {version}: {done.stdout}{done.stderr}")
    outcome, _, said = rest.partition("  ")
    return said.split("; choices that")[0] if outcome == "failed" else ""


if __name__ == "__main__":
    sys.exit(main())
