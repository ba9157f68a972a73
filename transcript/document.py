"""A transcript as a file: blocks of commands with what must come out, and the numbers of their lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

RULE: Final = "----"
"""Stands between the commands of a block and what must come out."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the upper half of a block: a command, or a comment."""

    number: int
    text: str

    @property
    def is_command(self) -> bool:
        return not self.text.startswith("#")


@dataclass(slots=True)
class Block:
    """Commands, and what must come out; none where the block does not say."""

    lines: list[Line] = field(default_factory=list)
    expected: list[str] | None = None
    expected_from: int = 0
    """The number of the line behind the rule."""

    @property
    def commands(self) -> list[Line]:
        return [line for line in self.lines if line.is_command]


def read_blocks(text: str) -> list[Block]:
    """The blocks of a transcript. Empty lines separate them."""
    blocks: list[Block] = []
    block: Block | None = None
    for number, line in enumerate(map(str.rstrip, text.splitlines()), 1):
        if not line:
            block = None
            continue
        if block is None:
            block = Block()
            blocks.append(block)
        if block.expected is not None:
            block.expected.append(line)
        elif line == RULE:
            block.expected, block.expected_from = [], number + 1
        else:
            block.lines.append(Line(number, line))
    return blocks
