"""Frames at random in both directions through a proxy: each disturbs its own connection, and nothing fails inside.

``REJOIN_FUZZ_FRAMES`` says on how many connections, ``REJOIN_FUZZ_SEED`` draws others; ``make fuzz-proxy`` runs many.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.registry import BY_KEY
from rejoin.protocol.wire.codec import codec_of, read_request_header
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy import broker_table, requests
from rejoin.proxy.line_file import LineFile
from rejoin.proxy.watch import RequestWatch
from tests.coordinator.service.kafka.test_fuzz_frames import cut, mutated, noise, some_frame
from tests.protocol.wire.messages import random_message
from tests.proxy.wire import FrameClient, ScriptedBroker, Stand, proxied

CONNECTIONS: Final = int(os.environ.get("REJOIN_FUZZ_FRAMES", "120"))
SEED: Final = int(os.environ.get("REJOIN_FUZZ_SEED", "1"))
AT_ONCE: Final = 12
MORE_BYTES: Final = 80 << 20
WRONG: Final = ("changed", "cut", "noise", "twice", "announced", "huge", "short")
HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class LyingBroker:
    """Answers rightly, and in many wrong ways; a client that is called ``beside`` gets right answers only."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.broker = ScriptedBroker({"Heartbeat": HeartbeatResponse()})
        self.broker.on_raw = self.answer
        self.kinds: Counter[str] = Counter()

    def answer(self, frame: bytes) -> bytes | None:
        dice = self.dice
        if b"beside" in frame:
            return None
        try:
            header = read_request_header(frame)
        except SchemaError:
            return struct.pack(">i", 4) + frame[4:8]
        form = codec_of(header.api_key, header.api_version)
        if form is None:
            return struct.pack(">ii", 8, header.correlation_id) + b"four"
        response: Any = random_message(BY_KEY[header.api_key].response, header.api_version, dice)
        right = form.response_frame(header.correlation_id, response)
        kind = dice.choice(("right", "right", "right", *WRONG))
        self.kinds[kind] += 1
        match kind:
            case "changed":
                return right[:8] + mutated(b"\0\0\0\0" + right[8:] + b"\0", dice)[4:-1]
            case "cut":
                return struct.pack(">i", len(right) - 4) + cut(right, dice)[4 : len(right)]
            case "noise":
                return noise(dice)
            case "twice":
                return right + right
            case "announced":
                return struct.pack(">i", dice.choice((2**31 - 1, -1, -(2**31), 1 << 26, 5))) + right[4:]
            case "huge":
                grown = right + bytes(dice.choice((1_000, 300_000)))
                return struct.pack(">i", len(grown) - 4) + grown[4:]
            case "short":
                return right[: dice.randrange(len(right))]
        return right


async def connect(stand: Stand, dice: random.Random) -> int:
    """A client that sends some frames and no more, reads for a while, and is gone. Returns what it got, in bytes."""
    client = await FrameClient.connect(stand.proxy.port)
    got = 0
    try:
        sent = b"".join(some_frame(dice) for _ in range(dice.randrange(1, 5)))
        if dice.random() < 0.2:
            sent = sent[: dice.randrange(len(sent))] if sent else sent
        client.writer.write(sent)
        if dice.random() < 0.2:
            return 0
        client.writer.write_eof()
        # The broker, or the client itself, may owe the rest of a frame.
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(5):
                while more := await client.reader.read(1 << 16):
                    got += len(more)
        return got
    finally:
        if dice.random() < 0.3:
            client.writer.transport.abort()
        await client.close()


async def settled(stand: Stand) -> None:
    try:
        async with asyncio.timeout(10):
            while len(stand.proxy.relays) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        left = [(each.client.transport, each.broker.transport, len(each.pending)) for each in stand.proxy.relays]
        raise AssertionError(f"connections are left: {left}") from None


async def test_frames_at_random_disturb_their_own_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(broker_table, "MOST_BROKERS", 30)
    monkeypatch.setattr(requests, "HALF_CLOSED_SECONDS", 0.3)
    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    dice = random.Random(SEED)
    lying = LyingBroker(dice)
    watch = RequestWatch(LineFile(tmp_path / "kafka-request.log"))
    memory = 0
    got = 0
    async with proxied(lying.broker, watch) as stand:
        beside = await stand.client()
        for number in range(0, CONNECTIONS, AT_ONCE):
            if number >= CONNECTIONS // 3 and not memory:
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            got += sum(await asyncio.gather(*(connect(stand, dice) for _ in range(AT_ONCE))))
            assert await beside.ask(HEARTBEAT, client_id="beside") == HeartbeatResponse()
            assert failed == [], "nothing fails inside"
        await settled(stand)
        lying.broker.tasks[:] = [task for task in lying.broker.tasks if not task.done()]
        counters = stand.proxy.counters
        assert len(stand.proxy.brokers.by_id) <= 30
        assert counters.refused > CONNECTIONS // 10
        assert got > CONNECTIONS * 10
    watch.close()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - memory
    print(f"{dict(lying.kinds)}; {counters}; {got:,} bytes of answers; {grown / 2**20:.1f} MiB more")
    assert grown < MORE_BYTES
    assert failed == []
