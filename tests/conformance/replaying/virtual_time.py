"""An event loop on virtual time, with a network inside of the process: minutes pass in a moment, always in one way.

Time stands still while anything can run, and then moves on to the next timer. A connection is a pair of Unix sockets,
whose bytes are there as soon as they were written; so nothing depends on how busy the machine is.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")

BEGIN_SECONDS = 1_000.0
EPOCH_SECONDS = 1_700_000_000
"""The time since 1970 when the loop's own is 0."""

PROCESS: contextvars.ContextVar[str] = contextvars.ContextVar("PROCESS", default="")
"""The simulated process to which the running task belongs, if any."""


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: where no socket is ready, time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = BEGIN_SECONDS

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout != 0:
            if timeout is None:
                raise RuntimeError("every task waits for another one: no timer is set, and no socket is ready")
            self.now += timeout
        return ready


class _Server:
    """Stands for an ``asyncio.Server``: connections are made by the loop."""

    def __init__(self, loop: VirtualLoop, port: int, sockets: tuple[socket.socket, ...]) -> None:
        self._loop, self._port = loop, port
        self.sockets = sockets

    def close(self) -> None:
        self._loop.listening.pop(self._port, None)
        for each in self.sockets:
            each.close()

    def is_serving(self) -> bool:
        return self._port in self._loop.listening

    async def start_serving(self) -> None:
        pass

    async def wait_closed(self) -> None:
        pass


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. ``routes`` has the ports to which connections of simulated processes go instead."""

    def __init__(self) -> None:
        selector = _Selector()
        super().__init__(selector)
        self._virtual = selector
        self.listening: dict[int, tuple[Callable[[], asyncio.BaseProtocol], dict[str, Any], contextvars.Context]] = {}
        self.routes: Mapping[int, int] = {}
        self._connections: dict[str, list[Any]] = {}
        self._killed: set[str] = set()

    def time(self) -> float:
        return self._virtual.now

    def kill(self, process: str) -> None:
        """End the connections of a simulated process. It can open no more, and send nothing."""
        self._killed.add(process)
        for transport in self._connections.pop(process, ()):
            transport.abort()

    def start(self, process: str) -> None:
        """Let a simulated process connect that was killed."""
        self._killed.discard(process)

    # --- what asyncio asks of a loop

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as problem:
            future.set_exception(problem)
        return future

    async def create_server(  # type: ignore[override]
        self, factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: Any = None, **options: Any
    ) -> _Server:
        sock = options.get("sock")
        if sock is None:
            sock = socket.create_server((host, port or 0))
        number = sock.getsockname()[1]
        tls = {name: options[name] for name in ("ssl", "ssl_handshake_timeout") if options.get("ssl")}
        self.listening[number] = factory, tls, contextvars.copy_context()
        return _Server(self, number, (sock,))

    async def create_connection(  # type: ignore[override]
        self, factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        process = PROCESS.get()
        if process in self._killed:
            raise ConnectionRefusedError(f"{process} was killed")
        if process:
            port = self.routes.get(port, port)
        await asyncio.sleep(0)
        if port not in self.listening:
            raise ConnectionRefusedError(f"nothing listens on port {port}")
        accept, accepted_tls, context = self.listening[port]
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        accepting = self.connect_accepted_socket(accept, theirs, **accepted_tls)
        accepted = self.create_task(accepting, context=context.copy())
        accepted.add_done_callback(lambda task: task.cancelled() or task.exception())
        tls = {name: options[name] for name in ("ssl", "server_hostname") if options.get("ssl")}
        transport, protocol = await super().create_connection(factory, sock=ours, **tls)
        if process:
            self._connections.setdefault(process, []).append(transport)
        return transport, protocol


@contextmanager
def _time_of(loop: VirtualLoop, modules: tuple[Any, ...]) -> Iterator[None]:
    """Let modules take the time of the loop, whether they have the module ``time`` or functions of it."""
    clock = SimpleNamespace(
        monotonic=loop.time,
        monotonic_ns=lambda: round(loop.time() * 1e9),
        perf_counter=loop.time,
        time=lambda: EPOCH_SECONDS + loop.time(),
        time_ns=lambda: round((EPOCH_SECONDS + loop.time()) * 1e9),
    )
    with ExitStack() as patched:
        for module in modules:
            for name in ("time", "monotonic"):
                found = getattr(module, name, None)
                if found is not None:
                    new = clock if hasattr(found, "monotonic") else getattr(clock, name)
                    patched.enter_context(mock.patch.object(module, name, new))
        yield


def run_virtually(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], *modules: Any) -> T:
    """Run on a loop of its own. ``modules`` are those that read clocks by themselves."""
    loop = VirtualLoop()
    with _time_of(loop, modules), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))
