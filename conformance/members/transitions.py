"""A coordinator's log of a group, as lines to compare two groups by: its states, and members that came or went.

The texts are those of :mod:`rejoin.journal.kafka_logs.lines`, so a real broker's log and ours are read in the same way.
"""

from __future__ import annotations

import re
from typing import Final

from rejoin.journal.kafka_logs.lines import LINES

_NAMES: Final = {
    "preparing": "PreparingRebalance",
    "stabilized": "Stabilized",
    "assigned": "Stable",
    "emptied": "Empty",
    "dead": "Dead",
    "failed": "member failed",
    "left": "member left",
    "joined": "member joined",
    "replaced": "static member replaced",
    "no_rebalance": "no rebalance",
    "did_not_join": "members did not join",
    "nobody_joined": "no member joined",
    "modern_joined": "member joined",
    "modern_replaced": "static member replaced",
    "modern_away": "static member away",
    "modern_left": "member left",
    "modern_fenced": "member fenced",
    "modern_stuck": "member fenced in its epoch",
    "modern_bumped": "group",
    "modern_assigned": "target",
}
"""How a kind of line is written here."""

_SHOWN: Final = ("state", "generation", "members", "static_members", "epoch", "assignor", "why")
_PATTERNS: Final = [(each.kind, re.compile(each.pattern)) for each in LINES if each.kind in _NAMES]


def transitions(log: str, group: str) -> list[str]:
    """The transitions of a group, out of the log of its coordinators."""
    return [line for each in log.splitlines() if group in each and (line := _transition(each, group)) is not None]


def _transition(line: str, group: str) -> str | None:
    for kind, pattern in _PATTERNS:
        match = pattern.search(line)
        if match is None:
            continue
        found = match.groupdict()
        if found.get("group", group) != group and f"[Group {group}]" not in line and f"[GroupId {group}]" not in line:
            continue
        found["epoch"] = found.get("epoch") or found.get("plain_epoch")
        return " ".join([_NAMES[kind], *(f"{name}={found[name]}" for name in _SHOWN if found.get(name))])
    return None
