"""A whole transcript against a fresh node: what came out of every block, and where that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import ndiff
from itertools import zip_longest

from rejoin.transcript.document import RULE, Block, Line, read_blocks
from rejoin.transcript.grammar.words import BadWord
from rejoin.transcript.interpreter import TranscriptPlayer


class TranscriptError(Exception):
    """A transcript that cannot be played on: which line, and why."""

    def __init__(self, line: Line, problem: str) -> None:
        super().__init__(f"line {line.number}: {line.text}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PlayedBlock:
    """A block and what came out of it."""

    block: Block
    got: list[str]

    @property
    def differs(self) -> bool:
        return self.block.expected is not None and self.block.expected != self.got


@dataclass(frozen=True, slots=True)
class PlayedTranscript:
    """A transcript with what came out of every block."""

    blocks: list[PlayedBlock]

    @property
    def text(self) -> str:
        """The transcript with what came out as what must come out."""
        texts = []
        for played in self.blocks:
            lines = [line.text for line in played.block.lines]
            texts.append("\n".join([*lines, RULE, *played.got] if played.block.commands else lines))
        return "\n\n".join(texts) + "\n"

    @property
    def differing(self) -> list[PlayedBlock]:
        """The blocks of which something else came out."""
        return [each for each in self.blocks if each.differs]


def play(text: str, new_player: Callable[[], TranscriptPlayer] = TranscriptPlayer) -> PlayedTranscript:
    """Play a transcript from its beginning. Raises :class:`TranscriptError` and :class:`NodeFailed`."""
    player = new_player()
    return PlayedTranscript([PlayedBlock(block, _played(player, block)) for block in read_blocks(text)])


def _played(player: TranscriptPlayer, block: Block) -> list[str]:
    player.lines = []
    for line in block.commands:
        try:
            player.run(line.text)
        except BadWord as problem:
            raise TranscriptError(line, str(problem)) from None
    return player.lines


def differences(played: PlayedTranscript) -> Iterator[str]:
    """The blocks that differ, with the first line that does: ``-`` was expected, ``+`` came out."""
    for each in played.differing:
        commands = each.block.commands
        expected = each.block.expected or []
        pairs = zip_longest(expected, each.got)
        same = next(count for count, (ours, theirs) in enumerate(pairs) if ours != theirs)
        yield f"line {each.block.expected_from + same}, after `{commands[-1].text if commands else ''}`:"
        for line in ndiff(expected, each.got):
            if not line.startswith("?"):
                yield f"  {line}".rstrip()
