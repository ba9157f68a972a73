"""The calls of the kit's ``async`` methods: a forgotten ``await`` becomes an error."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

C = TypeVar("C")


class _Call(NamedTuple):
    """A coroutine that a method returned, and the line of the call."""

    coroutine: Coroutine[Any, Any, Any]
    method: str
    where: str

    @property
    def has_begun(self) -> bool:
        return inspect.getcoroutinestate(self.coroutine) != inspect.CORO_CREATED


class Calls:
    """The calls that nothing has awaited so far."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, coroutine: Coroutine[Any, Any, Any], method: str, where: str) -> None:
        """Remember a call until it is awaited."""
        self._calls = [call for call in self._calls if not call.has_begun]
        self._calls.append(_Call(coroutine, method, where))

    def take_forgotten(self) -> str | None:
        """The calls that were never awaited, in one sentence, or none. Each is reported once."""
        forgotten = [call for call in self._calls if not call.has_begun]
        self._calls = []
        for call in forgotten:
            call.coroutine.close()
        named = ", ".join(f"{call.method}() at {call.where}" for call in forgotten)
        return f"not awaited, so it had no effect: {named}; expected await before the call" if named else None


def watch_calls(cls: type[C]) -> type[C]:
    """Have each public ``async`` method of a class add its calls to ``self.calls``."""
    own = [each for base in reversed(cls.__mro__) for each in vars(base).items()]
    for name, method in own:
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(cls, name, _watched(method))
    return cls


def _watched(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        coroutine = method(self, *args, **kwargs)
        caller = sys._getframe(1)
        self.calls.add(coroutine, method.__name__, f"{caller.f_code.co_filename}:{caller.f_lineno}")
        return coroutine

    return call
