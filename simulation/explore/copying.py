"""Copies of a simulation in any instant: all that can change is copied, and everything else is shared.

A simulation is objects that know each other, with bound methods, partial calls and closures among them, which
``copy.deepcopy`` shares. Here these are bound to the copies. Values that nothing changes (messages, records, events,
settings) are shared, and so is each tuple or frozen object in which nothing else was copied.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from random import Random
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from rejoin.protocol.records.keyed import KeyedRecord, TransactionMarker, VersionedData
from rejoin.simulation.explore.kernel import Steady

Memo: TypeAlias = dict[int, Any]
Copy: TypeAlias = Callable[[Any, Memo], Any]

SHARED: Final = (
    *(type(None), bool, int, float, str, bytes, range, type, ModuleType, re.Pattern, UUID, MappingProxyType),
    *(Enum, BaseException, BaseModel, KeyedRecord, TransactionMarker, VersionedData),
)
"""Classes of values that nothing changes."""


class CannotBeCopied(TypeError):
    """A simulation holds an object of a class that there is no rule for."""


def copied(root: Any) -> Any:
    """A copy that shares nothing with its original that either of them could change."""
    return _copy(root, {})


def _copy(value: Any, memo: Memo) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    known = memo.get(id(value), memo)
    if known is not memo:
        return known
    rule = _RULES.get(kind)
    if rule is None:
        rule = _rule_of(kind)
        if rule is _shared:
            _LEAVES.add(kind)
        else:
            _RULES[kind] = rule
    return rule(value, memo)


def _shared(value: Any, memo: Memo) -> Any:
    return value


def _rule_of(kind: type) -> Copy:
    if issubclass(kind, SHARED):
        return _shared
    if kind is Random:
        return _shared  # an explored run draws nothing
    if kind is Steady:
        return _steady
    if issubclass(kind, tuple):
        return _tuple
    for base, rule in _BY_BASE.items():
        if issubclass(kind, base):
            return rule if kind is base else _subclass(kind, base)
    if kind.__module__ in ("builtins", "_thread", "itertools", "weakref", "_weakref"):
        raise CannotBeCopied(f"there is no rule for {kind.__module__}.{kind.__qualname__}")
    return _object_of(kind)


def _steady(value: Steady, memo: Memo) -> Steady:
    made = memo[id(value)] = Steady.__new__(Steady)
    made.world = _copy(value.world, memo)
    return made


def _list(value: list[Any], memo: Memo) -> list[Any]:
    made: list[Any] = []
    memo[id(value)] = made
    made.extend([each if type(each) in _LEAVES else _copy(each, memo) for each in value])
    return made


def _dict(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    memo[id(value)] = made
    for key, each in value.items():
        if type(key) not in _LEAVES:
            key = _copy(key, memo)
        made[key] = each if type(each) in _LEAVES else _copy(each, memo)
    return made


def _set(value: set[Any], memo: Memo) -> set[Any]:
    made: set[Any] = set()
    memo[id(value)] = made
    made.update(_copy(each, memo) for each in value)
    return made


def _deque(value: deque[Any], memo: Memo) -> deque[Any]:
    made: deque[Any] = deque(maxlen=value.maxlen)
    memo[id(value)] = made
    made.extend([each if type(each) in _LEAVES else _copy(each, memo) for each in value])
    return made


def _frozenset(value: frozenset[Any], memo: Memo) -> frozenset[Any]:
    pairs = [(each, _copy(each, memo)) for each in value]
    return value if all(new is old for old, new in pairs) else frozenset(new for _, new in pairs)


def _tuple(value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    """A tuple, or one of a class of its own; the very same where nothing in it was copied."""
    for each in value:
        if type(each) not in _LEAVES:
            break
    else:
        return value
    made = [each if type(each) in _LEAVES else _copy(each, memo) for each in value]
    for old, new in zip(value, made, strict=True):
        if new is not old:
            known = memo.get(id(value))  # one that holds itself
            if known is not None:
                return known  # type: ignore[no-any-return]
            memo[id(value)] = result = tuple.__new__(type(value), made)
            return result
    return value


def _method(value: MethodType, memo: Memo) -> Any:
    owner = _copy(value.__self__, memo)
    return value if owner is value.__self__ else MethodType(value.__func__, owner)


def _builtin(value: Any, memo: Memo) -> Any:
    owner = value.__self__
    if owner is None or isinstance(owner, (ModuleType, type)):
        return value
    new = _copy(owner, memo)
    return value if new is owner else getattr(new, value.__name__)


def _partial(value: partial[Any], memo: Memo) -> Any:
    function, arguments, keywords = _copy(value.func, memo), _copy(value.args, memo), _copy(value.keywords, memo)
    if function is value.func and arguments is value.args and not keywords:
        return value
    memo[id(value)] = made = partial(function, *arguments, **keywords)
    return made


def _function(value: FunctionType, memo: Memo) -> Any:
    if not value.__closure__ and not value.__defaults__ and not value.__kwdefaults__:
        return value
    cells = tuple(CellType() for _ in value.__closure__ or ())
    made = FunctionType(value.__code__, value.__globals__, value.__name__, None, cells)
    memo[id(value)] = made
    for new, old in zip(cells, value.__closure__ or (), strict=True):
        new.cell_contents = _copy(old.cell_contents, memo)
    made.__defaults__ = _copy(value.__defaults__, memo)
    made.__kwdefaults__ = _copy(value.__kwdefaults__, memo)
    made.__qualname__ = value.__qualname__
    return made


def _subclass(kind: Any, base: Any) -> Copy:
    """A container of a class of its own: its contents, and what is set on it."""
    state = _state_of(kind)

    def copy(value: Any, memo: Memo) -> Any:
        made = kind.__new__(kind)
        memo[id(value)] = made
        if base is dict:
            for key, each in value.items():
                dict.__setitem__(made, _copy(key, memo), _copy(each, memo))
        elif base is set:
            set.update(made, [each if type(each) in _LEAVES else _copy(each, memo) for each in value])
        else:
            base.extend(made, [each if type(each) in _LEAVES else _copy(each, memo) for each in value])
        state(value, made, memo)
        return made

    return copy


def _object_of(kind: Any) -> Copy:
    state = _state_of(kind)

    def copy(value: Any, memo: Memo) -> Any:
        memo[id(value)] = made = kind.__new__(kind)
        state(value, made, memo)
        return made

    return copy


def _state_of(kind: type) -> Callable[[Any, Any, Memo], None]:
    slots = [
        descriptor
        for base in kind.__mro__
        for name, descriptor in vars(base).items()
        if name != "__dict__" and name != "__weakref__" and type(descriptor).__name__ == "member_descriptor"
    ]
    pairs = [(slot.__get__, slot.__set__) for slot in slots]
    has_dict = any("__dict__" in vars(base) for base in kind.__mro__)

    def state(value: Any, made: Any, memo: Memo) -> None:
        for get, put in pairs:
            try:
                attribute = get(value)
            except AttributeError:
                continue  # never set
            put(made, attribute if type(attribute) in _LEAVES else _copy(attribute, memo))
        if has_dict:
            attributes = made.__dict__
            for name, attribute in value.__dict__.items():
                attributes[name] = attribute if type(attribute) in _LEAVES else _copy(attribute, memo)

    return state


_BY_BASE: Final[dict[type, Copy]] = {
    list: _list,
    dict: _dict,
    set: _set,
    frozenset: _frozenset,
    deque: _deque,
    MethodType: _method,
    BuiltinFunctionType: _builtin,
    partial: _partial,
    FunctionType: _function,
}
_RULES: Final[dict[type, Copy]] = {}
_LEAVES: Final[set[type]] = set()
"""Classes that are known to be shared."""
