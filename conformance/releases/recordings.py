"""The recording of a release, from its runs: the fields that differ from the newest release's in both, in the same way.

What the newest release itself answered otherwise in a run of its own is a matter of time or of drawn ids, and left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Final

from conformance.releases.runs import FIRST, SECOND, Json, Runs
from rejoin.conform.recordings.by_release import FieldOfRelease, ReleaseRecording

BY_WAITING: Final = "transactions/read-committed-long-poll"
"""A fetch whose answer follows from times, in each release."""
BY_DRAWN_IDS: Final = frozenset({"consumer-protocol/groups/classic-classic-beside"})
"""Scripts in which members are sorted by random ids."""
NOT_PLAYED: Final = "it was not played"
THE_SCRIPT: Final = 0
"""Stands for the step where a script could not be played to its end."""
BY_TIME: Final = ("time", "order")
"""Kinds of differences that are not recorded."""


def recording(
    release: str, runs: Runs, unsteady: frozenset[tuple[str, int]] = frozenset(), names: Iterable[str] = ()
) -> ReleaseRecording:
    """The recording. ``unsteady`` has steps of scripts that are left out; ``names`` are all scripts to be played."""
    again = {outcome["script"]: outcome for outcome in runs[SECOND]}
    scripts: dict[str, tuple[FieldOfRelease, ...]] = {}
    for outcome in runs[FIRST]:
        script = outcome["script"]
        if script in BY_DRAWN_IDS or script == BY_WAITING:
            continue
        fields = tuple(
            one
            for one in _in_both(outcome["differences"], again.get(script, {}).get("differences", ()))
            if (script, one.step) not in unsteady
        )
        if fields:
            scripts[script] = fields
    reasons: dict[str, tuple[str, ...]] = {}
    for outcome in runs[FIRST]:
        if reason := outcome["notApplicable"]:
            reasons[reason] = (*reasons.get(reason, ()), outcome["script"])
    missing = set(names) - {outcome["script"] for outcome in runs[FIRST]}
    played = len(runs[FIRST]) - sum(map(len, reasons.values()))
    if missing:
        reasons[NOT_PLAYED] = tuple(sorted(missing))
    ordered = dict(sorted(reasons.items(), key=lambda pair: (-len(pair[1]), pair[0])))
    return ReleaseRecording(release, scripts, played, ordered)


def unsteady_steps(control: Runs) -> frozenset[tuple[str, int]]:
    """Steps of scripts that the newest release answers otherwise from run to run."""
    return frozenset(
        (outcome["script"], one["step"])
        for run in control.values()
        for outcome in run
        for one in outcome["differences"]
        if one["kind"] not in BY_TIME
    )


def _in_both(first: Iterable[Json], second: Iterable[Json]) -> Iterable[FieldOfRelease]:
    left = Counter(json.dumps(one, sort_keys=True) for one in second)
    for one in first:
        key = json.dumps(one, sort_keys=True)
        if one["kind"] in BY_TIME or not left[key] or one["step"] == THE_SCRIPT:
            continue
        left[key] -= 1
        yield FieldOfRelease(one["step"], one["api"], one["version"], one["path"], one["kafka"], one["other"])
