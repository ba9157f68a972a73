"""Records of what a fault did to a request, for evidence."""

from __future__ import annotations

from rejoin.coordinator.control.fault_injection.faults import Fault
from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.message import Request, Response
from rejoin.transcript.steps import Interception


def interception(
    fault: Fault, request: Request, context: Context, response: Response | None, *, of_some: bool
) -> Interception:
    """The record of a fault. ``response`` is the answer that it gives, none where it gives none of its own.

    With ``of_some`` it applies to some entries of the request only.
    """
    rule = fault.rule
    name = rule.error.name if rule.error is not None else ""
    cut = "" if rule.cut_after_bytes is None else f"cut after {rule.cut_after_bytes} bytes"
    wrong = "" if rule.wrong is None else rule.wrong.replace("_", " ")
    throttle = "" if rule.throttle_ms is None else f"throttled for {rule.throttle_ms} ms"
    some = "some entries" if of_some else ""
    text = ", ".join(filter(None, (rule.effective_when.replace("_", " "), some, name, cut, wrong, throttle)))
    return Interception(request, context, name, f"fault {fault.id}: {text}", response)
