"""Copies of a simulation in any instant: all that can change is copied, and everything else is shared.

A simulation is objects that know each other, with bound methods, partial calls and closures among them, which
``copy.deepcopy`` shares. Here these are bound to the copies. Values that nothing changes (messages, records, events,
settings, code) are shared.

A snapshot is a pickle beside a list of the shared values: C code walks the objects, once to write it and once for each
copy. Python code with a function for each class took two to five times as long for a copy.
"""

from __future__ import annotations

import pickle
import re
import sys
from enum import Enum
from io import BytesIO
from random import Random
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, Generic, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel

from rejoin.protocol.records.keyed import KeyedRecord, TransactionMarker, VersionedData
from rejoin.simulation.explore.kernel import Steady
from rejoin.simulation.network import Latency

T = TypeVar("T")

SHARED: Final = (
    *(range, type, ModuleType, re.Pattern, UUID, MappingProxyType, CodeType, memoryview),
    *(Latency, Enum, BaseException, BaseModel, KeyedRecord, TransactionMarker, VersionedData),
)
"""Classes of values that nothing changes."""

VALUES: Final = "rejoin.protocol."
"""Nothing changes objects of these modules."""

_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})


class CannotBeCopied(TypeError):
    """A simulation holds an object of a class that there is no rule for."""


class RunSnapshot(Generic[T]):
    """An object with all that it knows, as it is now."""

    __slots__ = ("_pickle", "_shared")

    def __init__(self, root: T) -> None:
        file = BytesIO()
        pickler = _Pickler(file)
        try:
            pickler.dump(root)
        except (TypeError, pickle.PicklingError) as error:
            raise CannotBeCopied(f"there is no rule for a part of {type(root).__name__}: {error}") from error
        self._pickle = file.getvalue()
        self._shared = pickler.shared

    def restore(self) -> T:
        """A copy that shares nothing with its original that either of them could change."""
        return cast(T, _Unpickler(BytesIO(self._pickle), self._shared).load())

    def __len__(self) -> int:
        """How many bytes it takes beside the shared values."""
        return len(self._pickle) + sys.getsizeof(self._shared)


def copied(root: T) -> T:
    """A copy that shares nothing with its original that either of them could change."""
    return RunSnapshot(root).restore()


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        rule = _RULES.get(kind)
        if rule is None:
            rule = _RULES[kind] = _rule_of(kind)
        if rule is _default:
            return NotImplemented
        if rule is not _share and (made := rule(value)) is not None:
            return made
        shared = self.shared
        shared.append(value)
        return _shared_value, (len(shared) - 1,)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def find_class(self, module: str, name: str) -> Any:
        return self._shared.__getitem__ if name == "_shared_value" else super().find_class(module, name)


def _shared_value(number: int) -> Any:
    raise NotImplementedError("stands for the shared values of a snapshot")


def _rule_of(kind: type) -> Any:
    if (
        issubclass(kind, SHARED) or kind is Random or kind.__module__.startswith(VALUES)
    ):  # an explored run draws nothing
        return _share
    if issubclass(kind, Steady):
        return _steady
    if issubclass(kind, tuple):
        return _tuple
    if getattr(kind, "__dataclass_params__", None) is not None and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return _frozen
    return _BY_CLASS.get(kind, _default)


def _default(value: Any) -> Any:
    """As ``pickle`` has it."""
    return NotImplemented


def _share(value: Any) -> Any:
    return None


def _tuple(value: tuple[Any, ...]) -> Any:
    """A tuple of a class of its own, which is shared if it holds nothing that can change."""
    return None if all(map(_is_constant, value)) else NotImplemented


def _frozen(value: Any) -> Any:
    """A frozen dataclass, which is shared if it holds nothing that can change."""
    return None if all(_is_constant(getattr(value, name)) for name in value.__dataclass_fields__) else NotImplemented


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    rule = _RULES.get(kind)
    return rule is _share or (kind is tuple and all(map(_is_constant, value)))


def _steady(value: Steady) -> Any:
    return _new_steady, (), value.world, None, None, _set_world


def _new_steady() -> Steady:
    return Steady.__new__(Steady)


def _set_world(made: Steady, world: Any) -> None:
    made.world = world


def _method(value: MethodType) -> Any:
    return MethodType, (value.__func__, value.__self__)


def _builtin(value: Any) -> Any:
    owner = value.__self__
    return None if owner is None or isinstance(owner, (ModuleType, type)) else NotImplemented


def _function(value: FunctionType) -> Any:
    if value is _shared_value:
        return NotImplemented
    if not value.__closure__ and not value.__defaults__ and not value.__kwdefaults__:
        return None
    contents = tuple(cell.cell_contents for cell in value.__closure__ or ())
    names = (value.__module__, value.__name__, value.__qualname__)
    return _new_function, (value.__code__, names, value.__defaults__, value.__kwdefaults__, contents)


def _new_function(
    code: CodeType,
    names: tuple[str, str, str],
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
    contents: tuple[Any, ...],
) -> FunctionType:
    module, name, qualified = names
    cells = tuple(CellType(each) for each in contents)
    made = FunctionType(code, vars(sys.modules[module]), name, defaults, cells)
    made.__kwdefaults__ = keywords
    made.__qualname__ = qualified
    return made


_BY_CLASS: Final[dict[type, Any]] = {
    MethodType: _method,
    BuiltinFunctionType: _builtin,
    FunctionType: _function,
}
_RULES: Final[dict[type, Any]] = {}
