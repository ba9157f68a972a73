"""The page of a run: each difference with the step, Kafka's answer and the other one, field by field."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from rejoin.conform.comparison.outcomes import KINDS, ScriptOutcome
from rejoin.conform.reports.table import HEAD
from rejoin.pages import render

LONGEST: Final = 500
"""Characters of a value; the beginning of a longer one is shown."""
MOST_ROWS: Final = 40
"""Differences of a script that are shown."""
MOST_OPEN: Final = 30
"""With more scripts than these that differ, each is folded."""


def page(outcomes: Sequence[ScriptOutcome], broker: str, kafka: str) -> str:
    """The page as HTML."""
    sets = list(dict.fromkeys(each.of_set for each in outcomes))
    rows = []
    for name in sets:
        own = Counter(each.word for each in outcomes if each.of_set == name)
        rows.append((name, sum(own.values()), *(own[word] for word in HEAD[2:])))
    scripts = [
        {"name": each.full_name, "rows": _rows(each), "more": max(0, len(each.differences) - MOST_ROWS)}
        for each in outcomes
        if each.differences
    ]
    reasons = Counter(each.not_applicable for each in outcomes if each.not_applicable is not None)
    kinds = Counter(one.kind for each in outcomes for one in each.differences)
    return render(
        __package__,
        "page.html",
        broker=broker,
        kafka=kafka,
        head=HEAD,
        rows=rows,
        kinds=[(kind, kinds[kind], KINDS[kind]) for kind in KINDS if kinds[kind]],
        scripts=scripts,
        most_open=MOST_OPEN,
        reasons=reasons.most_common(),
    )


def _rows(outcome: ScriptOutcome) -> list[dict[str, str]]:
    """The first differences; the request of a step is in the first row of it."""
    rows, steps = [], set()
    for one in outcome.differences[:MOST_ROWS]:
        rows.append(_row(one) | ({} if one.step not in steps else {"request": ""}))
        steps.add(one.step)
    return rows


def _row(one: Any) -> dict[str, str]:
    return {
        "kind": one.kind,
        "step": f"{one.step} {one.api} v{one.version}",
        "field": one.path or "answer",
        "kafka": _text(one.kafka),
        "other": _text(one.other),
        "request": _text(one.request),
    }


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
