"""The part of docs/releases.md that is made from the recordings by release: what changed, from each to the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from conformance.releases.changes import Change, changes
from conformance.releases.notes import NOTES
from conformance.releases.recordings import NOT_PLAYED
from rejoin.conform.player.messages import api_name
from rejoin.conform.recordings.by_release import RELEASES, branch_of, read_release
from rejoin.protocol.brokers.releases import newest_versions, oldest_versions
from rejoin.protocol.errors import ErrorCode

PAGE: Final = Path(__file__).parents[2] / "docs" / "releases.md"
BEGIN: Final = "<!-- written by make releases -->\n"
END: Final = "<!-- end of what make releases writes -->\n"
LONGEST: Final = 40
"""Characters of a value in a table."""
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
    rows = ["| release | scripts played | differ from 4.4 | not applicable | not played |", "|---|---|---|---|---|"]
    for release in RELEASES[:-1]:
        found = read_release(release)
        not_played = len(found.not_applicable.get(NOT_PLAYED, ()))
        left_out = sum(map(len, found.not_applicable.values())) - not_played
        rows.append(f"| {release} | {found.played} | {len(found.scripts)} | {left_out} | {not_played} |")
    return "\n".join(rows)


def _section(older: str, newer: str) -> str:
    one, other = branch_of(older), branch_of(newer)
    found = [
        each for each in changes(read_release(older), read_release(newer)) if not each.path.startswith(OF_VERSIONS)
    ]
    lines = [f"### From {one} to {other}", "", *_versions(one, other)]
    if notes := NOTES.get((one, other)):
        lines += [*(f"- {note}" for note in notes), ""]
    if not found:
        return "\n".join([*lines, "No field changed in a script that both were asked."])
    head = f"| request and field | {one} | {other} | steps | scripts |"
    by_script = ["", "<details><summary>By script</summary>", "", *_by_script(found), "", "</details>"]
    return "\n".join([*lines, head, "|---|---|---|---|---|", *_rows(found), *by_script])


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
        yield f"No more: {', '.join(gone)}{' (KIP-896)' if other == '4.0' else ''}."
    if new or gone:
        yield ""


def _rows(found: list[Change]) -> Iterator[str]:
    """A row for each field, with its values in the first step that has them."""
    by_field: dict[tuple[str, str, object], list[Change]] = {}
    for one in found:
        kind = (one.before, one.after) if one.path.endswith("errorCode") else None
        by_field.setdefault((one.api, one.path, kind), []).append(one)
    for some in sorted(by_field.values(), key=lambda some: (some[0].api, some[0].path, -len(some))):
        one = some[0]
        names = list(dict.fromkeys(each.script for each in some))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        values = f"{_shown(one.path, one.before)} | {_shown(one.path, one.after)}"
        yield f"| {one.api} `{one.path or 'answer'}` | {values} | {len(some)} | `{one.script}`{more} |"


def _by_script(found: list[Change]) -> Iterator[str]:
    """A line for scripts in which the same fields changed."""
    fields: dict[str, list[str]] = {}
    for one in found:
        name = f"{one.api} `{one.path or 'answer'}`"
        if name not in fields.setdefault(one.script, []):
            fields[one.script].append(name)
    scripts: dict[tuple[str, ...], list[str]] = {}
    for script, names in fields.items():
        scripts.setdefault(tuple(sorted(names)), []).append(script)
    for changed, alike in scripts.items():
        yield f"- {', '.join(f'`{script}`' for script in alike)}: {', '.join(changed)}"


def _shown(path: str, value: Any) -> str:
    if path.endswith("errorCode") and isinstance(value, int):
        return f"{value} {ErrorCode(value).name}" if value in set(ErrorCode) else str(value)
    if isinstance(value, dict):
        return "an answer"
    text = value if isinstance(value, str) and value.startswith("(") else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return text.replace("|", "\\|")
