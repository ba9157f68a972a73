"""Results and exceptions of the kit's methods."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

from rejoin.coordinator.control import errors


class OperationRefused(Exception):
    """The coordinator cannot do that, and says why."""


class NotReached(AssertionError):
    """The awaited state was not reached in time; the text says how it was at the end."""


class NoAnswer(Exception):
    """A request got no answer, since a fault lost it or the coordinator stopped."""


MISTAKES: Final = (ValueError, OperationRefused, NotReached, NoAnswer)
"""Errors of a test, not of the kit."""


def hides_traceback(excinfo: Any) -> bool:
    """For pytest: whether to leave out the kit's frames, because the error is that of a test."""
    return isinstance(excinfo.value, MISTAKES)


class FiredTimer(NamedTuple):
    """A timer that fired: ``session``, ``join``, ``sync``, ``append``, ``expiry`` or the ``latency`` of a fault."""

    timer: str
    after_ms: int
    group: str | None = None
    member: str | None = None
    fault: str | None = None


class EmittedEvent(NamedTuple):
    """An event that was emitted while time passed, and its sentence."""

    after_ms: int
    event: str
    text: str


class ClockAdvance(NamedTuple):
    """How far the clock moved, and what happened meanwhile. ``reached`` is false if it stopped before the goal."""

    now_ms: int
    advanced_ms: int
    reached: bool
    fired: list[FiredTimer]
    events: list[EmittedEvent]

    @classmethod
    def read(cls, answer: dict[str, Any]) -> Self:
        """From the control's own answer."""
        fired = [
            FiredTimer(each["timer"], each["after_ms"], each.get("group"), each.get("member"), each.get("fault"))
            for each in answer["fired"]
        ]
        events = [EmittedEvent(each["after_ms"], each["event"], each["text"]) for each in answer["events"]]
        return cls(answer["now_ms"], answer["advanced_ms"], answer["reached"], fired, events)


def raised(error: errors.ControlError) -> Exception:
    """An error of the control as what the kit raises."""
    return NotReached(error.detail) if isinstance(error, errors.ConditionNotReached) else OperationRefused(error.detail)
