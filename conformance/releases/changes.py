"""The fields that changed from one release to the next, from the recordings by release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rejoin.conform.recordings.by_release import FieldOfRelease, ReleaseRecording

_RANDOM: Final = re.compile(r"/(sequence|mixture|random)-")
_INDEX: Final = re.compile(r"\.\d+(?=\.|$)")


@dataclass(frozen=True)
class Change:
    """A field of a step that one release answers otherwise than the one before."""

    script: str
    step: int
    api: str
    path: str
    """Without the positions of entries in lists."""
    before: Any
    after: Any


def changes(older: ReleaseRecording, newer: ReleaseRecording) -> Iterator[Change]:
    """The changes in scripts that both were asked, by script and step.

    Of a script of random requests, only the first step that changed: a batch that is refused moves all offsets behind.
    """
    unasked = {name for each in (older, newer) for names in each.not_applicable.values() for name in names}
    for script in sorted((older.scripts.keys() | newer.scripts.keys()) - unasked):
        found = list(_of_script(script, older, newer))
        yield from (each for each in found if each.step == found[0].step or not _RANDOM.search(script))


def _of_script(script: str, older: ReleaseRecording, newer: ReleaseRecording) -> Iterator[Change]:
    before, after = _by_place(older.scripts.get(script, ())), _by_place(newer.scripts.get(script, ()))
    for place in sorted(before.keys() | after.keys()):
        one, other = before.get(place), after.get(place)
        known = one or other
        assert known is not None, "a place is of one of them"
        value_before, value_after = (each.value if each else known.newest for each in (one, other))
        if value_before != value_after:
            yield Change(script, known.step, known.api, _INDEX.sub("", known.path), value_before, value_after)


def _by_place(fields: tuple[FieldOfRelease, ...]) -> dict[tuple[int, str, int], FieldOfRelease]:
    """The fields by step, path, and position among those with this path."""
    found: dict[tuple[int, str, int], FieldOfRelease] = {}
    counts: dict[tuple[int, str], int] = {}
    for one in fields:
        key = (one.step, one.path)
        counts[key] = counts.get(key, 0) + 1
        found[(*key, counts[key])] = one
    return found
