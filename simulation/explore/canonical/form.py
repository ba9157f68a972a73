"""The canonical form of a state: 128 bits, equal for states that differ only in names and in the clock.

All that is reachable from a state's parts is written down in a fixed order: objects by class and attributes, objects
met before by number. In place of an instant stands its distance from now; in place of an id, a member id or a request's
number stands its rank among all that the state holds, so that what sorts them does the same in equal states.
"""

from __future__ import annotations

import marshal
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from hashlib import blake2b
from itertools import chain
from random import Random
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from rejoin.client.core.share.session import ShareSessionHandler
from rejoin.coordinator.core.groups.share.model.state_partitions import StatePartitions
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.coordinator.core.share.sessions import ShareSession
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.streams.state_directory import StateDirectory
from rejoin.simulation.explore.canonical import records, shares, streams
from rejoin.simulation.explore.canonical.contents import contents_of
from rejoin.simulation.explore.canonical.left_out import SETTINGS
from rejoin.simulation.explore.kernel import BEGIN, END, FIRST_PRODUCER, FIRST_REQUEST
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange

Write: TypeAlias = Callable[[Any, "Writing"], None]

FAR: Final[Millis] = 8 * 3_600_000
"""Deadlines later than this count as never, and no step goes there."""

LEAST_AGE: Final[Millis] = 1_000
"""Metadata that is asked for again before it is old, is at least so old."""

VALUES: Final = "rejoin.protocol."
"""Objects of these modules are values: which of two equal ones stands somewhere does not matter."""

_ID: Final = re.compile(r"00000000-0000-4000-8000-[0-9a-f]{12}|\b00000[0-9a-f]{7}\b")
"""An id that was made in this run, or a number of twelve digits: the name of a wait, or the end of a member id."""
_MARK: Final = "00000"
_MARK_IN_BYTES: Final = b"-4000-8000-"
_NOW: Final = "now"
"""Stands before a distance from now."""
_PAIR: Final = ("(", 2)
_MOST_KEPT: Final = 10_000
"""How many forms of values are kept."""


class Writing:
    """A form that is being written."""

    __slots__ = (
        "epochs",
        "ids",
        "kept",
        "member_id",
        "met",
        "metadata_age",
        "now",
        "numbers",
        "out",
        "producers",
        "rotation",
    )

    def __init__(self, now: Millis, known: Mapping[int, str], metadata_age: Millis, rotation: int) -> None:
        self.now = now
        self.metadata_age = metadata_age
        self.rotation = rotation
        self.member_id = ""
        """The member whose process is written."""
        self.epochs: list[int] = []
        """Where in the form an epoch of a share session is."""
        self.met: dict[int, tuple[str | int]] = {key: (name,) for key, name in known.items()}
        """By identity: what is written in place of an object that is named, or was met before."""
        self.kept: list[Any] = []
        """Objects that were made for the form: while they are kept no other has their identity."""
        self.out: list[Any] = []
        self.ids: list[int] = []
        """Where in the form a text has ids."""
        self.numbers: list[int] = []
        """Where in the form a request's number is."""
        self.producers: list[int] = []
        """Where in the form a producer id is."""

    def write(self, values: Iterable[Any]) -> None:
        """Write values, one after the other."""
        out, rules = self.out, _RULES
        append = out.append
        for value in values:
            kind = type(value)
            if kind is str:
                if _MARK in value:
                    self.ids.append(len(out))
                append(value)
            elif kind is int:
                if value < BEGIN:
                    append(value)
                else:
                    _large(value, self)
            elif value is None or kind is bool:
                append(value)
            else:
                rules[kind](value, self)

    def tokens(self, by_appearance: bool) -> list[Any]:
        """The whole form, with ranks in place of names. Requests' numbers rank by size, or as they appear."""
        out = self.out
        if self.ids:
            texts = [out[at] for at in self.ids]
            names = sorted({name for text in texts for name in _ID.findall(text)})
            rank = {name: f"#{number}" for number, name in enumerate(names)}
            for at, text in zip(self.ids, texts, strict=True):
                out[at] = _ID.sub(lambda found: rank[found[0]], text)
        if self.numbers:
            found = dict.fromkeys(out[at] for at in self.numbers)
            numbers = {number: rank for rank, number in enumerate(found if by_appearance else sorted(found))}
            for at in self.numbers:
                out[at] = ("number", numbers[out[at]])
        if self.producers:
            producers = {number: rank for rank, number in enumerate(sorted({out[at] for at in self.producers}))}
            for at in self.producers:
                out[at] = ("producer", producers[out[at]])
        shares.put_distances(out, self.epochs, self.rotation)
        return out


class _Kept(NamedTuple):
    """The form of a value, and where in it ids, numbers and producer ids are."""

    value: Any
    tokens: list[Any]
    ids: list[int]
    numbers: list[int]
    producers: list[int]


class Inside(NamedTuple):
    """An object that a form names elsewhere, and describes here."""

    value: Any


def form_of(
    now: Millis,
    known: Mapping[int, str],
    parts: Iterable[Any],
    *,
    by_appearance: bool = False,
    metadata_age: Millis = LEAST_AGE,
    rotation: int = 1,
) -> list[Any]:
    """The canonical form of some parts as a list of plain values. ``known``: objects that are written by name.

    ``metadata_age``: metadata that is as old as that, is as old as any. Numbers of requests are written by rank: by
    size, or ``by_appearance``, where clients may change places. Epochs of share sessions that differ by ``rotation``
    lead to the same.
    """
    writing = Writing(now, known, metadata_age, rotation)
    parts = list(parts)
    writing.write(parts)
    return writing.tokens(by_appearance)


def digest_of(tokens: list[Any]) -> bytes:
    """The 128 bits of a form."""
    return blake2b(marshal.dumps(tokens, 2), digest_size=16).digest()


class _Rules(dict[type, Write]):
    """By class: how an object is written."""

    def __missing__(self, kind: type) -> Write:
        made = self[kind] = _rule_of(kind)
        return made


class _Contents(dict[type, Write]):
    """By class: how what is set on an object is written."""

    def __missing__(self, kind: type) -> Write:
        made = self[kind] = _contents(kind)
        return made


def _rule_of(kind: type) -> Write:
    if kind.__name__ in SETTINGS:
        return _settings
    if kind.__name__ in records.VALUES:
        return records.VALUES[kind.__name__]
    if kind.__name__ in records.OBJECTS:
        return _once(records.OBJECTS[kind.__name__])
    for base, rule in _BY_BASE:
        if issubclass(kind, base):
            return rule
    dataclass = getattr(kind, "__dataclass_params__", None)
    if kind.__module__.startswith(VALUES) or issubclass(kind, BaseModel):
        return _value(kind)
    return _contents(kind) if dataclass is not None and dataclass.frozen else _object(kind)


def _contents(kind: type) -> Write:
    contents = contents_of(kind)

    def write(value: Any, writing: Writing) -> None:
        head, values = contents(value, writing.now, writing.metadata_age)
        writing.out.append(head)
        writing.write(values)

    return write


def _object(kind: type) -> Write:
    """An object by identity: described where it is met first."""
    contents = contents_of(kind)

    def write(value: Any, writing: Writing) -> None:
        met, key = writing.met, id(value)
        if key in met:
            writing.out.append(met[key])
        else:
            met[key] = (len(met),)
            head, values = contents(value, writing.now, writing.metadata_age)
            writing.out.append(head)
            writing.write(values)

    return write


def _value(kind: type) -> Write:
    """A value that all copies of a state share: its form is kept, unless it depends on now or on objects."""
    contents = contents_of(kind)

    def write(value: Any, writing: Writing) -> None:
        out, key = writing.out, id(value)
        start = len(out)
        kept = _KEPT.get(key)
        if kept is not None:
            out += kept.tokens
            writing.ids += [start + at for at in kept.ids]
            writing.numbers += [start + at for at in kept.numbers]
            writing.producers += [start + at for at in kept.producers]
            return
        ids, numbers, objects = len(writing.ids), len(writing.numbers), len(writing.met)
        producers = len(writing.producers)
        head, values = contents(value, writing.now, writing.metadata_age)
        out.append(head)
        writing.write(values)
        tokens = out[start:]
        if len(writing.met) == objects and _NOW not in tokens and not any(map(_is_met, tokens)):
            if len(_KEPT) >= _MOST_KEPT:
                _KEPT.clear()
            _KEPT[key] = _Kept(
                value,
                tokens,
                [at - start for at in writing.ids[ids:]],
                [at - start for at in writing.numbers[numbers:]],
                [at - start for at in writing.producers[producers:]],
            )

    return write


def _is_met(token: Any) -> bool:
    return type(token) is tuple and len(token) == 1


def _plain(value: Any, writing: Writing) -> None:
    writing.out.append(value)


def _large(value: int, writing: Writing) -> None:
    """An instant, as its distance from now, or a request's number."""
    if value >= BEGIN:
        if value < END:
            writing.out.append(_NOW)
            value = min(value - writing.now, FAR)
        elif value >= FIRST_PRODUCER:
            writing.producers.append(len(writing.out))
        elif value >= FIRST_REQUEST:
            writing.numbers.append(len(writing.out))
    writing.out.append(value)


def _str(value: str, writing: Writing) -> None:
    if _MARK in value:
        writing.ids.append(len(writing.out))
    writing.out.append(value)


def _bytes(value: bytes, writing: Writing) -> None:
    if _MARK_IN_BYTES in value:
        writing.ids.append(len(writing.out))
        writing.out.append(value.decode("latin-1"))
    elif not records.write_bytes(value, writing):
        writing.out.append(value)


def _named(value: Any, writing: Writing) -> None:
    writing.out.append(f"{type(value).__name__} {value}")


def _sequence(value: Any, writing: Writing) -> None:
    writing.out.append(("(", len(value)))
    writing.write(value)


def _partition(value: TopicPartition, writing: Writing) -> None:
    """As any tuple of two values, which it equals."""
    if _MARK in value[0]:
        _sequence(value, writing)
    else:
        writing.out += (_PAIR, *value)


def _set(value: Any, writing: Writing) -> None:
    writing.out.append(("{", len(value)))
    writing.write(_ordered(value))


def _inside(value: Inside, writing: Writing) -> None:
    _CONTENTS[type(value.value)](value.value, writing)


def _exchange(value: Exchange, writing: Writing) -> None:
    """A request and its response. Where its connection is no more, nothing comes of it."""
    writing.out.append("Exchange")
    if value.serial == value.connection.serial:
        writing.write((value.connection, value.request_id, value.request, value.version, value.response))


def _once(rule: Write) -> Write:
    """Objects by identity: written where they are met first."""

    def write(value: Any, writing: Writing) -> None:
        met, key = writing.met, id(value)
        if key in met:
            writing.out.append(met[key])
        else:
            met[key] = (len(met),)
            rule(value, writing)

    return write


def _filled_once(sign: str, items: Callable[[Any], Iterable[Any]] | None = None) -> Write:
    """Containers by identity, but for empty ones: these may be a constant, whose copies are not one object."""
    empty = (sign, 0)

    def write(value: Any, writing: Writing) -> None:
        out = writing.out
        if not value:
            out.append(empty)
            return
        met, key = writing.met, id(value)
        if key in met:
            out.append(met[key])
        else:
            met[key] = (len(met),)
            out.append((sign, len(value)))
            writing.write(value if items is None else items(value))

    return write


def _items(value: Mapping[Any, Any]) -> Iterable[Any]:
    return chain.from_iterable(value.items())


def _ordered(value: Iterable[Any]) -> Iterable[Any]:
    return sorted(value, key=repr)


def _method(value: Any, writing: Writing) -> None:
    writing.out.append(value.__qualname__)
    owner = value.__self__
    if owner is not None and not isinstance(owner, (ModuleType, type)):
        writing.write((owner,))


def _function(value: FunctionType, writing: Writing) -> None:
    writing.out.append(value.__qualname__)
    if value.__closure__:
        _CELLS(value, writing)


def _cells(value: FunctionType, writing: Writing) -> None:
    writing.write(cell.cell_contents for cell in value.__closure__ or ())


def _partial(value: partial[Any], writing: Writing) -> None:
    writing.write((value.func, value.args, value.keywords))


def _settings(value: BaseModel, writing: Writing) -> None:
    """Settings of a process are many, and the same in most states: written as their hash, but for the client's name."""
    known = _SETTINGS.get(id(value))
    if known is None:
        name = getattr(value, "client_id", None)
        alike = value if name is None else value.model_copy(update={"client_id": ""})
        text = blake2b(repr(alike).encode(), digest_size=16).hexdigest()
        known = _SETTINGS[id(value)] = (value, (f"{type(value).__name__} {text}", name))
    writing.out += known[1]


def _deadlines(value: Deadlines, writing: Writing) -> None:
    due = value.due()
    writing.kept.append(due)
    writing.write((due,))


_BY_BASE: Final[tuple[tuple[Any, Write], ...]] = (
    ((type(None), bool, float), _plain),
    ((Enum, re.Pattern, UUID, range), _named),
    ((type, ModuleType, Random), lambda value, writing: writing.out.append(getattr(value, "__name__", "random"))),
    ((BaseException,), _named),
    ((int,), _large),
    ((str,), _str),
    ((bytes,), _bytes),
    ((memoryview,), lambda value, writing: _bytes(bytes(value), writing)),
    ((Inside,), _inside),
    ((shares.MemberOf,), shares.write_member),
    ((TopicPartition,), _partition),
    ((tuple,), _sequence),
    ((frozenset,), _set),
    ((list, deque), _filled_once("(")),
    ((set,), _filled_once("{", _ordered)),
    ((Mapping,), _filled_once("{:", _items)),
    (shares.REQUESTS, shares.write_request),
    ((MethodType, BuiltinFunctionType), _method),
    ((partial,), _partial),
    ((FunctionType,), _function),
    ((CellType,), lambda value, writing: writing.write((value.cell_contents,))),
    ((Deadlines,), _once(_deadlines)),
    ((Exchange,), _once(_exchange)),
    ((ShareSessionHandler,), _once(shares.write_handler)),
    ((ShareSession,), _once(shares.write_session)),
    ((StatePartitions,), shares.write_partitions),
    ((StateDirectory,), _once(streams.write_directory)),
)
_KEPT: Final[dict[int, _Kept]] = {}
"""By identity: forms of values, which stay in memory with them."""
_CELLS: Final = _once(_cells)
_RULES: Final = _Rules()
_CONTENTS: Final = _Contents()
_SETTINGS: Final[dict[int, tuple[BaseModel, tuple[str, str | None]]]] = {}
"""By identity: settings, which stay in memory, their hash, and the client's name."""
