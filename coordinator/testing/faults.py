"""Faults of a test: rules are made from keyword arguments, each with a handle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar, Unpack, get_type_hints

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.fault_injection.fault_fields import FaultFields
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.fault_injection.faults import Fault
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, HitCount
from rejoin.coordinator.testing.calls import watch_calls
from rejoin.coordinator.testing.controlled import ControlledCoordinator
from rejoin.coordinator.testing.results import hides_traceback

F = TypeVar("F", bound=Callable[..., object])

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


class FaultState:
    """A rule that a test made: its name, and the requests that it met."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    @property
    def id(self) -> str:
        """Its name in the control API and in transcripts."""
        return self.fault.id

    @property
    def hits(self) -> int:
        """How many requests it was applied to."""
        return self.fault.hits

    @property
    def held(self) -> int:
        """How many requests wait at it now."""
        return self.fault.held

    def __repr__(self) -> str:
        return repr(self.fault)


@watch_calls
class FaultHandle(FaultState):
    """A fault rule of a test."""

    def __init__(self, coordinator: ControlledCoordinator, fault: Fault) -> None:
        super().__init__(fault)
        self.calls = coordinator.calls
        self.loop = coordinator.loop
        self._coordinator = coordinator

    async def wait(self, hits: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Return when it has so many hits. Raises NotReached."""

        async def wait(control: Control) -> None:
            wanted = HitCount(hits=hits, timeout_ms=timeout_ms)
            await control.wait_for_fault(self.fault, wanted.hits, wanted.timeout_ms)

        await self._coordinator.do(wait)

    async def release(self) -> int:
        """Open the barrier of a rule with ``pause``; returns how many requests that let go."""

        async def release(_: Control) -> int:
            return self.fault.release()

        return await self._coordinator.do(release)

    async def remove(self) -> None:
        """Remove the rule; what it holds goes on."""

        async def remove(control: Control) -> None:
            control.faults.remove(self.fault)

        await self._coordinator.do(remove)


def takes_fault_fields(method: F) -> F:
    """Show the fields of a rule where a method's parameters are listed, as by ``help``."""
    defaults = {name: info.default for name, info in FaultRule.model_fields.items()}
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind)
        for name, kind in get_type_hints(FaultFields).items()
    ]
    shown = inspect.signature(method)
    method.__signature__ = shown.replace(parameters=[shown.parameters["self"], *fields])  # type: ignore[attr-defined]
    return method


class FaultMethods(ControlledCoordinator):
    """The methods that make rules and remove them."""

    @takes_fault_fields
    async def add_fault(self, **fields: Unpack[FaultFields]) -> FaultHandle:
        """Make a rule, behind those that are there; the fields are those of the control API. Raises ValueError."""
        inspect.signature(FaultMethods.add_fault).bind(self, **fields)
        given = {name: value for name, value in fields.items() if value is not None}
        return await self._ask(lambda control: FaultHandle(self, control.add_fault(FaultRule.model_validate(given))))

    async def clear_faults(self) -> None:
        """Remove every rule."""
        await self._ask(lambda control: control.faults.clear())
