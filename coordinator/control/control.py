"""All of the control put together around one node. The HTTP routes and the Python kit are two faces of it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.evidence import Evidence
from rejoin.coordinator.control.fault_injector import Gate
from rejoin.coordinator.control.faults import Fault, FaultRule, Faults
from rejoin.coordinator.control.timing import Timing
from rejoin.coordinator.control.waiting import Waiting
from rejoin.coordinator.control.world import World
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.http.control import Routes
from rejoin.coordinator.service.http.problems import Problem
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.service.runtime import Runtime, Ticket
from rejoin.coordinator.storage.base import OffsetsLog
from rejoin.protocol.message import Request
from rejoin.transcript.recording import RecordedNode, Recorder


class Control:
    """Made before the runtime, whose node and clock it provides; complete once it is attached to it."""

    waiting: Waiting
    timing: Timing
    world: World
    gate: Gate
    evidence: Evidence
    routes: Routes

    def __init__(self, settings: Settings, clock: VirtualClock, *, topics_logged: bool = False) -> None:
        self._settings = settings
        self._topics_logged = topics_logged
        self.clock = clock
        self.recorder = Recorder()
        self.faults = Faults()
        self._ids = 0
        self.node = self._new_node()

    def attach(
        self,
        runtime: Runtime,
        publisher: Publisher,
        log: OffsetsLog,
        furnish: Callable[[], Awaitable[None]],
        token: str | None,
    ) -> None:
        """Stand around a runtime. ``furnish`` makes the topics that are there from the start."""
        self._runtime = runtime
        self.gate = Gate(runtime, self.clock, self.faults, self.recorder)
        self.timing = Timing(self.clock, runtime, self.gate, self.recorder)
        self.waiting = Waiting(runtime, publisher.feed)
        self.world = World(runtime, self.clock, log, self.gate, self.faults, self.recorder, self._new_node, furnish)
        self.evidence = Evidence(self._settings, runtime, self.recorder)
        self.routes = Routes(self, token)

    def begin(self) -> None:
        """The node leads its partitions: what happens from here on is evidence."""
        self.recorder.begin(self.clock.now())

    def submit(self, request: Request, who: Context) -> Ticket:
        """Ask, past the rules."""
        return self.gate.submit(request, who)

    async def serve(self, request: web.BaseRequest, path: str, body: bytes) -> web.StreamResponse:
        """Answer a request to the control API."""
        return await self.routes.serve(request, path, body)

    def stop(self) -> None:
        """Let go of everything that is held, and ring nothing any more."""
        self.gate.stop()
        self.faults.clear()

    def add_fault(self, rule: FaultRule) -> Fault:
        """Make a rule."""
        return self.faults.add(rule)

    def fault(self, fault_id: str) -> Fault:
        """A rule by its id."""
        found = self.faults.find(fault_id)
        if found is None:
            there = ", ".join(each.id for each in self.faults.all()) or "none"
            raise Problem(404, "unknown-fault", f"there is no fault {fault_id[:64]!r}; there are: {there}")
        return found

    async def wait_for_fault(self, fault: Fault, hits: int, timeout_ms: int) -> None:
        """Return when a rule has struck so often. Raises :class:`Problem` when it has not in time."""
        if not await fault.wait(hits, timeout_ms):
            detail = f"fault {fault.id} struck {fault.hits} times within {timeout_ms} ms, expected {hits}"
            raise Problem(409, "not-reached", detail, more={"fault": fault.shown()})

    def status(self) -> dict[str, Any]:
        """Where everything stands."""
        return {**self.timing.shown(), "mark": self.recorder.mark, "faults": len(self.faults.all())}

    def _new_node(self) -> RecordedNode:
        return RecordedNode(self._settings, self._new_id, self.recorder, topics_logged=self._topics_logged)

    def _new_id(self) -> str:
        """UUIDs in the order in which they are made, the same in every run, so that a test can be repeated."""
        if self._topics_logged:
            # What is kept over restarts must not meet its own ids again.
            return str(uuid.uuid4())
        self._ids += 1
        return str(uuid.UUID(int=(self._ids << 80) | (4 << 76) | (2 << 62) | self._ids))
