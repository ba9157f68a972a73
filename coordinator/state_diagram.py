"""The state diagram, drawn from the very table that the coordinator runs on."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.state import DEAD, EMPTY, WHY
from rejoin.output import print_text


def state_diagram() -> str:
    """The legal transitions of a group, with what causes each, as a Mermaid diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {EMPTY}"]
    lines += [f"    {before} --> {after}: {why}" for (before, after), why in WHY.items() if before is not DEAD]
    lines.append(f"    {DEAD} --> [*]")
    return "\n".join(lines)


if __name__ == "__main__":
    print_text(state_diagram())
