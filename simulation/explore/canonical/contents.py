"""Attributes of objects by class: fetched at once, in a fixed order, without those that make no difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias

from rejoin.simulation.explore.canonical.left_out import COUNTS, IGNORED, PAST
from rejoin.simulation.explore.kernel import BEGIN, END
from rejoin.simulation.kernel import Millis

Values: TypeAlias = tuple[Any, ...]
Get: TypeAlias = Callable[[Any], Values]
Contents: TypeAlias = Callable[[Any, Millis, Millis], tuple[str, Values]]
"""Of an object: its class with the names of what is set on it, and the values in the order of the names."""

_PYDANTICS: Final = "__pydantic_"
"""Begins slots of a model that hold no field."""


def contents_of(kind: type) -> Contents:
    """The rule for what is set on objects of a class."""
    bases = [base.__name__ for base in kind.__mro__]
    left_out = frozenset(attribute for owner, attribute in IGNORED if owner in bases)
    slots = [
        slot
        for base in reversed(kind.__mro__)
        for slot, descriptor in vars(base).items()
        if type(descriptor).__name__ == "member_descriptor" and slot not in left_out and not slot.startswith(_PYDANTICS)
    ]
    of_slots = _of_slots(kind.__name__, slots)
    if not any("__dict__" in vars(base) for base in kind.__mro__):
        return of_slots
    return _of_dict(kind.__name__, left_out, of_slots if slots else None)


def _of_slots(name: str, slots: list[str]) -> Contents:
    head, get, clamp = _head(name, slots), _getter(attrgetter, slots), _clamp(name, slots)

    def contents(value: Any, now: Millis, metadata_age: Millis) -> tuple[str, Values]:
        try:
            values = get(value)
        except AttributeError:  # some were never set
            there = [slot for slot in slots if hasattr(value, slot)]
            return _of_slots(name, there)(value, now, metadata_age)
        return head, values if clamp is None else clamp(values, now, metadata_age)

    return contents


def _of_dict(name: str, left_out: frozenset[str], of_slots: Contents | None) -> Contents:
    known: dict[tuple[str, ...], tuple[str, Get, Callable[[Values, Millis, Millis], Values] | None]] = {}
    """By the names that are set, in the order in which they were set."""

    def contents(value: Any, now: Millis, metadata_age: Millis) -> tuple[str, Values]:
        attributes = value.__dict__
        names = tuple(attributes)
        found = known.get(names)
        if found is None:
            written = sorted(each for each in names if each not in left_out)
            found = known[names] = (_head(name, written), _getter(itemgetter, written), _clamp(name, written))
        head, get, clamp = found
        values = get(attributes)
        if clamp is not None:
            values = clamp(values, now, metadata_age)
        if of_slots is not None:
            others, more = of_slots(value, now, metadata_age)
            return f"{others} {head}", more + values
        return head, values

    return contents


def _head(name: str, attributes: Iterable[str]) -> str:
    """A class and names, in few characters."""
    names = blake2b(" ".join(attributes).encode(), digest_size=6).hexdigest()
    return f"{name} {names}"


def _getter(kind: Callable[..., Callable[[Any], Any]], names: list[str]) -> Get:
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = kind(names[0])
        return lambda value: (only(value),)
    return kind(*names)


def _clamp(kind: str, names: list[str]) -> Callable[[Values, Millis, Millis], Values] | None:
    """A rule for instants of the past, and for counts: what is long enough ago, or enough, is written as just that."""
    known = ((at, PAST.get(f"{kind}.{name}", PAST.get(name))) for at, name in enumerate(names))
    longest = [(at, most) for at, most in known if most is not None]
    counts = [(at, COUNTS[f"{kind}.{name}"]) for at, name in enumerate(names) if f"{kind}.{name}" in COUNTS]
    if not longest and not counts:
        return None

    def clamped(values: Values, now: Millis, metadata_age: Millis) -> Values:
        changed = list(values)
        for at, most in longest:
            value = changed[at]
            if type(value) is int and BEGIN <= value < END:
                changed[at] = max(value, now - (metadata_age if most < 0 else most))
        for at, most in counts:
            changed[at] = min(changed[at], most)
        return tuple(changed)

    return clamped
