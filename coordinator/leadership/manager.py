"""Drives a node's leases: hands them what happens, carries their requests to the store, and tells the runtime."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import structlog

from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.leadership.base import FOREVER, Led, steady_ms
from rejoin.coordinator.leadership.leases import (
    Beat,
    Drain,
    GiveBack,
    Happening,
    Lead,
    Leases,
    Nudge,
    Request,
    Resign,
    Seen,
    StopLeading,
    Take,
    Tick,
    Unreachable,
    Usurped,
)
from rejoin.coordinator.leadership.postgres import LeaseStore
from rejoin.coordinator.leadership.view import NodeSeen, View
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.postgres.database import LOST, PostgresError
from rejoin.protocol.types import TopicPartition

_A_FEW: Final = 3
_START_MS: Final = 10_000
_PAUSE_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.05
_HANDED_OVER_SECONDS: Final = 2.0
_FAILURES: Final[tuple[type[BaseException], ...]] = (*LOST, PostgresError)


class LeaseHolder:
    """The leadership of one node among several.

    ``before_leading`` is awaited before a partition that was taken is led, so that what the node knows is no older than
    what the partition's last leader knew; it is tried again while it says false.
    """

    def __init__(
        self,
        store: LeaseStore,
        node_id: int,
        incarnation: str,
        partitions: Sequence[TopicPartition],
        lease_ms: int,
        before_leading: Callable[[], Awaitable[bool]],
    ) -> None:
        self.valid_until = FOREVER
        self.lease_ms: int | None = lease_ms
        self.counts: Counter[str] = Counter(taken=0, given=0, lapsed=0, store_unreachable=0, usurped=0)
        self._store = store
        self._leases = Leases(node_id, incarnation, partitions, lease_ms)
        self._before_leading = before_leading
        self._timeout_s = max(0.2, lease_ms / 3_000)
        self._led: Led | None = None
        self._broker = Broker(node_id, "", -1)
        self._to_lead: dict[TopicPartition, int] = {}
        self._leading: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._seen = asyncio.Event()
        self._left = asyncio.Event()
        self._usurper: NodeSeen | None = None
        self._usurped_until = 0.0
        self._unreachable = ""
        self._told: ClusterSeen | None = None
        self._stopped = False
        self._logger: Any = structlog.get_logger("coordinator").bind()

    # --- as a leadership

    async def start(self, led: Led, broker: Broker) -> None:
        self._broker = self._store.broker = broker
        try:
            await self._prepare()
            self._led = led
            self._step(Tick())
            await self._wait_for_registration()
        except BaseException:
            await self._end()
            raise

    async def _prepare(self) -> None:
        try:
            await self._store.prepare()
        except _FAILURES as problem:
            raise StoreProblem(f"the store cannot be used: {str(problem) or type(problem).__name__}") from problem

    async def _wait_for_registration(self) -> None:
        """Wait until this node is one of the cluster, or it is sure that another has its id."""
        first = ("", 0.0)
        give_up_at = steady_ms() + max(_START_MS, 3 * self._leases.lease_ms)
        while not self._seen.is_set():
            if self._unreachable and steady_ms() >= give_up_at:
                raise StoreProblem(f"the store does not let this node register: {self._unreachable}")
            other = self._usurper
            if other is not None:
                if first[0] != other.incarnation:
                    first = (other.incarnation, self._usurped_until)
                elif self._usurped_until > first[1] + self._leases.lease_ms / 10:
                    raise StoreProblem(
                        f"node {self._broker.node_id} is there already, at {other.host}:{other.port}, and alive: give "
                        "this one another number, with -c broker.id=NUMBER"
                    )
            try:
                async with asyncio.timeout(_PAUSE_SECONDS):
                    await self._seen.wait()
            except TimeoutError:
                continue

    async def stop(self, patience_s: float) -> None:
        if self._stopped or self._led is None:
            return
        others = len(self._leases.view.workers()) > 1
        self._step(Drain())
        try:
            async with asyncio.timeout(patience_s):
                await self._left.wait()
        except TimeoutError:
            self._logger.warning("leases_not_given_back", problem=self._unreachable or "the store does not answer")
        else:
            if others:
                await self._see_them_taken(min(patience_s, _HANDED_OVER_SECONDS))
        await self._end()

    async def _see_them_taken(self, patience_s: float) -> None:
        """Go on until others lead what was given back, so that whoever asks here is told where to go."""
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    view = await self._store.view()
                    self._tell(view)
                    if all(lease.is_live for lease in view.leases):
                        return
                    await asyncio.sleep(_LOOK_SECONDS)
        except _FAILURES:
            return

    async def _end(self) -> None:
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = [task for task in (self._asking, self._leading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._store.close()
        except _FAILURES:
            self._store.hang_up()

    def nudge(self) -> None:
        """Something may have changed in the store."""
        if self._led is not None:
            self._step(Nudge())

    def lapse(self) -> None:
        self._step(Tick())

    def elect(self, partition: TopicPartition) -> bool:
        return False

    def resign(self, partition: TopicPartition) -> bool:
        if partition not in self._leases.held:
            return False
        self._step(Resign(partition))
        return True

    def problem(self) -> str:
        if self._usurper is not None and self._is_former(self._usurper):
            left = max(0, round(self._usurped_until - steady_ms()))
            return f"waiting for node {self._broker.node_id}'s former lease, which has {left} ms left"
        if self._usurper is not None:
            return f"another process is node {self._broker.node_id}, at {self._usurper.host}:{self._usurper.port}"
        if self._unreachable:
            return f"the store cannot be reached: {self._unreachable}"
        if not self._leases.registered:
            return "not registered yet" if not self._leases.left else "leaving"
        return "" if not self._to_lead else "taking over"

    def view(self) -> View:
        return self._leases.seen(int(steady_ms()))

    # --- driving

    def _step(self, what: Happening) -> None:
        if self._stopped:
            return
        led = self._led
        assert led is not None, "it was started"
        leases = self._leases
        stop: list[StopLeading] = []
        for effect in leases.step(what, int(steady_ms())):
            match effect:
                case Beat() | Take() | GiveBack():
                    self._asking = asyncio.get_running_loop().create_task(self._ask(effect))
                case Lead():
                    self.counts["taken"] += 1
                    self._to_lead[effect.partition] = effect.epoch
                case StopLeading():
                    stop.append(effect)
                case Seen():
                    self._usurper = None
                    self._seen.set()
                case Usurped():
                    if self._usurper is None or self._usurper.incarnation != effect.by.incarnation:
                        self.counts["usurped"] += 1
                        self._tell_usurper(effect.by)
                    self._usurper = effect.by
                    self._usurped_until = steady_ms() + effect.by.ms_left
        valid_until = leases.valid_until()
        # Before anything is told: what is told comes back here through the runtime, which looks at the clock.
        self.valid_until = FOREVER if valid_until is None else float(valid_until)
        with self._quietly(led, len(stop)):
            for each in stop:
                self._stop_leading(each, led)
        if self._to_lead and self._leading is None:
            self._leading = asyncio.get_running_loop().create_task(self._lead(led))
        if leases.left:
            self._left.set()
        if leases.view.nodes:
            self._tell(leases.view, leases.seen_ms_ago(int(steady_ms())))
        self._set_alarm()

    def _tell_usurper(self, by: NodeSeen) -> None:
        if self._is_former(by):
            self._logger.info("waiting_for_former_lease", node_id=by.node_id, ms_left=by.ms_left)
        else:
            self._logger.warning("node_id_taken", by=f"{by.host}:{by.port}", ms_left=by.ms_left)

    def _is_former(self, by: NodeSeen) -> bool:
        """Whether it is the process that was this node before: nobody else can have had its address."""
        return not self._seen.is_set() and (by.host, by.port) == (self._broker.host, self._broker.port)

    def _stop_leading(self, effect: StopLeading, led: Led) -> None:
        self._to_lead.pop(effect.partition, None)
        self.counts["lapsed" if effect.lapsed else "given"] += 1
        if effect.partition in led.leading:
            led.give_lead(effect.partition)

    async def _lead(self, led: Led) -> None:
        """Lead what was taken, once this node knows what the last leader knew."""
        try:
            while self._to_lead:
                if not await self._before_leading():
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                self.lapse()
                to_lead, self._to_lead = self._to_lead, {}
                with self._quietly(led, len(to_lead)):
                    for partition, epoch in sorted(to_lead.items()):
                        led.take_lead(partition, epoch)
                if to_lead:
                    self._logger.info("leads", partitions=len(led.leading), taken=len(to_lead))
        finally:
            self._leading = None

    @staticmethod
    def _quietly(led: Led, partitions: int) -> AbstractContextManager[None]:
        """A line for each of a few partitions, but not for each of many."""
        return led.quietly() if partitions > _A_FEW else nullcontext()

    def _tell(self, view: View, passed_ms: int = 0) -> None:
        """Let the core know who is there and who leads what: others as the store showed, itself as it knows."""
        assert self._led is not None, "it was started"
        told = self._leases.known(self._broker, view, passed_ms)
        if told != self._told:
            self._told = told
            self._led.see(told.brokers, told.leaders)

    async def _ask(self, request: Request) -> None:
        what: Happening
        try:
            async with asyncio.timeout(self._timeout_s):
                what = await self._store.carry_out(request)
        except _FAILURES as problem:
            self._store.hang_up()
            self.counts["store_unreachable"] += 1
            if not self._unreachable:
                self._logger.warning("store_unreachable", problem=str(problem) or type(problem).__name__)
            self._unreachable = str(problem) or "no answer in time"
            what = Unreachable()
        except Exception as problem:
            # A bug. The leases must not hang on it: they are tried again, or run out.
            self._store.hang_up()
            self._logger.error("lease_request_failed", problem=repr(problem), exc_info=problem)
            self._unreachable = repr(problem)
            what = Unreachable()
        else:
            if self._unreachable:
                self._logger.info("store_reached_again")
            self._unreachable = ""
        self._asking = None
        self._step(what)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        now, leases = steady_ms(), self._leases
        at = [leases.next_deadline(), leases.next_run_out(int(now)) if not leases.left else None]
        deadline = min((each for each in at if each is not None), default=None)
        if deadline is not None and not self._stopped:
            delay = max(0.001, (deadline - now) / 1_000)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._step, Tick())
