"""The part of docs/releases.md that is made from the recordings by release: what changed, from each to the next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from conformance.releases.changes import Change, ScriptChanges, changes
from conformance.releases.notes import NOTES
from rejoin.conform.player.messages import api_name
from rejoin.conform.recordings.by_release import RELEASES, branch_of, read_release
from rejoin.protocol.brokers.releases import newest_versions, oldest_versions
from rejoin.protocol.errors import ErrorCode

PAGE: Final = Path(__file__).parents[2] / "docs" / "releases.md"
BEGIN: Final = "<!-- written by make releases -->\n"
END: Final = "<!-- end of what make releases writes -->\n"
LONGEST: Final = 60
"""Characters of a value in a table."""
MOST_NAMES: Final = 3
OF_VERSIONS: Final = ("apiKeys", "supportedFeatures", "finalizedFeatures")
"""Fields that name versions, which have a line of their own."""


def page() -> str:
    """The whole document."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{made()}\n{END}{rest.split(END)[1]}"


def made() -> str:
    """The text between the markers."""
    sections = (_section(older, newer) for older, newer in pairwise(RELEASES))
    return "\n\n".join([_counts(), *sections])


def _counts() -> str:
    rows = ["| release | scripts played | differ from 4.4 | not applicable |", "|---|---|---|---|"]
    for release in RELEASES[:-1]:
        found = read_release(release)
        left_out = sum(map(len, found.not_applicable.values()))
        rows.append(f"| {release} | {found.played} | {len(found.scripts)} | {left_out} |")
    return "\n".join(rows)


def _section(older: str, newer: str) -> str:
    one, other = branch_of(older), branch_of(newer)
    found = list(changes(read_release(older), read_release(newer)))
    lines = [f"### From {one} to {other}", "", *_versions(one, other)]
    notes = NOTES.get((one, other), ())
    if notes:
        lines += [*(f"- {note}" for note in notes), ""]
    rows = list(_rows(found))
    if not rows:
        return "\n".join([*lines, "No answer of a script that both were asked changed."])
    head = f"| request and field | {one} | {other} | scripts |"
    return "\n".join([*lines, *_details(found), head, "|---|---|---|---|", *rows])


def _details(found: list[ScriptChanges]) -> Iterator[str]:
    yield f"Scripts that differ: {len(found)}. The first step of each that differs, by what changed in it:"
    yield ""


def _versions(one: str, other: str) -> Iterator[str]:
    """The line about versions of requests."""
    newest, before = newest_versions(other), newest_versions(one)
    new = [f"{api_name(key)} {version}" for key, version in sorted(newest.items()) if before.get(key) != version]
    oldest, oldest_before = oldest_versions(other), oldest_versions(one)
    gone = [
        f"{api_name(key)} up to {version - 1}"
        for key, version in sorted(oldest.items())
        if oldest_before.get(key, 0) != version
    ]
    if new:
        yield f"Newest versions: {', '.join(new)}."
    if gone:
        yield f"No more: {', '.join(gone)} (KIP-896)."
    if new or gone:
        yield ""


def _rows(found: Iterable[ScriptChanges]) -> Iterator[str]:
    """A row for each thing that changed first in a script."""
    scripts: dict[tuple[str, str, str, str], list[str]] = {}
    for each in found:
        for key in dict.fromkeys(_key(one) for one in each.first if not one.path.startswith(OF_VERSIONS)):
            scripts.setdefault(key, []).append(each.script)
    for (api, path, before, after), names in sorted(scripts.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"| {api} `{path or 'answer'}` | {before} | {after} | {shown}{more} |"


def _key(one: Change) -> tuple[str, str, str, str]:
    return one.api, one.path, _shown(one.path, one.before), _shown(one.path, one.after)


def _shown(path: str, value: Any) -> str:
    if path.endswith("errorCode") and isinstance(value, int):
        return f"{value} {ErrorCode(value).name}" if value in set(ErrorCode) else str(value)
    if isinstance(value, dict):
        return "an answer"
    text = value if isinstance(value, str) and value.startswith("(") else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return text.replace("|", "\\|")
