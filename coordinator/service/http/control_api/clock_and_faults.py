"""The clock, and fault rules."""

from __future__ import annotations

from typing import Any, Final

from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.fault_injection.fault_actions import FaultActions
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.waiting import HitCount
from rejoin.coordinator.service.http.control_api.answers import (
    AdvanceAnswer,
    ClockAnswer,
    FaultAnswer,
    FaultsAnswer,
    ReleaseAnswer,
    RemovalAnswer,
)
from rejoin.coordinator.service.http.control_api.operation import ControlOperation, NoFields
from rejoin.coordinator.service.http.server import CONTROL


def _clear_faults(control: FaultActions, _: NoFields, __: str) -> dict[str, Any]:
    removed = [fault.shown() for fault in control.faults.all()]
    control.faults.clear()
    return {"removed": removed}


def _remove_fault(control: FaultActions, _: NoFields, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    control.faults.remove(found)
    return found.shown()


def _release(control: FaultActions, _: NoFields, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    let_go = found.release()
    return {**found.shown(), "let_go": let_go}


async def _wait_for_fault(control: FaultActions, wanted: HitCount, fault_id: str) -> dict[str, Any]:
    found = control.fault(fault_id)
    await control.wait_for_fault(found, wanted.hits, wanted.timeout_ms)
    return found.shown()


CLOCK_AND_FAULTS: Final = (
    ControlOperation(
        "GET",
        CONTROL + "/clock",
        "the current time, and the next timer",
        NoFields,
        ClockAnswer,
        lambda control, *_: control.clock_driver.shown(),
    ),
    ControlOperation(
        "POST",
        CONTROL + "/clock",
        "advance the clock; returns the timers that fired",
        Advance,
        AdvanceAnswer,
        lambda control, how, _: control.clock_driver.advance(how),
    ),
    ControlOperation(
        "GET",
        CONTROL + "/faults",
        "all rules, each with its hits",
        NoFields,
        FaultsAnswer,
        lambda control, *_: {"faults": [fault.shown() for fault in control.faults.all()]},
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults",
        "add a rule, after the existing ones",
        FaultRule,
        FaultAnswer,
        lambda control, rule, _: control.add_fault(rule).shown(),
    ),
    ControlOperation(
        "DELETE",
        CONTROL + "/faults",
        "remove all rules, and release the requests they hold",
        NoFields,
        RemovalAnswer,
        _clear_faults,
    ),
    ControlOperation(
        "GET",
        CONTROL + "/faults/{id}",
        "one rule with its hits",
        NoFields,
        FaultAnswer,
        lambda control, _, fault_id: control.fault(fault_id).shown(),
    ),
    ControlOperation(
        "DELETE",
        CONTROL + "/faults/{id}",
        "remove a rule, and release the requests it holds",
        NoFields,
        FaultAnswer,
        _remove_fault,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults/{id}/release",
        "release the requests that a rule with pause holds",
        NoFields,
        ReleaseAnswer,
        _release,
    ),
    ControlOperation(
        "POST",
        CONTROL + "/faults/{id}/wait",
        "wait until a rule has been applied",
        HitCount,
        FaultAnswer,
        _wait_for_fault,
    ),
)
