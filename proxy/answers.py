"""The broker's end of a relay: answers come in, in the order of their requests, and go to the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rejoin.protocol.messages.cluster.api_versions import ApiVersionsResponse
from rejoin.protocol.registry import API_VERSIONS, METADATA
from rejoin.protocol.wire.codec import codec_of
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.frames import LENGTH_BYTES, Pass
from rejoin.proxy.listeners.metadata_brokers import with_our_brokers
from rejoin.proxy.records_apart import RecordsApart
from rejoin.proxy.rewriting import lowered, rewritten, rewritten_tail, tail_without_endpoints
from rejoin.proxy.side import MOST_HELD_BYTES, MOST_KEPT_BYTES, ConnectionRefused, Side

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay


class BrokerSide(Side):
    """The broker's end: what comes are answers, in the order of their requests."""

    __slots__ = ("_awaited", "_collected", "_tail", "apart")

    def __init__(self, relay: Relay) -> None:
        super().__init__(relay)
        self._awaited: ProxiedRequest | None = None
        """The exchange whose answer passes piece by piece."""
        self.apart: RecordsApart | None = None
        self._tail: list[bytes] = []
        self._collected: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.relay.proxy.upstream.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        relay = self.relay
        relay.proxy.upstream.discard(self)
        relay.client.close()
        relay.part()

    @property
    def is_blocked(self) -> bool:
        """Whether the next answer has to wait for one in front of it that the proxy gives."""
        relay = self.relay
        if self.transport is None or relay.client.transport is None:
            return True
        return bool(relay.pending) and (not relay.pending[0].is_forwarded or relay.pending[0].ready is not None)

    # --- frames

    def whole(self, frame: bytes) -> None:
        """Take an answer."""
        relay = self.relay
        exchange = self._next(frame)
        plan, pending, rules = exchange.plan, relay.pending, relay.proxy.rules
        if exchange.fault is not None and rules is not None:
            rules.deliver(relay, exchange, frame)
            return
        pending.popleft()
        relay.client.write(frame if plan.answer_passes else self.for_client(exchange, frame))
        self._finish(exchange)

    def for_client(self, exchange: ProxiedRequest, frame: bytes) -> bytes:
        """An answer as the client gets it. Raises :class:`SchemaError` where one that names brokers cannot be read."""
        plan = exchange.plan
        if exchange.is_raw:
            return frame
        if plan.reads:
            return self._with_our_tail(exchange, frame)
        if plan.is_kept:
            if len(frame) <= MOST_KEPT_BYTES:
                exchange.answer = frame[LENGTH_BYTES:]
            else:
                self.relay.proxy.counters.not_looked_at += 1
        if plan.key == METADATA.key and plan.codec is not None:
            # Its brokers are replaced in the bytes: topics may be a hundred thousand.
            return with_our_brokers(frame, plan.codec, self.relay.proxy.brokers) or frame
        return self._rewritten(exchange, frame) if plan.is_rewritten else frame

    def _finish(self, exchange: ProxiedRequest) -> None:
        relay = self.relay
        relay.finish(exchange)
        if relay.pending and relay.pending[0].ready is not None:
            relay.settle()
        if relay.client.is_paused:
            relay.client.go_on()

    def _next(self, beginning: bytes) -> ProxiedRequest:
        pending = self.relay.pending
        if not pending:
            raise ConnectionRefused("the broker sent an answer to no request")
        exchange = pending[0]
        if not exchange.is_raw:
            correlation_id = int.from_bytes(beginning[LENGTH_BYTES : LENGTH_BYTES + 4], "big", signed=True)
            if correlation_id != exchange.correlation_id:
                raise ConnectionRefused(
                    f"the broker answered request {correlation_id}, expected an answer to {exchange.correlation_id}"
                )
        return exchange

    def _rewritten(self, exchange: ProxiedRequest, frame: bytes) -> bytes:
        plan = exchange.plan
        codec = plan.codec
        assert codec is not None, "only known forms are rewritten"
        if plan.key == API_VERSIONS.key and codec.version and frame[8:10] == b"\x00\x23":
            # Kafka: an unsupported version is answered in version 0.
            codec = codec_of(plan.key, 0)
            assert codec is not None, "its messages are known"
        body = frame[LENGTH_BYTES:]
        _, response = codec.read_response_frame(body)
        if isinstance(response, ApiVersionsResponse):
            changed: Any = lowered(response, self.relay.proxy.release)
        else:
            changed = rewritten(response, self.relay.proxy.brokers)
        if changed is response:
            return frame
        return codec.response_frame(exchange.correlation_id, changed)

    def _apart(self, exchange: ProxiedRequest, size: int) -> RecordsApart:
        codec = exchange.plan.codec
        assert codec is not None, "only known forms are read"
        after_id = size - LENGTH_BYTES - 4
        return RecordsApart(
            codec.api.response, codec, after_id, held_after="responses", has_header_tags=codec.is_flexible
        )

    def _with_our_tail(self, exchange: ProxiedRequest, frame: bytes) -> bytes:
        apart = self._apart(exchange, len(frame))
        at = apart.feed(frame, LENGTH_BYTES + 4)
        self._keep(exchange, apart)
        if apart.problem or not apart.tail_begins:
            return frame
        tail = self._our_tail(exchange, apart, frame[at:])
        return frame if tail == frame[at:] else frame[:at] + tail

    def _keep(self, exchange: ProxiedRequest, apart: RecordsApart) -> None:
        if not exchange.plan.is_kept:
            return
        if apart.is_complete:
            exchange.answer = frame_of(exchange, apart)
        else:
            self.relay.proxy.counters.not_looked_at += 1

    def _our_tail(self, exchange: ProxiedRequest, apart: RecordsApart, tail: bytes) -> bytes:
        codec = exchange.plan.codec
        assert codec is not None, "only known forms are read"
        if apart.problem or not apart.is_complete:
            return tail
        if tail == tail_without_endpoints(codec):
            return tail
        _, response = codec.read_response_frame(frame_of(exchange, apart))
        return rewritten_tail(codec, response, tail, self.relay.proxy.brokers)

    def begin(self, beginning: bytes, size: int) -> Pass:
        """Decide about an answer of which the beginning is here."""
        if len(beginning) < LENGTH_BYTES + 4:
            return Pass.UNDECIDED
        relay = self.relay
        exchange = self._next(beginning)
        plan = exchange.plan
        begun: bytes = beginning
        if plan.key == METADATA.key and plan.codec is not None and exchange.fault is None:
            replaced = with_our_brokers(beginning, plan.codec, relay.proxy.brokers)
            if replaced is None:
                return Pass.UNDECIDED
            begun = replaced
        elif exchange.fault is not None or (plan.is_rewritten and not exchange.is_raw):
            most = MOST_KEPT_BYTES if exchange.fault is None else MOST_HELD_BYTES
            if size > most:
                raise ConnectionRefused(f"an answer of {size:,} bytes to {plan.name}; at most {most:,} can be held")
            return Pass.HELD
        self._awaited = exchange
        self._collected = None
        self.apart = None
        if plan.reads:
            self.apart = self._apart(exchange, size)
            self._read(beginning, LENGTH_BYTES + 4)
            return Pass.STREAMED
        if plan.is_kept:
            if size <= MOST_KEPT_BYTES:
                self._collected = [beginning[LENGTH_BYTES:]]
            else:
                relay.proxy.counters.not_looked_at += 1
        relay.client.write(begun)
        return Pass.STREAMED

    def _read(self, piece: bytes, at: int) -> None:
        """Read a piece, from a position of it on, and pass on what is in front of the tail."""
        apart = self.apart
        assert apart is not None, "an answer is read"
        in_front = apart.feed(piece, at)
        if in_front == len(piece):
            self.relay.client.write(piece)
            return
        self._tail.append(piece[in_front:])
        if sum(map(len, self._tail)) > MOST_KEPT_BYTES:
            raise ConnectionRefused(f"more than {MOST_KEPT_BYTES:,} bytes behind the partitions of an answer")
        self.relay.client.write(memoryview(piece)[:in_front])

    def more(self, piece: bytes, *, is_last: bool) -> None:
        """Pass on more of a large answer."""
        relay, exchange = self.relay, self._awaited
        assert exchange is not None, "an answer passes"
        if self.apart is not None:
            self._read(piece, 0)
        else:
            if self._collected is not None:
                self._collected.append(piece)
            relay.client.write(piece)
        if not is_last:
            return
        relay.pending.popleft()
        self._awaited = None
        if self.apart is not None:
            apart, tail = self.apart, b"".join(self._tail)
            self.apart, self._tail = None, []
            if tail:
                relay.client.write(self._our_tail(exchange, apart, tail))
            self._keep(exchange, apart)
        elif self._collected is not None:
            exchange.answer = b"".join(self._collected)
            self._collected = None
        self._finish(exchange)


def frame_of(exchange: ProxiedRequest, apart: RecordsApart) -> bytes:
    """An answer without records, as a frame without its length."""
    return exchange.correlation_id.to_bytes(4, "big", signed=True) + apart.kept
