"""Free clients in a world's file."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from rejoin.simulation.explore.free.letters import CLASSIC, CONSUMER, LETTERS
from rejoin.simulation.scenario.durations import Duration
from rejoin.simulation.scenario.fields import Part

_ALPHABETS: Final = {"classic": tuple(CLASSIC), "consumer": tuple(CONSUMER), "all": tuple(LETTERS)}


def _known(letter: str) -> str:
    if letter not in LETTERS and letter not in _ALPHABETS:
        names = (*_ALPHABETS, *LETTERS)
        near = get_close_matches(letter, names, n=1)
        hint = f"is it {near[0]!r}?" if near else f"there are {', '.join(map(repr, names))}"
        raise ValueError(f"{letter!r} is no letter; {hint}")
    return letter


class FreeSpec(Part):
    """Clients that send any of ``letters`` at any time. Requests arrive at once, on a connection each.

    Their session and rebalance timeouts are ``session_timeout`` and ``max_poll_interval`` of the group.
    """

    group: str
    clients: int = Field(default=2, ge=1, le=4)
    letters: tuple[Annotated[str, AfterValidator(_known)], ...] = ("classic",)
    """Names of letters, or of whole alphabets: ``classic``, ``consumer``, ``all``."""
    waits: tuple[Duration, ...] = ()
    """Times that may pass beside that to the next deadline; one that would pass a deadline is no choice."""

    versions: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """By API, the version in which its requests are sent; without an entry it is that of each letter.

    A request lacks what its version does not carry.
    """

    def alphabet(self) -> tuple[str, ...]:
        """The letters, each once."""
        return tuple(dict.fromkeys(each for name in self.letters for each in _ALPHABETS.get(name, (name,))))
