"""How long the user's code takes for a record or a poll: a number, or a distribution to draw from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from rejoin.protocol.units import duration_ms

_CALL = re.compile(r"([a-z]+)\(([^()]*)\)")

_LEAST_SHAPE = 0.1
"""Below this a draw may be larger than any number."""

_LONGEST_MS = 1e9

_DRAWS: dict[str, tuple[int, Callable[[Random, list[float]], float]]] = {
    "exp": (1, lambda random, given: random.expovariate(1 / given[0]) if given[0] else 0.0),
    "uniform": (2, lambda random, given: random.uniform(given[0], given[1])),
    "normal": (2, lambda random, given: random.gauss(given[0], given[1])),
    "pareto": (2, lambda random, given: given[0] * random.paretovariate(given[1])),
}
EXAMPLES: Final = {
    "exp": "exp(5ms)",
    "uniform": "uniform(1ms,9ms)",
    "normal": "normal(5ms,1ms)",
    "pareto": "pareto(2ms,3)",
}
"""Each distribution as errors suggest it. A number without a unit counts in ms; scenarios refuse it."""


@dataclass(frozen=True, slots=True)
class ProcessingTime:
    """Milliseconds for each record, or for each poll that returned some."""

    draw: Callable[[Random], float]
    per_poll: bool
    text: str

    def of(self, records: int, random: Random) -> float:
        """How many milliseconds this many records of one poll take."""
        if self.per_poll:
            return max(0.0, self.draw(random))
        return sum(max(0.0, self.draw(random)) for _ in range(records))


def parse_processing_time(text: str) -> ProcessingTime:
    """``2ms`` or ``250us`` for each record, ``1s/poll`` for each poll; instead of a time ``exp(MEAN)``,
    ``uniform(LOW,HIGH)``, ``normal(MEAN,DEVIATION)`` or ``pareto(LEAST,SHAPE)``.

    Raises ValueError saying what was expected.
    """
    what, slash, unit = text.strip().partition("/")
    if slash and unit not in {"poll", "record"}:
        raise ValueError(f"{text!r}: expected /poll or /record after the time, not /{unit}")
    return ProcessingTime(_draw(text, what.strip()), unit == "poll", text)


def _draw(text: str, what: str) -> Callable[[Random], float]:
    number = _milliseconds(what)
    if number is not None:
        return lambda random: number
    called = _CALL.fullmatch(what)
    if called is None or called[1] not in _DRAWS:
        known = ", ".join(EXAMPLES.values())
        raise ValueError(f"{text!r}: expected a time such as 5ms or 1s/poll, or a distribution such as {known}")
    arguments, draw = _DRAWS[called[1]]
    example = EXAMPLES[called[1]]
    given = [_milliseconds(part.strip()) for part in called[2].split(",")]
    if len(given) != arguments or None in given:
        raise ValueError(f"{text!r}: expected {called[1]} as in {example}")
    numbers = [number for number in given if number is not None]
    if called[1] == "uniform" and numbers[0] > numbers[1]:
        raise ValueError(f"{text!r}: expected the shorter time before the longer one, as in {example}")
    if called[1] == "pareto" and numbers[1] < _LEAST_SHAPE:
        raise ValueError(f"{text!r}: expected a shape of {_LEAST_SHAPE} or more, as in {example}")
    return lambda random: draw(random, numbers)


def _milliseconds(text: str) -> float | None:
    try:
        millis = duration_ms(text, bare="ms")
    except ValueError:
        return None
    if millis > _LONGEST_MS:
        raise ValueError(f"{text[:40]}: expected at most {_LONGEST_MS:g} ms")
    return millis
