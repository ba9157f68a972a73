"""Rules at work, each with its hits and what it holds, in the order in which they were made; the first match acts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from rejoin.coordinator.control.fault_injection.fault_rules import Distribution, FaultRule
from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.protocol.message import Request
from rejoin.protocol.request_contents.entries import EntrySelection, SplitRequest
from rejoin.protocol.request_contents.traits import Named, traits_of


def _plain(value: Any) -> Any:
    """A list of one as what is in it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


class Fault:
    """A rule at work. ``hits`` counts the requests it was applied to; ``held`` those that it holds now."""

    def __init__(self, fault_id: str, rule: FaultRule) -> None:
        self.id = fault_id
        self.rule = rule
        self.hits = 0
        self.held = 0
        self.removed = False
        self.released = False
        self._barrier: list[asyncio.Future[None]] = []
        self._random = Random(rule.seed)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def is_spent(self) -> bool:
        """Whether the fault has ended: no further request matches."""
        return self.removed or (self.rule.limit is not None and self.hits >= self.rule.limit)

    def count_hit(self) -> None:
        """Count a request that matched, and wake the waits for that."""
        self.hits += 1
        for hits, future in self._waiting:
            if self.hits >= hits and not future.done():
                future.set_result(None)

    def latency_ms(self) -> Millis:
        """How long to hold the request that was counted last."""
        latency = self.rule.latency_ms
        if isinstance(latency, Distribution):
            latency = latency.draw(self._random, self.hits - 1)
        return round(latency or 0.0)

    def __repr__(self) -> str:
        rule = self.rule.model_dump(mode="json", exclude_defaults=True)
        rule |= {"when": self.rule.effective_when} | ({"error": self.rule.error.name} if self.rule.error else {})
        fields = ", ".join(f"{name}={_plain(value)}" for name, value in rule.items())
        return f"<fault {self.id}: {fields}; applied {self.hits} times>"

    async def wait(self, hits: int, timeout_ms: int) -> bool:
        """Return when it has so many hits; false when it has not in this (real) time, or was removed."""
        future = asyncio.get_running_loop().create_future()
        entry = (hits, future)
        self._waiting.append(entry)
        try:
            if self.hits < hits and not self.removed:
                async with asyncio.timeout(timeout_ms / 1_000):
                    await future
        except TimeoutError:
            pass
        finally:
            self._waiting.remove(entry)
        return self.hits >= hits

    def at_barrier(self) -> asyncio.Future[None]:
        """The release that a held request waits for."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._barrier.append(future)
        return future

    def release(self) -> int:
        """Open the barrier for good, and let go of what waits there; returns how many that were."""
        self.released = True
        waiting = [future for future in self._barrier if not future.done()]
        self._barrier.clear()
        for future in waiting:
            future.set_result(None)
        return len(waiting)

    def remove(self) -> None:
        """Apply to nothing any more, and let go of what is held."""
        self.removed = True
        self.release()
        for _, future in self._waiting:
            if not future.done():
                future.set_result(None)

    def shown(self) -> dict[str, Any]:
        """The rule as it was given, and how it fares."""
        rule = self.rule.model_dump(mode="json", exclude_unset=True, exclude={"error"})
        if self.rule.error is not None:
            rule["error"] = self.rule.error.name
        rule["when"] = self.rule.effective_when
        return {
            "id": self.id,
            "rule": rule,
            "hits": self.hits,
            "held": self.held,
            "released": self.released,
            "spent": self.is_spent,
        }


class SomeEntries(NamedTuple):
    """Some of a request's entries: the selection, the request with only these, and the request without them."""

    selection: EntrySelection
    chosen: Request
    rest: Request


class Match(NamedTuple):
    """A fault that applies to a request: to all of it, or to some of its entries."""

    fault: Fault
    entries: SomeEntries | None


class Faults:
    """All rules, in the order in which they were made. Spent ones are kept until removed, for their ``hits``."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._active: list[Fault] = []
        self._made = 0

    @property
    def active(self) -> Sequence[Fault]:
        """The rules that still apply, in their order."""
        return self._active

    def add(self, rule: FaultRule) -> Fault:
        """Make a rule, behind all others."""
        self._made += 1
        fault = Fault(str(self._made), rule)
        self._faults[fault.id] = fault
        self._active.append(fault)
        return fault

    def find(self, fault_id: str) -> Fault | None:
        return self._faults.get(fault_id)

    def all(self) -> list[Fault]:
        return list(self._faults.values())

    def match(self, request: Request, context: Context, node_id: int, named: Named) -> Match | None:
        """The first rule that matches a request, with the hit counted; none for most requests.

        Rules that observe count each request that they match, whatever another rule does to it. ``named`` finds the
        name of a topic by its id.
        """
        if not self._active:
            return None
        traits = traits_of(request, context.api_version, named)
        found: Match | None = None
        for fault in tuple(self._active):
            observes = fault.rule.observes
            if (found is not None and not observes) or not fault.rule.matches(request, traits, context, node_id):
                continue
            selection = EntrySelection(request, context.api_version, fault.rule.wanted, named)
            split = selection.split() if selection.is_possible else SplitRequest(request, None)
            if split.chosen is None:
                continue
            fault.count_hit()
            if fault.is_spent:
                self._active.remove(fault)
            if not observes:
                found = Match(fault, None if split.rest is None else SomeEntries(selection, split.chosen, split.rest))
        return found

    def remove(self, fault: Fault) -> None:
        """Forget a rule; what it holds goes on."""
        fault.remove()
        self._faults.pop(fault.id, None)
        if fault in self._active:
            self._active.remove(fault)

    def clear(self) -> None:
        """Forget every rule."""
        for fault in self.all():
            self.remove(fault)
