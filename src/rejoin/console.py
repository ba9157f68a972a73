"""A console of rich for the commands, on which names are harmless: see :mod:`rejoin.output`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rejoin.output import visible


class VisibleConsole(Console):
    """Moves the cursor and colours text as rich says, and never as a text says."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces that are written; those that are no control codes of rich's own are visible."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)
