"""The state diagrams of groups, drawn from the tables that the coordinator runs on.

``python -m rejoin.coordinator.state_diagram > pages/laboratory/group_states.js`` writes them anew for the laboratory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

from rejoin.coordinator.core.groups.classic import state as classic
from rejoin.coordinator.core.groups.consumer.model import state as consumer
from rejoin.coordinator.core.groups.share.model import state as share
from rejoin.coordinator.core.groups.streams.model import state as streams
from rejoin.output import print_text

Moves: TypeAlias = Mapping[tuple[StrEnum, StrEnum], str]

TRANSITIONS: Final[Mapping[str, Moves]] = {
    "classic": cast("Moves", classic.WHY),
    "consumer": cast("Moves", consumer.WHY),
    "share": cast("Moves", share.WHY),
    "streams": cast("Moves", streams.WHY),
}
"""The legal transitions of each kind of group, with what causes them. The first one leaves the state of a new group."""
DEAD: Final = "Dead"


def state_diagram(kind: str) -> str:
    """The legal transitions of a kind of group, with what causes each, as a Mermaid diagram."""
    moves = TRANSITIONS[kind]
    first, _ = next(iter(moves))
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {before} --> {after}: {why}" for (before, after), why in moves.items() if before != DEAD]
    if any(after == DEAD for _, after in moves):
        lines.append(f"    {DEAD} --> [*]")
    return "\n".join(lines)


def drawn_moves(kind: str) -> list[tuple[str, str]]:
    """The moves that the laboratory draws: all but the end of the group."""
    return [(f"{before}", f"{after}") for before, after in TRANSITIONS[kind] if DEAD not in (before, after)]


def page_module() -> str:
    """The moves of every kind of group, with their states in the order of the ring, as a module of the laboratory."""
    lines = [
        "// The states of each kind of group and the moves between them. Written by rejoin.coordinator.state_diagram.",
        "",
        "export const GROUP_STATES = {",
    ]
    for kind in TRANSITIONS:
        moves = drawn_moves(kind)
        states = list(dict.fromkeys(state for move in moves for state in move))
        lines.append(f"  {kind}: {{")
        lines.append(f"    states: {json.dumps(_ring(states, moves))},")
        lines.append("    moves: [")
        lines += [f"      {json.dumps(move)}," for move in moves]
        lines += ["    ],", "  },"]
    return "\n".join([*lines, "};"])


def _ring(states: list[str], moves: list[tuple[str, str]]) -> Any:
    """The states in the order in which a group first passes them: Empty, then along the first move to a new one."""
    ring = states[:1]
    while len(ring) < len(states):
        ahead = [after for before, after in moves if before == ring[-1] and after not in ring]
        ring.append(ahead[0] if ahead else next(each for each in states if each not in ring))
    return ring


if __name__ == "__main__":
    print_text(page_module())
