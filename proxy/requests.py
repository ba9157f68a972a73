"""The client's end of a relay: requests come in, and go to the broker."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from rejoin.protocol.registry import SASL_HANDSHAKE
from rejoin.protocol.wire.codec import read_request_header
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.exchange import ProxiedRequest, acks_of, is_raw_token
from rejoin.proxy.frames import LENGTH_BYTES, Pass
from rejoin.proxy.records_apart import RecordsApart
from rejoin.proxy.side import MOST_HELD_BYTES, MOST_KEPT_BYTES, ConnectionRefused, Side

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

HALF_CLOSED_SECONDS: Final = 30.0
"""How long a client that has closed its half has for the answers that it awaits."""
_LONGEST_HEAD: Final = 65_536
"""Bytes of a request that are awaited, as its header ends there."""
_HEAD: Final = struct.Struct(">hhi").unpack_from
"""Key, version and correlation id of a request."""
_LEAST_BYTES: Final = LENGTH_BYTES + 10
"""A frame with a header, whose client id is null."""
_CLIENT_AT: Final = LENGTH_BYTES + 8
"""Where the client id of a request begins, with its length."""
_LONGEST_REQUEST: Final = 1 << 30
MOST_PENDING: Final = 1_000
"""Requests of one connection without an answer. Clients send five to a broker, Kafka reads one at a time."""
_MOST_PENDING_BYTES: Final = 4 * MOST_KEPT_BYTES
"""Bytes of such requests that are kept for the watch."""
_BATCH_HEAD_BYTES: Final = 61
"""Bytes of a partition's records that are kept of a Produce: the head of its first batch, which has no record."""


class _KnownClient(NamedTuple):
    """The part of a header that is the same in each request of a client."""

    head: bytes
    client_id: str
    body_at: int


class ClientSide(Side):
    """The client's end: what comes are requests."""

    __slots__ = ("_known", "_patience", "_streamed", "apart", "at_eof", "held")

    def __init__(self, relay: Relay) -> None:
        super().__init__(relay)
        self.held: ProxiedRequest | None = None
        """The request that a rule holds back; what follows it waits."""
        self.apart: RecordsApart | None = None
        """The reader of the large request that passes, where it is looked at."""
        self._streamed: ProxiedRequest | None = None
        self._known: list[_KnownClient | None] = [None, None]
        """The client in inflexible and in flexible headers."""
        self.at_eof = False
        """Whether the client has closed its half."""
        self._patience: asyncio.TimerHandle | None = None
        """The end of the time that such a client has."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.relay.client_host, self.relay.client_port = str(peer[0]), int(peer[1])
        self.read_or_not()
        self.relay.proxy.opened(self.relay)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._patience is not None:
            self._patience.cancel()
        relay = self.relay
        relay.broker.close()
        relay.proxy.closed(relay)
        relay.part()

    @property
    def is_blocked(self) -> bool:
        relay = self.relay
        return (
            self.held is not None
            or self.transport is None
            or relay.broker.transport is None
            or relay.is_draining
            or self.is_full
            or len(relay.pending) >= MOST_PENDING
            or relay.kept_bytes >= _MOST_PENDING_BYTES
        )

    @property
    def is_over(self) -> bool:
        """Whether all that came before the client closed its half is with the broker, and answered."""
        return self.at_eof and not self.is_blocked and not self.relay.pending

    def resume_writing(self) -> None:
        super().resume_writing()
        self.go_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.read_or_not()

    def read_or_not(self) -> None:
        if not self.at_eof:
            super().read_or_not()

    def go_on(self) -> None:
        super().go_on()
        if self.is_over:
            self.relay.end()

    def eof_received(self) -> bool:
        # A client may close its half and read on; with TLS there is no half.
        assert self.transport is not None, "it is open"
        self.at_eof = True
        # A client that is gone looks like this, too, and a broker may never answer it.
        self._patience = self.relay.proxy.call_later(HALF_CLOSED_SECONDS, self.relay.end)
        return not self.is_over and self.transport.get_extra_info("ssl_object") is None

    # --- frames

    def whole(self, frame: bytes) -> None:
        """Take a request."""
        relay = self.relay
        if relay.login is not None and relay.login.takes(frame):
            return
        proxy = relay.proxy
        if proxy.rules is None and not relay.is_raw_login and len(frame) >= _LEAST_BYTES:
            key, version, correlation_id = _HEAD(frame, LENGTH_BYTES)
            plan = proxy.plans[key, version]
            if plan.passes:
                proxy.count(plan)
                relay.pending.append(ProxiedRequest(plan, correlation_id))
                relay.broker.write(frame)
                return
        if relay.is_raw_login:
            if is_raw_token(frame):
                self._pass_token(frame)
                return
            relay.is_raw_login = False
        exchange = self._exchange(frame)
        proxy.count(exchange.plan)
        if exchange.plan.key == SASL_HANDSHAKE.key and exchange.plan.version == 0:
            relay.is_raw_login = True
        if exchange.plan.is_kept:
            exchange.request = self._kept(exchange, frame)
            relay.kept_bytes += len(exchange.request)
        if proxy.rules is None or not proxy.rules.takes(relay, exchange, frame):
            self.forward(exchange, frame)

    def forward(self, exchange: ProxiedRequest, frame: bytes) -> None:
        """Send a request to the broker."""
        relay = self.relay
        if exchange.has_answer:
            relay.pending.append(exchange)
        relay.broker.write(frame)
        if not exchange.has_answer:
            relay.finish(exchange)

    def _exchange(self, beginning: bytes) -> ProxiedRequest:
        """The exchange of a request, of which the beginning is enough. Raises :class:`SchemaError`."""
        proxy = self.relay.proxy
        if len(beginning) < _LEAST_BYTES:
            raise SchemaError("header", f"{len(beginning) - LENGTH_BYTES} bytes", "a request header")
        key, version, correlation_id = _HEAD(beginning, LENGTH_BYTES)
        plan = proxy.plans[key, version]
        exchange = ProxiedRequest(plan, correlation_id)
        known = self._known[plan.is_flexible]
        if known is None or not beginning.startswith(known.head, _CLIENT_AT):
            header = read_request_header(beginning, LENGTH_BYTES)
            head = beginning[_CLIENT_AT : header.body_at]
            known = self._known[plan.is_flexible] = _KnownClient(head, header.client_id, header.body_at)
        exchange.client_id, exchange.body_at = known.client_id, known.body_at
        exchange.arrived_ms = proxy.now_ms()
        if plan.has_acks:
            exchange.has_answer = acks_of(beginning, exchange) != 0
        return exchange

    def _kept(self, exchange: ProxiedRequest, frame: bytes) -> bytes:
        """The body that is kept: of a Produce without records, of others all."""
        if exchange.plan.has_acks:
            apart = _without_records(exchange, len(frame))
            apart.feed(frame, exchange.body_at)
            return self._body(apart)
        if len(frame) <= MOST_KEPT_BYTES:
            return frame[exchange.body_at :]
        self.relay.proxy.counters.not_looked_at += 1
        return b""

    def _body(self, apart: RecordsApart) -> bytes:
        if apart.is_complete:
            return apart.kept
        self.relay.proxy.counters.not_looked_at += 1
        return b""

    def _pass_token(self, frame: bytes) -> None:
        plan = self.relay.proxy.plans[SASL_HANDSHAKE.key, 0]
        exchange = ProxiedRequest(plan, -1)
        exchange.is_raw = True
        self.forward(exchange, frame)

    def begin(self, beginning: bytes, size: int) -> Pass:
        """Decide about a request of which the beginning is here."""
        if size > _LONGEST_REQUEST:
            raise ConnectionRefused(f"a request of {size:,} bytes; expected at most {_LONGEST_REQUEST:,}")
        relay = self.relay
        if relay.login is not None:
            relay.login.check_size(size)
            return Pass.HELD
        if size <= _LONGEST_HEAD or relay.is_raw_login:
            return Pass.HELD
        if len(beginning) < _LONGEST_HEAD:
            return Pass.UNDECIDED
        exchange = self._exchange(beginning)
        plan, rules = exchange.plan, relay.proxy.rules
        is_looked_at = plan.is_kept and not plan.has_acks and size <= MOST_KEPT_BYTES
        if is_looked_at or (rules is not None and rules.may_take(exchange)):
            if size > MOST_HELD_BYTES:
                raise ConnectionRefused(f"a request of {size:,} bytes; for a rule at most {MOST_HELD_BYTES:,} are held")
            return Pass.HELD
        relay.proxy.count(plan)
        if plan.is_kept and plan.has_acks:
            self.apart = _without_records(exchange, size)
            self.apart.feed(beginning, exchange.body_at)
        elif plan.is_kept:
            relay.proxy.counters.not_looked_at += 1
        self._streamed = exchange
        if exchange.has_answer:
            relay.pending.append(exchange)
        relay.broker.write(beginning)
        return Pass.STREAMED

    def more(self, piece: bytes, *, is_last: bool) -> None:
        """Pass on more of a large request."""
        relay, apart, exchange = self.relay, self.apart, self._streamed
        assert exchange is not None, "a request passes"
        relay.broker.write(piece)
        if apart is not None:
            apart.feed(piece)
        if is_last:
            self.apart = self._streamed = None
            if apart is not None:
                exchange.request = self._body(apart)
                if not exchange.answered_ms:
                    relay.kept_bytes += len(exchange.request)
            if not exchange.has_answer:
                relay.finish(exchange)


def _without_records(exchange: ProxiedRequest, size: int) -> RecordsApart:
    """The reader of a Produce; ``size`` is that of the frame."""
    codec = exchange.plan.codec
    assert codec is not None, "only known forms are kept"
    body = size - exchange.body_at
    return RecordsApart(codec.api.request, codec, body, most_records=_BATCH_HEAD_BYTES)
