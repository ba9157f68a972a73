"""Drives a node's leases: hands them inputs, sends their requests to the store, and updates the runtime."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import structlog

from rejoin.coordinator.core.inputs import Broker, ClusterSeen
from rejoin.coordinator.leadership.base import FOREVER, PartitionHost, steady_ms
from rejoin.coordinator.leadership.lease_store import LeaseStore
from rejoin.coordinator.leadership.leases import (
    Acquire,
    Drain,
    Lead,
    LeaseInput,
    Leases,
    NodeIdConflict,
    Release,
    Renew,
    Request,
    Resign,
    StopLeading,
    StoreChanged,
    Tick,
    Unreachable,
    ViewChange,
)
from rejoin.coordinator.leadership.view import LeadershipView, NodeInfo
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.postgres.database import LOST, PostgresError
from rejoin.protocol.types import TopicPartition

_A_FEW: Final = 3
_START_MS: Final = 10_000
_PAUSE_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.05
_HANDOVER_SECONDS: Final = 2.0
_FAILURES: Final[tuple[type[BaseException], ...]] = (*LOST, PostgresError)


class LeaseDriver:
    """The leadership of one node among several.

    ``before_leading`` is awaited before the node leads an acquired partition, so that its knowledge is at least as new
    as that of the partition's last leader. It is called again while it returns false.
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
        self.counts: Counter[str] = Counter(acquired=0, released=0, expired=0, store_unreachable=0, node_id_conflicts=0)
        self._store = store
        self._leases = Leases(node_id, incarnation, partitions, lease_ms)
        self._before_leading = before_leading
        self._timeout_s = max(0.2, lease_ms / 3_000)
        self._host: PartitionHost | None = None
        self._broker = Broker(node_id, "", -1)
        self._to_lead: dict[TopicPartition, int] = {}
        self._leading: asyncio.Task[None] | None = None
        self._requesting: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._seen = asyncio.Event()
        self._left = asyncio.Event()
        self._conflict: NodeInfo | None = None
        self._conflict_until = 0.0
        self._unreachable = ""
        self._published: ClusterSeen | None = None
        self._stopped = False
        self._logger: Any = structlog.get_logger("coordinator").bind()

    # --- as a leadership

    async def start(self, host: PartitionHost, broker: Broker) -> None:
        self._broker = self._store.broker = broker
        try:
            await self._prepare()
            self._host = host
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
        """Wait until this node has registered, or is sure that another live process has its id."""
        first = ("", 0.0)
        give_up_at = steady_ms() + max(_START_MS, 3 * self._leases.lease_ms)
        while not self._seen.is_set():
            if self._unreachable and steady_ms() >= give_up_at:
                raise StoreProblem(f"this node cannot register in the store: {self._unreachable}")
            other = self._conflict
            if other is not None:
                if first[0] != other.incarnation:
                    first = (other.incarnation, self._conflict_until)
                elif self._conflict_until > first[1] + self._leases.lease_ms / 10:
                    raise StoreProblem(
                        f"node {self._broker.node_id} is already running at {other.host}:{other.port}: "
                        "start this one with another id, -c broker.id=NUMBER"
                    )
            try:
                async with asyncio.timeout(_PAUSE_SECONDS):
                    await self._seen.wait()
            except TimeoutError:
                continue

    async def stop(self, patience_s: float) -> None:
        if self._stopped or self._host is None:
            return
        others = len(self._leases.view.workers()) > 1
        self._step(Drain())
        try:
            async with asyncio.timeout(patience_s):
                await self._left.wait()
        except TimeoutError:
            self._logger.warning("leases_not_released", problem=self._unreachable or "the store does not answer")
        else:
            if others:
                await self._wait_for_successors(min(patience_s, _HANDOVER_SECONDS))
        await self._end()

    async def _wait_for_successors(self, patience_s: float) -> None:
        """Wait until other nodes hold the released leases, so that this node can still name the new leader."""
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    view = await self._store.view()
                    self._publish(view)
                    if all(lease.is_live for lease in view.leases):
                        return
                    await asyncio.sleep(_POLL_SECONDS)
        except _FAILURES:
            return

    async def _end(self) -> None:
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = [task for task in (self._requesting, self._leading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._store.close()
        except _FAILURES:
            self._store.hang_up()

    def on_store_changed(self) -> None:
        """The store has sent a notification."""
        if self._host is not None:
            self._step(StoreChanged())

    def expire(self) -> None:
        self._step(Tick())

    def elect(self, partition: TopicPartition) -> bool:
        return False

    def resign(self, partition: TopicPartition) -> bool:
        if partition not in self._leases.held:
            return False
        self._step(Resign(partition))
        return True

    def problem(self) -> str:
        if self._conflict is not None and self._is_previous_self(self._conflict):
            left = max(0, round(self._conflict_until - steady_ms()))
            return f"waiting for node {self._broker.node_id}'s previous lease to expire, {left} ms left"
        if self._conflict is not None:
            return f"another process is node {self._broker.node_id}, at {self._conflict.host}:{self._conflict.port}"
        if self._unreachable:
            return f"the store cannot be reached: {self._unreachable}"
        if not self._leases.registered:
            return "not registered yet" if not self._leases.left else "shutting down"
        return "" if not self._to_lead else "taking over partitions"

    def view(self) -> LeadershipView:
        return self._leases.view_at(int(steady_ms()))

    # --- driving

    def _step(self, what: LeaseInput) -> None:
        if self._stopped:
            return
        host = self._host
        assert host is not None, "it was started"
        leases = self._leases
        stop: list[StopLeading] = []
        for effect in leases.step(what, int(steady_ms())):
            match effect:
                case Renew() | Acquire() | Release():
                    self._requesting = asyncio.get_running_loop().create_task(self._request(effect))
                case Lead():
                    self.counts["acquired"] += 1
                    self._to_lead[effect.partition] = effect.epoch
                case StopLeading():
                    stop.append(effect)
                case ViewChange():
                    self._conflict = None
                    self._seen.set()
                case NodeIdConflict():
                    if self._conflict is None or self._conflict.incarnation != effect.by.incarnation:
                        self.counts["node_id_conflicts"] += 1
                        self._log_conflict(effect.by)
                    self._conflict = effect.by
                    self._conflict_until = steady_ms() + effect.by.ms_left
        valid_until = leases.valid_until()
        # Set before the host is called: the runtime reads it, and may call back into this method.
        self.valid_until = FOREVER if valid_until is None else float(valid_until)
        with self._quietly(host, len(stop)):
            for each in stop:
                self._stop_leading(each, host)
        if self._to_lead and self._leading is None:
            self._leading = asyncio.get_running_loop().create_task(self._lead(host))
        if leases.left:
            self._left.set()
        if leases.view.nodes:
            self._publish(leases.view, leases.view_age_ms(int(steady_ms())))
        self._set_alarm()

    def _log_conflict(self, by: NodeInfo) -> None:
        if self._is_previous_self(by):
            self._logger.info("waiting_for_previous_lease", node_id=by.node_id, ms_left=by.ms_left)
        else:
            self._logger.warning("node_id_conflict", by=f"{by.host}:{by.port}", ms_left=by.ms_left)

    def _is_previous_self(self, by: NodeInfo) -> bool:
        """Whether the other is an earlier process of this node: only that can have had its address."""
        return not self._seen.is_set() and (by.host, by.port) == (self._broker.host, self._broker.port)

    def _stop_leading(self, effect: StopLeading, host: PartitionHost) -> None:
        self._to_lead.pop(effect.partition, None)
        self.counts["expired" if effect.expired else "released"] += 1
        if effect.partition in host.leading:
            host.stop_leading(effect.partition)

    async def _lead(self, host: PartitionHost) -> None:
        """Lead the acquired partitions once ``before_leading`` has returned true."""
        try:
            while self._to_lead:
                if not await self._before_leading():
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                self.expire()
                to_lead, self._to_lead = self._to_lead, {}
                with self._quietly(host, len(to_lead)):
                    for partition, epoch in sorted(to_lead.items()):
                        host.start_leading(partition, epoch)
                if to_lead:
                    self._logger.info("leading", partitions=len(host.leading), acquired=len(to_lead))
        finally:
            self._leading = None

    @staticmethod
    def _quietly(host: PartitionHost, partitions: int) -> AbstractContextManager[None]:
        """Log one line per partition for a few partitions, not for many."""
        return host.at_debug_level() if partitions > _A_FEW else nullcontext()

    def _publish(self, view: LeadershipView, age_ms: int = 0) -> None:
        """Hand the core the brokers and leaders: other nodes from the view, this node from its own leases."""
        assert self._host is not None, "it was started"
        cluster = self._leases.cluster(self._broker, view, age_ms)
        if cluster != self._published:
            self._published = cluster
            self._host.on_cluster(cluster.brokers, cluster.leaders)

    async def _request(self, request: Request) -> None:
        what: LeaseInput
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
            # A bug. The leases must survive it: the request is repeated, or they expire.
            self._store.hang_up()
            self._logger.error("lease_request_failed", problem=repr(problem), exc_info=problem)
            self._unreachable = repr(problem)
            what = Unreachable()
        else:
            if self._unreachable:
                self._logger.info("store_reachable_again")
            self._unreachable = ""
        self._requesting = None
        self._step(what)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        now, leases = steady_ms(), self._leases
        at = [leases.next_deadline(), leases.next_expiry(int(now)) if not leases.left else None]
        deadline = min((each for each in at if each is not None), default=None)
        if deadline is not None and not self._stopped:
            delay = max(0.001, (deadline - now) / 1_000)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._step, Tick())
