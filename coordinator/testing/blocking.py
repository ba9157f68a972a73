"""The coordinator for tests that block: it runs on an event loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.fault_injection.fault_fields import FaultFields
from rejoin.coordinator.testing.controlled import RunningCoordinator
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.faults import FaultHandle, FaultState, takes_fault_fields
from rejoin.coordinator.testing.results import MISTAKES, hides_traceback
from rejoin.coordinator.testing.starting import running
from rejoin.protocol.security.acl_bindings import AclBinding
from rejoin.protocol.security.quota_limits import QuotaLimits

P = ParamSpec("P")
T = TypeVar("T")

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


@contextmanager
def running_in_thread(
    *,
    clock: str = "real",
    topics: Mapping[str, int] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    socket: bool = True,
    port: int = 0,
    brokers: int = 1,
    principals: Mapping[str, str] | None = None,
    acls: Sequence[str | AclBinding] = (),
    quotas: Sequence[str | QuotaLimits] = (),
    proxy: str | Mapping[str, Any] | None = None,
) -> Iterator[GroupCoordinator]:
    """A coordinator in a thread of its own. Its methods can be awaited on any event loop.

    For code that blocks, put :class:`BlockingGroupCoordinator` around it.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="group-coordinator", daemon=True)
    thread.start()
    started = running(
        clock=clock,
        topics=topics,
        settings=settings,
        socket=socket,
        port=port,
        brokers=brokers,
        principals=principals,
        acls=acls,
        quotas=quotas,
        proxy=proxy,
    )
    try:
        coordinator = _wait(started.__aenter__(), loop)
        try:
            yield coordinator
        finally:
            _wait(started.__aexit__(None, None, None), loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)


def _wait(what: Any, loop: asyncio.AbstractEventLoop) -> Any:
    async def awaited() -> Any:
        return await what

    try:
        return asyncio.run_coroutine_threadsafe(awaited(), loop).result()
    except MISTAKES as error:
        raise error.with_traceback(None) from None


class Blocking(Generic[P, T]):
    """A method of the coordinator, or of a fault, that returns its result instead of a coroutine. Parameters stay."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        @functools.wraps(method)
        def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
            found: T = _wait(method(self.behind, *args, **kwargs), self.behind.loop)
            return found

        self._call: Callable[..., T] = call
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[Concatenate[Any, P], T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, T]: ...

    def __get__(self, instance: object | None, owner: type) -> Callable[..., T]:
        return self._call if instance is None else MethodType(self._call, instance)


class BlockingFault(FaultState):
    """A rule that a test made."""

    def __init__(self, behind: FaultHandle) -> None:
        super().__init__(behind.fault)
        self.behind = behind

    wait = Blocking(FaultHandle.wait)
    release = Blocking(FaultHandle.release)
    remove = Blocking(FaultHandle.remove)


class BlockingGroupCoordinator(RunningCoordinator):
    """Every method of :class:`GroupCoordinator`, waiting instead of awaiting."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        super().__init__(coordinator.app, coordinator.loop, coordinator.has_socket)
        self.behind = coordinator

    @takes_fault_fields
    def add_fault(self, **fields: Unpack[FaultFields]) -> BlockingFault:
        """Make a rule, behind those that are there; the fields are those of the control API. Raises ValueError."""
        return BlockingFault(_wait(self.behind.add_fault(**fields), self.behind.loop))

    call = Blocking(GroupCoordinator.call)
    group = Blocking(GroupCoordinator.group)
    wait_for_group = Blocking(GroupCoordinator.wait_for_group)
    advance = Blocking(GroupCoordinator.advance)
    advance_to_next = Blocking(GroupCoordinator.advance_to_next)
    advance_until_idle = Blocking(GroupCoordinator.advance_until_idle)

    clear_faults = Blocking(GroupCoordinator.clear_faults)
    expire = Blocking(GroupCoordinator.expire)
    kick = Blocking(GroupCoordinator.kick)
    set_group = Blocking(GroupCoordinator.set_group)
    resign = Blocking(GroupCoordinator.resign)
    advertise = Blocking(GroupCoordinator.advertise)
    elect = Blocking(GroupCoordinator.elect)
    snapshot = Blocking(GroupCoordinator.snapshot)
    restore = Blocking(GroupCoordinator.restore)
    reset = Blocking(GroupCoordinator.reset)

    set_principal = Blocking(GroupCoordinator.set_principal)
    set_acls = Blocking(GroupCoordinator.set_acls)
    set_quotas = Blocking(GroupCoordinator.set_quotas)

    set_topic = Blocking(GroupCoordinator.set_topic)
    delete_topic = Blocking(GroupCoordinator.delete_topic)
    produce = Blocking(GroupCoordinator.produce)
    compact = Blocking(GroupCoordinator.compact)
    records = Blocking(GroupCoordinator.records)
    wait_for_committed = Blocking(GroupCoordinator.wait_for_committed)

    wait_for_share_group = Blocking(GroupCoordinator.wait_for_share_group)
    fail_persister = Blocking(GroupCoordinator.fail_persister)
    share_state = Blocking(GroupCoordinator.share_state)
    expire_lock = Blocking(GroupCoordinator.expire_lock)
    release_record = Blocking(GroupCoordinator.release_record)

    streams_state = Blocking(GroupCoordinator.streams_state)
    wait_for_streams_group = Blocking(GroupCoordinator.wait_for_streams_group)
    shut_down_application = Blocking(GroupCoordinator.shut_down_application)

    brokers = Blocking(GroupCoordinator.brokers)
    stop_broker = Blocking(GroupCoordinator.stop_broker)
    kill_broker = Blocking(GroupCoordinator.kill_broker)
    start_broker = Blocking(GroupCoordinator.start_broker)
    pause_broker = Blocking(GroupCoordinator.pause_broker)
    resume_broker = Blocking(GroupCoordinator.resume_broker)
    cut_off = Blocking(GroupCoordinator.cut_off)
    heal = Blocking(GroupCoordinator.heal)
    partition = Blocking(GroupCoordinator.partition)
    move_leader = Blocking(GroupCoordinator.move_leader)
    elect_preferred = Blocking(GroupCoordinator.elect_preferred)

    mark = Blocking(GroupCoordinator.mark)
    requests = Blocking(GroupCoordinator.requests)
    transcript = Blocking(GroupCoordinator.transcript)
    broker_log = Blocking(GroupCoordinator.broker_log)
    request_log = Blocking(GroupCoordinator.request_log)
