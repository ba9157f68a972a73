"""A line and what was taken off around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rejoin.pipeline.reading.peeling.stamps import Stamp

MOST_MORE: Final = 200
"""Further lines of one message that are kept."""


@dataclass(slots=True)
class Peeled:
    """A line without its wrappers.

    ``stamp`` is the innermost time that was taken off: it counts only where the line has none of its own. ``origin``
    names pod, container, host or file, the outermost first. ``logger``, ``level`` and ``fields`` come from JSON, whose
    message is ``text``; ``more`` has the message's further lines. ``is_partial``: the next line of this origin goes on
    with the text. ``peelers`` names what was taken off, in that order.
    """

    text: str
    stamp: Stamp | None = None
    origin: tuple[str, ...] = ()
    logger: str | None = None
    level: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    is_partial: bool = False
    peelers: tuple[str, ...] = ()

    def inside(self, text: str, stamp: Stamp | None = None, origin: str | None = None) -> Peeled:
        """The line without a wrapper, with the wrapper's time and origin."""
        names = (*self.origin, origin) if origin and origin not in self.origin else self.origin
        return replace(self, text=text, stamp=stamp or self.stamp, origin=names)


Peeler = Callable[[Peeled], Peeled | None]
"""Takes one wrapper off; None where the line does not have it."""
