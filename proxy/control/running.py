"""A proxy with its control API, started and stopped together."""

from __future__ import annotations

from contextlib import AsyncExitStack

import structlog

from rejoin.proxy.control.control import ProxyControl
from rejoin.proxy.control.http import ControlListener
from rejoin.proxy.control.watches import SeveralWatches
from rejoin.proxy.live.views import ProxyPages
from rejoin.proxy.service import Proxy, ProxyOptions, Watch
from rejoin.proxy.watch import RequestWatch


async def started(
    stack: AsyncExitStack, options: ProxyOptions, watch: Watch | None = None
) -> tuple[Proxy, ProxyControl]:
    """A proxy under control, without HTTP, which the stack stops. Raises ``ValueError`` where a port cannot be had."""
    control = ProxyControl(options)
    seen = control.recording if watch is None else SeveralWatches(watch, control.recording)
    proxy = Proxy(options, seen, control.rules)
    await proxy.start()
    control.begin(proxy)
    stack.push_async_callback(proxy.stop)
    stack.push_async_callback(control.stop)
    return proxy, control


async def controlled_proxy(
    stack: AsyncExitStack, options: ProxyOptions, watch: RequestWatch | None, host: str, port: int, token: str | None
) -> Proxy:
    """A proxy whose control API and pages are served over HTTP, until the stack ends. Raises ``ValueError``."""
    watch = RequestWatch(None) if watch is None else watch
    proxy, control = await started(stack, options, watch)
    pages = ProxyPages(control.groups, proxy.now_ms)
    watch.on_line = pages.events.lines.add
    listener = ControlListener(control, host, port, token, pages)
    await listener.start()
    stack.push_async_callback(listener.stop)
    structlog.get_logger("proxy").info("proxy_control_ready", url=f"{listener.url}/control", page=listener.url)
    return proxy
