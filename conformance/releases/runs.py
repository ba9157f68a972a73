"""Runs of one release: every script once, and those that differed once more on a broker that is started anew."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeAlias

from conformance.judged.__main__ import by_profile
from conformance.judged.brokers import Candidate, Profile
from rejoin.conform.comparison.outcomes import ScriptOutcome
from rejoin.conform.judged_broker import BrokerRefused, look
from rejoin.conform.judging import PROBLEMS, Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.recordings.reading import PackedScript

Json: TypeAlias = dict[str, Any]
Runs: TypeAlias = dict[str, list[Json]]
"""The outcomes of both runs."""
FIRST, SECOND = "first", "second"
AT_ONCE_AGAIN: Final = 3


async def both_runs(candidate: Candidate, scripts: Iterable[PackedScript], at_once: int) -> Runs:
    """The outcomes of both runs; the second has the scripts that differed in the first."""
    scripts = list(scripts)
    first = await _run(candidate, scripts, at_once)
    names = {each["script"] for each in first if each["differences"]}
    again = [script for script in scripts if script.full_name in names]
    return {FIRST: first, SECOND: await _run(candidate, again, min(at_once, AT_ONCE_AGAIN))}


async def _run(candidate: Candidate, scripts: list[PackedScript], at_once: int) -> list[Json]:
    found: list[Json] = []
    for profile, some in by_profile(scripts):
        try:
            outcomes = await _played(candidate, profile, some, at_once)
        except (BrokerRefused, *PROBLEMS) as problem:
            why = f"{type(problem).__name__}: {problem}"
            outcomes = [ScriptOutcome(script.of_set, script.name, not_applicable=why) for script in some]
        found += map(_as_json, outcomes)
        different = sum(bool(each["differences"]) for each in found)
        print(f"{candidate.name}: {len(found)} of {len(scripts)} scripts, {different} differ", file=sys.stderr)
    return found


async def _played(
    candidate: Candidate, profile: Profile, scripts: list[PackedScript], at_once: int
) -> list[ScriptOutcome]:
    async with candidate.start(profile) as address:
        return await Judge(await look(address, BrokerAccess()), at_once=at_once).judge(scripts, lambda _: None)


def _as_json(outcome: ScriptOutcome) -> Json:
    differences = [
        {name: value for name, value in asdict(one).items() if name != "request"} for one in outcome.differences
    ]
    return {"script": outcome.full_name, "notApplicable": outcome.not_applicable, "differences": differences}


def keep_runs(path: Path, runs: Runs) -> None:
    """Keep the outcomes of a release, beside those of scripts that were not played this time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    played = {each["script"] for each in runs[FIRST]}
    kept = read_runs(path) if path.exists() else {FIRST: [], SECOND: []}
    both = {
        name: sorted([each for each in kept[name] if each["script"] not in played] + runs[name], key=_name)
        for name in (FIRST, SECOND)
    }
    path.write_text(json.dumps(both, default=str))


def read_runs(path: Path) -> Runs:
    """The outcomes that were kept."""
    found: Runs = json.loads(path.read_text())
    return found


def _name(outcome: Json) -> str:
    name: str = outcome["script"]
    return name
