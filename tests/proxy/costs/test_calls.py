"""How many calls a heartbeat takes through the proxy: a measure of its price that no load changes.

The bounds are a fifth above what it took when they were set. ``python -m benchmarks proxy.speed`` has the time.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from rejoin.proxy.control.running import started
from rejoin.proxy.service import Proxy, ProxyOptions
from rejoin.proxy.watch import RequestWatch
from tests.benchmarks.calls import calls_of
from tests.proxy.costs.bare import ANSWER, HEARTBEAT, BareConnection
from tests.proxy.wire import codec

REPETITIONS = 20
AT_MOST = {"": 38, "--journal": 61, "--control": 91}
"""Calls of Python's functions and of those in C, on average, for a request and its answer."""


@pytest.mark.parametrize("option", AT_MOST)
async def test_calls_of_a_heartbeat_do_not_grow(option: str) -> None:
    async with AsyncExitStack() as stack:
        options = ProxyOptions(bootstrap=(("127.0.0.1", 1),), port=0)
        watch = RequestWatch(None) if option else None
        if option == "--control":
            proxy, _ = await started(stack, options, watch)
        else:
            proxy = Proxy(options, watch)
            await proxy.start()
            stack.push_async_callback(proxy.stop)
        connection = BareConnection(proxy)
        connection.exchange(HEARTBEAT, ANSWER, 4)
        form = codec(12, 4)
        frames = [
            (form.request_frame(number, "c", HEARTBEAT), form.response_frame(number, ANSWER))
            for number in range(REPETITIONS)
        ]
        relay = connection.relay

        def beat() -> None:
            for request, answer in frames:
                relay.client.data_received(request)
                relay.broker.data_received(answer)

        calls = calls_of(beat) / REPETITIONS
        assert len(connection.to_broker.written) == len(connection.to_client.written) == REPETITIONS + 1
        assert calls <= AT_MOST[option]
