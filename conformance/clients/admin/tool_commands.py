"""Runs of ``kafka-acls.sh`` and ``kafka-configs.sh`` in their order: each changes what the next ones show."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

CLASSES: Final = {"acls": "org.apache.kafka.tools.AclCommand", "configs": "org.apache.kafka.tools.ConfigCommand"}
"""Main classes by the first word of a line."""
_LINES: Final = Path(__file__).with_name("tool_commands.txt")


def runs() -> list[tuple[str, list[str]]]:
    """Tools with their arguments, without the address."""
    lines = [shlex.split(line) for line in _LINES.read_text(encoding="utf-8").splitlines()]
    return [(tool, given) for tool, *given in lines]
