"""Names that a request repeats: Kafka answers most of them each time. Here each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def computed_once(keys: Iterable[K], compute: Callable[[K], V]) -> tuple[V, ...]:
    """A value for each key, in order. Equal keys have the same object, which encoders write once."""
    known: dict[K, V] = {}
    values = []
    for key in keys:
        value = known.get(key)
        if value is None:
            value = known[key] = compute(key)
        values.append(value)
    return tuple(values)
