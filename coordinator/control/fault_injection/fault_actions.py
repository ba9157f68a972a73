"""Actions on fault rules: make one, find it, wait for its hits. A control of any kind of broker has them."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.coordinator.control.errors import ConditionNotReached, InvalidArgument, NotFound
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.fault_injection.faults import Fault, Faults


class FaultActions:
    """The rules of one control, which ``faults`` applies."""

    def __init__(self) -> None:
        self.faults = Faults()

    def node_ids(self) -> Sequence[int] | None:
        """The brokers that rules may name; none where they are not all known."""
        raise NotImplementedError

    def add_fault(self, rule: FaultRule) -> Fault:
        """Make a rule. Raises :class:`InvalidArgument` for a node that there is not."""
        there = self.node_ids() if rule.node else None
        for node in rule.node or ():
            if there is not None and node not in there:
                expected = f"expected a broker of this process: {', '.join(map(str, there))}"
                raise InvalidArgument("node", expected, node, f"node: {expected}; not {node}")
        return self.faults.add(rule)

    def fault(self, fault_id: str) -> Fault:
        """A rule by its id."""
        found = self.faults.find(fault_id)
        if found is None:
            there = ", ".join(each.id for each in self.faults.all()) or "none"
            raise NotFound("unknown-fault", f"there is no fault {fault_id[:64]!r}; there are: {there}")
        return found

    async def wait_for_fault(self, fault: Fault, hits: int, timeout_ms: int) -> None:
        """Return when a rule has so many hits. Raises :class:`ConditionNotReached` when it has not in time."""
        limit = fault.rule.limit
        if limit is not None and hits > limit:
            expected = f"expected up to {limit}, as the count of fault {fault.id} says"
            raise InvalidArgument("hits", expected, hits, f"hits: {expected}; not {hits}")
        if not await fault.wait(hits, timeout_ms):
            when = "and then removed" if fault.removed else f"within {timeout_ms} ms"
            detail = f"fault {fault.id} was applied {fault.hits} times {when}, expected {hits}"
            raise ConditionNotReached(detail, {"fault": fault.shown()})
