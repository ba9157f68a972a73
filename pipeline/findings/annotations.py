"""Annotations such as deployments: read from a file, and compared with the group's rebalances.

Files are those of ``kubectl get events -o json``, or text with an instant and what happened in each line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from rejoin.pipeline.findings.clients.advice import through_rollouts
from rejoin.pipeline.findings.clients.libraries import clients_of_ids
from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period

LARGEST_BYTES: Final = 64 * 2**20
APART_MS: Final = 5 * 60_000
"""Annotations that lie further apart are of different rollouts."""
_BEFORE_MS: Final = 10_000
_AFTER_MS: Final = 120_000
"""A member that a rollout restarts may be missed so long after its last event."""
_LEAST: Final = 3
_MORE_THAN_CHANCE: Final = 1.5
"""So many times the share of time that rollouts take."""
_EXPECTED: Final = (
    "expected the JSON of kubectl get events -o json, or lines such as 2026-03-01T14:02:00Z what happened, or "
    "1772373720 what happened"
)
_LINE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?|\d{10}|\d{13})[\s,;]+(.+)"
)
_POD: Final = re.compile(r"(.+?)(?:-[0-9a-f]{6,10})?-(?:[a-z0-9]{5}|\d+)")

Row = dict[str, Any]


class BadAnnotations(Exception):
    """A file of annotations cannot be read; the text says where and what was expected."""


class Annotation(NamedTuple):
    """An event outside the group: instant, text and subject."""

    at_ms: int
    text: str
    subject: str


class Rollout(NamedTuple):
    """Annotations that lie close together."""

    from_ms: int
    to_ms: int
    subjects: tuple[str, ...]

    def has(self, at_ms: int) -> bool:
        """Whether something at an instant may come of it."""
        return self.from_ms - _BEFORE_MS <= at_ms <= self.to_ms + _AFTER_MS


def read_annotations(paths: Iterable[Path]) -> list[Annotation]:
    """All annotations of these files, by time. Raises BadAnnotations."""
    return sorted(each for path in paths for each in _read(path))


def _read(path: Path) -> Iterator[Annotation]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise BadAnnotations(f"{path}: longer than {LARGEST_BYTES >> 20} MiB; {_EXPECTED}")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BadAnnotations(f"{path}: {(problem.strerror or str(problem)).lower()}; {_EXPECTED}") from None
    except UnicodeDecodeError:
        raise BadAnnotations(f"{path}: is no text in UTF-8; {_EXPECTED}") from None
    if text.lstrip().startswith("{"):
        yield from _of_kubernetes(path, text)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        at_ms = None if found is None else _instant(found[1])
        if found is None or at_ms is None:
            raise BadAnnotations(f"{path}:{number}: {line.strip()[:80]!r} has no instant; {_EXPECTED}")
        yield Annotation(at_ms, found[2].strip(), found[2].strip())


def _of_kubernetes(path: Path, text: str) -> Iterator[Annotation]:
    try:
        items = json.loads(text)["items"]
        events = [each for each in items if isinstance(each, dict)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadAnnotations(f"{path}: is no list of events; {_EXPECTED}") from None
    for number, event in enumerate(events, 1):
        about = event.get("involvedObject") or event.get("regarding") or {}
        series, metadata = event.get("series") or {}, event.get("metadata") or {}
        instants = (
            *(event.get(name) for name in ("lastTimestamp", "eventTime", "deprecatedLastTimestamp", "firstTimestamp")),
            series.get("lastObservedTime"),
            metadata.get("creationTimestamp"),
        )
        at_ms = next((at for each in instants if each and (at := _instant(str(each))) is not None), None)
        if at_ms is None:
            raise BadAnnotations(f"{path}, event {number}: has no timestamp; {_EXPECTED}")
        name = str(about.get("name") or "?")
        said = " ".join(str(event.get("message") or event.get("note") or "").split())
        yield Annotation(
            at_ms, f"{about.get('kind') or 'object'}/{name}: {event.get('reason') or '?'} {said}".strip(), _owner(name)
        )


def _owner(name: str) -> str:
    """The deployment of a pod, by the name that Kubernetes gives it."""
    found = _POD.fullmatch(name)
    return found[1] if found else name


def _instant(text: str) -> int | None:
    if text.isdecimal():
        return int(text) if len(text) == 13 else int(text) * 1_000
    try:
        found = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)


def rollouts(annotations: Sequence[Annotation]) -> list[Rollout]:
    """Annotations that lie close together, by time."""
    found: list[list[Annotation]] = []
    for each in annotations:
        if not found or each.at_ms - found[-1][-1].at_ms > APART_MS:
            found.append([])
        found[-1].append(each)
    return [
        Rollout(
            rows[0].at_ms, rows[-1].at_ms, tuple(name for name, _ in Counter(row.subject for row in rows).most_common())
        )
        for rows in found
    ]


def during_rollouts(
    group_id: str,
    rebalances: Sequence[Mapping[str, Any]],
    annotations: Sequence[Annotation],
    watched: tuple[int, int] | None = None,
) -> Iterator[Finding]:
    """Most rebalances of a group lie in rollouts: more than would if they came at any time while it was watched."""
    later = [row for row in rebalances if not row.get("initial")]
    known = rollouts(annotations)
    inside = {row["rebalance_id"]: found for row in later for found in known if found.has(row["prepared_at_ms"])}
    if len(inside) < _LEAST or 2 * len(inside) < len(later):
        return
    if len(inside) / len(later) < _MORE_THAN_CHANCE * _covered(known, watched or _span(rebalances)):
        return
    mine = [row for row in later if row["rebalance_id"] in inside]
    used = list(dict.fromkeys(inside.values()))
    whose = names(dict.fromkeys(name for each in used for name in each.subjects))
    share = f"each of the {len(later)}" if len(inside) == len(later) else f"{len(inside)} of {len(later)}"
    first, last = mine[0]["prepared_at_ms"], max(row["ended_at_ms"] or row["prepared_at_ms"] for row in mine)
    which = "a rollout" if len(used) == 1 else f"one of {len(used)} rollouts"
    stopped_ms = sum(row.get("stopped_ms") or 0 for row in mine)
    lists = (row.get(each) or () for row in rebalances for each in ("members_before", "members_after"))
    members = dict.fromkeys(each for one in lists for each in one)
    setting, advice = through_rollouts(clients_of_ids(members, {row.get("protocol") or "" for row in rebalances}))
    yield Finding(
        "during-rollouts",
        f"{share} rebalances {'lies' if 'each' in share or len(inside) == 1 else 'lie'} in {which} of {whose}",
        f"{count(len(inside), 'rebalance')} of {group_id} {period(first, last)} began while "
        f"{count(sum(each.from_ms <= last and each.to_ms >= first for each in used), 'rollout')} went on, or within "
        f"{_AFTER_MS // 60_000} minutes after: {'; '.join(period(each.from_ms, each.to_ms) for each in used[:4])}.",
        stopped_ms / 1_000,
        first,
        last,
        setting=setting,
        advice=advice,
        numbers={"rebalances": len(inside), "of": len(later), "rollouts": len(used)},
        rebalances=[row["rebalance_id"] for row in mine],
        exact=False,
        severity=MEDIUM if len(inside) >= 2 * _LEAST else LOW,
    )


def _span(rebalances: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    return rebalances[0]["prepared_at_ms"], rebalances[-1]["prepared_at_ms"]


def _covered(known: Sequence[Rollout], watched: tuple[int, int]) -> float:
    """The share of this time in which a rebalance would lie in a rollout."""
    begin, end = watched
    covered, until = 0, begin
    for each in known:
        start, stop = max(each.from_ms - _BEFORE_MS, until), min(each.to_ms + _AFTER_MS, end)
        covered += max(0, stop - start)
        until = max(until, stop)
    return float(covered / max(1, end - begin))


def rows_of_rollouts(
    run_id: str,
    group_id: str,
    rebalances: Sequence[Mapping[str, Any]],
    annotations: Sequence[Annotation],
    watched: tuple[int, int] | None = None,
) -> list[Row]:
    """Findings about annotations, as rows of the table ``findings``."""
    about = {"run_id": run_id, "group_id": group_id, "groups": [group_id]}
    return [{**about, **each.row()} for each in during_rollouts(group_id, rebalances, annotations, watched)]
