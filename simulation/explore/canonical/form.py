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
from random import Random
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.protocol.records.keyed import KeyedRecord, TransactionMarker, VersionedData
from rejoin.simulation.explore.canonical.left_out import IGNORED, PAST, SETTINGS
from rejoin.simulation.explore.kernel import BEGIN, FIRST_REQUEST
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange

Write: TypeAlias = Callable[[Any, "Writing"], None]

END: Final[Millis] = BEGIN + 10**10
FAR: Final[Millis] = 8 * 3_600_000
"""Deadlines later than this count as never."""

VALUES: Final = "rejoin.protocol."
"""Objects of these modules are values: which of two equal ones stands somewhere does not matter."""

_ID: Final = re.compile(r"00000000-0000-4000-8000-[0-9a-f]{12}|\b00000[0-9a-f]{7}\b")
"""An id that was made in this run, or a number of twelve digits: the name of a wait, or the end of a member id."""
_MARK: Final = "00000"
_MARK_IN_BYTES: Final = b"-4000-8000-"


class Writing:
    """A form that is being written."""

    __slots__ = ("ids", "kept", "known", "now", "numbers", "out")

    def __init__(self, now: Millis, known: dict[int, str]) -> None:
        self.now = now
        self.known: dict[int, Any] = dict(known)
        """Names or numbers of objects, by identity."""
        self.kept: list[Any] = []
        """Objects that were met: while they are kept no other has their identity."""
        self.out: list[Any] = []
        self.ids: list[int] = []
        """Where in the form a text has ids."""
        self.numbers: list[int] = []
        """Where in the form a request's number is."""

    def write(self, value: Any) -> None:
        """Write a value."""
        kind = type(value)
        rule = _RULES.get(kind)
        if rule is None:
            rule = _RULES[kind] = _rule_of(kind)
        rule(value, self)

    def tokens(self) -> list[Any]:
        """The whole form, with ranks in place of names."""
        out = self.out
        if self.ids:
            texts = [out[at] for at in self.ids]
            names = sorted({name for text in texts for name in _ID.findall(text)})
            rank = {name: f"#{number}" for number, name in enumerate(names)}
            for at, text in zip(self.ids, texts, strict=True):
                out[at] = _ID.sub(lambda found: rank[found[0]], text)
        if self.numbers:
            numbers = {number: rank for rank, number in enumerate(sorted({out[at] for at in self.numbers}))}
            for at in self.numbers:
                out[at] = ("number", numbers[out[at]])
        return out


class Inside(NamedTuple):
    """An object that a form names elsewhere, and describes here."""

    value: Any


def form_of(now: Millis, known: dict[int, str], parts: Iterable[Any]) -> list[Any]:
    """The canonical form of some parts as a list of plain values. ``known``: objects that are written by name."""
    writing = Writing(now, known)
    for part in parts:
        writing.write(part)
    return writing.tokens()


def digest_of(tokens: list[Any]) -> bytes:
    """The 128 bits of a form."""
    return blake2b(marshal.dumps(tokens, 2), digest_size=16).digest()


def _rule_of(kind: type) -> Write:
    if kind.__name__ in SETTINGS:
        return _settings
    for base, rule in _BY_BASE:
        if issubclass(kind, base):
            return rule
    dataclass = getattr(kind, "__dataclass_params__", None)
    if kind.__module__.startswith(VALUES) or (dataclass is not None and dataclass.frozen):
        return _contents_of(kind)
    return _once(_contents_of(kind))


def _plain(value: Any, writing: Writing) -> None:
    writing.out.append(value)


def _int(value: int, writing: Writing) -> None:
    if value >= BEGIN:
        if value < END:
            writing.out.append("now")
            value -= writing.now
            value = min(value, FAR)
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
    else:
        writing.out.append(value)


def _named(value: Any, writing: Writing) -> None:
    writing.out.append(f"{type(value).__name__} {value}")


def _sequence(value: Any, writing: Writing) -> None:
    writing.out.append(("(", len(value)))
    for each in value:
        writing.write(each)


def _set(value: Any, writing: Writing) -> None:
    writing.out.append(("{", len(value)))
    for each in sorted(value, key=_sort_key):
        writing.write(each)


def _sort_key(value: Any) -> str:
    return repr(value)


def _mapping(value: Mapping[Any, Any], writing: Writing) -> None:
    writing.out.append(("{:", len(value)))
    for key, each in value.items():
        writing.write(key)
        writing.write(each)


def _inside(value: Inside, writing: Writing) -> None:
    contents_of = _CONTENTS.get(type(value.value))
    if contents_of is None:
        contents_of = _CONTENTS[type(value.value)] = _contents_of(type(value.value))
    contents_of(value.value, writing)


def _exchange(value: Exchange, writing: Writing) -> None:
    """A request and its response. Where its connection is no more, nothing comes of it."""
    writing.out.append("Exchange")
    if value.serial == value.connection.serial:
        writing.write(value.connection)
        writing.write(value.request_id)
        writing.write(value.request)
        writing.out.append(value.version)
        writing.write(value.response)


def _met(value: Any, writing: Writing) -> bool:
    known = writing.known.get(id(value))
    if known is not None:
        writing.out.append(("met", known))
        return True
    writing.known[id(value)] = len(writing.known)
    writing.kept.append(value)
    return False


def _once(rule: Write) -> Write:
    def write(value: Any, writing: Writing) -> None:
        if not _met(value, writing):
            rule(value, writing)

    return write


def _filled_once(rule: Write) -> Write:
    """Containers by identity, but for empty ones: these may be a constant, whose copies are not one object."""

    def write(value: Any, writing: Writing) -> None:
        if not value or not _met(value, writing):
            rule(value, writing)

    return write


def _method(value: Any, writing: Writing) -> None:
    writing.out.append(value.__qualname__)
    owner = value.__self__
    if owner is not None and not isinstance(owner, (ModuleType, type)):
        writing.write(owner)


def _function(value: FunctionType, writing: Writing) -> None:
    writing.out.append(value.__qualname__)
    if value.__closure__ and not _met(value, writing):
        for cell in value.__closure__:
            writing.write(cell.cell_contents)


def _partial(value: partial[Any], writing: Writing) -> None:
    writing.write(value.func)
    writing.write(value.args)
    writing.write(value.keywords)


def _model(value: BaseModel, writing: Writing) -> None:
    name = type(value).__name__
    writing.out.append(name)
    for attribute, each in value.__dict__.items():
        if (name, attribute) not in IGNORED:
            writing.write(each)


def _settings(value: BaseModel, writing: Writing) -> None:
    """Settings of a process are many, and the same in most states: written as their hash."""
    known = _SETTINGS.get(id(value))
    if known is None:
        text = blake2b(repr(value).encode(), digest_size=16).hexdigest()
        known = _SETTINGS[id(value)] = (value, f"{type(value).__name__} {text}")
    writing.out.append(known[1])


def _deadlines(value: Deadlines, writing: Writing) -> None:
    writing.write(value.due())


def _record(value: Any, writing: Writing) -> None:
    writing.out.append(type(value).__name__)
    for name in value.__dataclass_fields__:
        writing.write(getattr(value, name))


def _contents_of(kind: type) -> Write:
    """The rule for what is set on an object."""
    name = kind.__name__
    bases = [base.__name__ for base in kind.__mro__]
    left_out = frozenset(attribute for owner, attribute in IGNORED if owner in bases)
    slots = [
        (slot, descriptor.__get__, PAST.get(slot))
        for base in reversed(kind.__mro__)
        for slot, descriptor in vars(base).items()
        if type(descriptor).__name__ == "member_descriptor" and slot not in left_out
    ]
    has_dict = any("__dict__" in vars(base) for base in kind.__mro__)

    def write(value: Any, writing: Writing) -> None:
        writing.out.append(name)
        for slot, get, longest in slots:
            try:
                attribute = get(value)
            except AttributeError:
                continue  # never set
            writing.out.append(slot)
            if longest is not None and type(attribute) is int and BEGIN <= attribute < END:
                attribute = max(attribute, writing.now - longest)
            writing.write(attribute)
        if has_dict:
            for attribute_name in sorted(value.__dict__):
                if attribute_name in left_out:
                    continue
                attribute = value.__dict__[attribute_name]
                writing.out.append(attribute_name)
                longest = PAST.get(attribute_name)
                if longest is not None and type(attribute) is int and BEGIN <= attribute < END:
                    attribute = max(attribute, writing.now - longest)
                writing.write(attribute)

    return write


_BY_BASE: Final[tuple[tuple[Any, Write], ...]] = (
    ((type(None), bool, float), _plain),
    ((Enum, re.Pattern, UUID, range), _named),
    ((type, ModuleType, Random), lambda value, writing: writing.out.append(getattr(value, "__name__", "random"))),
    ((BaseException,), _named),
    ((int,), _int),
    ((str,), _str),
    ((bytes,), _bytes),
    ((Inside,), _inside),
    ((tuple,), _sequence),
    ((frozenset,), _set),
    ((list, deque), _filled_once(_sequence)),
    ((set,), _filled_once(_set)),
    ((Mapping,), _filled_once(_mapping)),
    ((BaseModel,), _model),
    ((KeyedRecord, TransactionMarker, VersionedData), _record),
    ((MethodType, BuiltinFunctionType), _method),
    ((partial,), _partial),
    ((FunctionType,), _function),
    ((CellType,), lambda value, writing: writing.write(value.cell_contents)),
    ((Deadlines,), _once(_deadlines)),
    ((Exchange,), _once(_exchange)),
)
_RULES: Final[dict[type, Write]] = {}
_CONTENTS: Final[dict[type, Write]] = {}
_SETTINGS: Final[dict[int, tuple[BaseModel, str]]] = {}
"""By identity: settings, which stay in memory, and their hash."""
