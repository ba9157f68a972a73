"""Errors of the control: refused requests, and goals not reached. ``service.http.control`` maps them to HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any


class ControlError(Exception):
    """Something that cannot be done. ``kind`` is stable, for programs; ``more`` is what else there is to know."""

    def __init__(self, kind: str, detail: str, more: dict[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.more = more or {}


class NotFound(ControlError):
    """Nothing has this name."""


class NotPossible(ControlError):
    """It cannot be done in the state that things are in."""


class ConditionNotReached(ControlError):
    """The awaited state was not reached in time."""

    def __init__(self, detail: str, more: dict[str, Any]) -> None:
        super().__init__("not-reached", detail, more)


class InvalidArgument(ControlError):
    """An argument that makes no sense: which, what was expected, and what was given."""

    def __init__(self, name: str, expected: str, given: object, detail: str) -> None:
        super().__init__("invalid-parameter", detail)
        self.name = name
        self.expected = expected
        self.given = given


class StepsNotKept(InvalidArgument):
    """Steps were asked for that the recording has dropped."""

    def __init__(self, expected: str, given: int, detail: str) -> None:
        super().__init__("since", expected, given, detail)
        self.kind = "steps-gone"


class RequestFailed(ControlError):
    """The core broke over a request."""

    def __init__(self, detail: str) -> None:
        super().__init__("internal-error", detail)


def unknown(what: str, name: str, known: Sequence[str]) -> NotFound:
    """Nothing has this name; the nearest one that something has."""
    near = get_close_matches(name, known, n=1)
    others = f"there are {', '.join(known[:10])}" if known else f"there are no {what}s"
    hint = f"is it {near[0]!r}?" if near else others
    return NotFound(f"unknown-{what}", f"there is no {what} {name[:249]!r}; {hint}")
