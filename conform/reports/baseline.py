"""A baseline: the known differences of a broker, by script. A run with it fails only for others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from rejoin.conform.comparison.outcomes import ScriptOutcome

Baseline: TypeAlias = dict[str, list[str]]
FORMAT: Final = "rejoin-conform-baseline-1"


class BadBaseline(ValueError):
    """A text that is no baseline; the message says why."""


def written(outcomes: Iterable[ScriptOutcome], kafka: str) -> str:
    """The baseline of these outcomes."""
    known = {each.full_name: sorted({one.key for one in each.differences}) for each in outcomes if each.differences}
    return json.dumps({"format": FORMAT, "kafka": kafka, "differences": dict(sorted(known.items()))}, indent=1) + "\n"


def read(text: str) -> Baseline:
    """Raises BadBaseline."""
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise BadBaseline(f"not JSON ({problem})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("differences"), dict):
        raise BadBaseline(f"not a baseline in the format {FORMAT}")
    known: Baseline = found["differences"]
    for script, keys in known.items():
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise BadBaseline(f"{script}: expected a list of texts")
    return known


def beside(outcome: ScriptOutcome, known: Baseline) -> ScriptOutcome:
    """An outcome without its known differences."""
    keys = set(known.get(outcome.full_name, ()))
    others = tuple(one for one in outcome.differences if one.key not in keys)
    return replace(outcome, differences=others, known=len(outcome.differences) - len(others))


def gone(outcomes: Iterable[ScriptOutcome], known: Baseline) -> list[str]:
    """Scripts of the baseline that were played and have fewer differences than it says. ``outcomes`` are all found."""
    played = {each.full_name: {one.key for one in each.differences} for each in outcomes if each.not_applicable is None}
    return [script for script, keys in known.items() if script in played and set(keys) - played[script]]
