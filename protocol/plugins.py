"""Classes that users bring: declared by a package as an entry point, or named as ``module:Class``."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from rejoin.protocol.validation import closest

T = TypeVar("T")


class Plugins(Generic[T]):
    """The classes of one kind by their names: those that come with Kafka, and others that subclass ``base``.

    ``group`` is the group of entry points in which packages declare theirs, ``public_name`` where a user imports the
    base from, and ``unknown`` what is raised for a name that leads to no such class.
    """

    def __init__(
        self,
        kind: str,
        base: Any,
        public_name: str,
        group: str,
        built_in: dict[str, type[T]],
        unknown: type[ValueError],
    ) -> None:
        self._kind = kind
        self._base = base
        self._public_name = public_name
        self._group = group
        self._built_in = built_in
        self._unknown = unknown

    def make(self, name: str) -> T:
        """A new one: the name of a built-in one, or of an entry point, or ``module:Class``.

        Raises an error that says what is known, or why the class cannot be used.
        """
        if name in self._built_in:
            return self._built_in[name]()
        declared = self._declared()
        if name in declared:
            return self._made(declared[name], f"entry point {name}", expected_name=name)
        if ":" in name:
            return self._made(EntryPoint(name, name, self._group), name, expected_name=None)
        known = ", ".join(self.names())
        near = closest(name, self.names())
        hint = f"is it {near}? " if near else ""
        raise self._unknown(f"unknown {self._kind} {name!r}; {hint}known are {known}, and any class as module:Class")

    def names(self) -> list[str]:
        """The built-in ones in the order Kafka documents them, then the declared ones by name."""
        return [*self._built_in, *sorted(name for name in self._declared() if name not in self._built_in)]

    def _declared(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._group)}

    def _made(self, entry: EntryPoint, where: str, expected_name: str | None) -> T:
        importlib.invalidate_caches()
        what = where if where == entry.value else f"{where}: {entry.value}"
        try:
            found = entry.load()
        except (ImportError, AttributeError) as error:
            raise self._unknown(f"{what} cannot be loaded: {error}") from error
        if not (isinstance(found, type) and issubclass(found, self._base)):
            raise self._unknown(f"{what} is not a subclass of {self._public_name}")
        name = getattr(found, "name", None)
        if not isinstance(name, str):
            raise self._unknown(f"{what} has no name; give the class an attribute name = '...'")
        if expected_name is not None and name != expected_name:
            raise self._unknown(f"{what} calls itself {name!r}; the two names must be equal")
        try:
            return cast(T, found())
        except TypeError as error:
            raise self._unknown(f"{what} cannot be made: {error}") from error
