"""One connection of Kafka's binary protocol.

Requests are served one at a time and answered in order, as Kafka does: while one is parked, what follows it waits in
the buffer. A request that cannot be read ends the connection, which is all that Kafka says about it as well.

Kafka: SocketServer.Processor, KafkaChannel.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from rejoin.coordinator.core.inputs import ANONYMOUS
from rejoin.coordinator.pending_reply import Delivery, NoReply, PendingReply
from rejoin.coordinator.service.kafka.binding import local_host
from rejoin.coordinator.service.kafka.outgoing import AT_ONCE, Outgoing, flat
from rejoin.coordinator.service.kafka.requests import KafkaRequest, NotServed, RepeatedRequest, RequestHead
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.registry import FETCH
from rejoin.protocol.wire.errors import SchemaError
from rejoin.protocol.wire.writer import Part, joined

if TYPE_CHECKING:
    from rejoin.coordinator.service.kafka.large_frame import LargeFrame
    from rejoin.coordinator.service.kafka.listener import KafkaListener

_SIZE_BYTES: Final = 4
_LARGE: Final = 65_536
"""Frames of so many bytes are joined when they are whole; smaller ones wait in the buffer."""
_READ_AHEAD: Final = 262_144
"""How much of what follows a parked request is read. A client that sends more is not read until its turn."""
_TURN_SECONDS: Final = 0.005
_TURN_BYTES: Final = 262_144
"""How long the requests of one chunk are served, and how much is answered, before other connections have their turn."""


class KafkaConnection(asyncio.Protocol):
    """Takes frames of one client, hands in one request at a time, and writes the responses."""

    __slots__ = (
        "_buffer",
        "_is_paused",
        "_is_reading",
        "_is_scheduled",
        "_is_writable",
        "_large",
        "_listener",
        "_loop",
        "_outgoing",
        "_parked",
        "_pending",
        "_repeated",
        "by_token",
        "client_host",
        "client_id",
        "client_port",
        "heads",
        "identity",
        "last_used",
        "local_host",
        "max_request_bytes",
        "name",
        "principal",
        "reports_end",
        "software",
        "transport",
    )

    def __init__(self, listener: KafkaListener, name: str) -> None:
        """``name`` is that of the listener that accepted it."""
        self.name = name
        self._listener = listener
        self._loop = listener.loop
        self._buffer = bytearray()
        self._large: LargeFrame | None = None
        """The part of a large frame received so far; meanwhile the buffer is empty and nothing is parked."""
        self._parked: KafkaRequest | None = None
        """The request that is parked; the next one waits for its response."""
        self._pending: PendingReply | None = None
        self._repeated: RepeatedRequest | None = None
        self._is_reading = True
        self._is_paused = False
        """Whether the transport has enough for now."""
        self._is_writable = True
        """Whether all answers are with the transport, and it takes more."""
        self._outgoing: Outgoing | None = None
        self._is_scheduled = False
        """Whether the buffer is served soon, after a turn of others."""
        self.transport: asyncio.Transport | None = None
        self.max_request_bytes = listener.max_request_bytes
        self.client_host = "127.0.0.1"
        self.client_port: int | None = None
        self.local_host = ""
        """The host that the client connected to."""
        self.principal = ANONYMOUS
        self.by_token = False
        """True where the principal has logged in by a delegation token."""
        self.client_id = ""
        """The client id of the last request."""
        self.software = ""
        """The name and version of the client's software, once ApiVersions has said it."""
        self.heads: dict[bytes, RequestHead] = {}
        """First bytes of requests, by API and version."""
        self.identity = listener.new_identity()
        """A name that no other connection of the listener has had."""
        self.reports_end = False
        """Whether a request came after which the node needs to know of the connection's end."""
        self.last_used = 0.0
        """When something came last, by the loop's clock."""

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.client_host, self.client_port = str(peer[0]), int(peer[1])
        self.local_host = local_host(transport)
        self.last_used = self._loop.time()
        self._listener.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        # Kafka: a request that is parked goes on without its connection; its answer is dropped.
        self.transport = self._outgoing = None
        self._listener.closed(self)
        if self.reports_end:
            self._listener.connection_lost(self.identity)
        if self._parked is not None and self._pending is not None and self._parked.wire.api is FETCH:
            # Differs: in Kafka a Fetch, too, waits for all of its time.
            self._listener.end_wait(self._pending)

    def pause_writing(self) -> None:
        """The client reads too slowly: take no more requests of it."""
        self._is_paused, self._is_writable = True, False
        self._count_unsent()
        self._read_or_not()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._outgoing is not None:
            self._write_on()
            return
        self._go_on_serving()

    def _go_on_serving(self) -> None:
        self._is_writable = True
        self._count_unsent()
        self._read_or_not()
        if not self._is_scheduled:
            self._serve_buffered()

    def data_received(self, data: bytes) -> None:
        if self._large is not None:
            self._take_large(self._large, data)
            return
        if self._parked is None and self._is_writable and not self._buffer:
            repeated = self._repeated
            if (
                repeated is not None
                and data.endswith(repeated.body)
                and data.startswith(repeated.head)
                and len(data) == repeated.size
            ):
                self._serve_repeated(repeated, data)
                return
            # One whole frame, as nearly all that arrives is.
            if len(data) - _SIZE_BYTES == int.from_bytes(data[:_SIZE_BYTES], "big") <= self.max_request_bytes:
                self._serve_one(data)
                return
        self._buffer += data
        if self._parked is None and self._is_writable and not self._is_scheduled:
            self._serve_buffered()
        else:
            self._read_or_not()

    # --- frames

    @property
    def is_busy(self) -> bool:
        """Whether a request is parked."""
        return self._parked is not None

    def _serve_one(self, data: bytes) -> None:
        self.last_used = self._loop.time()
        written: list[Part] = []
        answered = self._serve(data, written)
        transport = self.transport
        if transport is None or not written:
            return
        only = written[0]
        if len(written) == 1 and len(only) <= AT_ONCE and self._outgoing is None and not isinstance(only, BatchRun):
            transport.write(only)
            if answered is None or not self._takes_repeated():
                return
            call, response = answered
            if call.wire.is_repeated:
                self._repeated = self._listener.requests.repeated(call, response, data, only)
        else:
            self._write(written)

    def _takes_repeated(self) -> bool:
        """Whether a request that was served may be served again without a look at who asks."""
        return not self._listener.is_recorded

    def _serve_repeated(self, repeated: RepeatedRequest, data: bytes) -> None:
        """Serve a frame that differs from an earlier one in its correlation id alone."""
        began = perf_counter()
        self.last_used = self._loop.time()
        pending = self._listener.submit(repeated.request, repeated.context)
        transport = self.transport
        if transport is not None and pending.response is repeated.response:
            transport.write(repeated.answer_to(data, began))
            return
        call = KafkaRequest(repeated.wire, repeated.request, repeated.context, repeated.correlation_id(data), began)
        self._repeated = None
        written: list[Part] = []
        self._answer_or_park(call, pending, written)
        self._write(written)

    def _serve_buffered(self) -> None:
        """Serve the whole frames of the buffer, up to one that has to wait, or until others have their turn."""
        buffer, most = self._buffer, self.max_request_bytes
        self.last_used = self._loop.time()
        at, end = 0, len(buffer)
        written: list[Part] = []
        turn_ends, answered, counted = perf_counter() + _TURN_SECONDS, 0, 0
        while self._parked is None and self._is_writable and self.transport is not None and end - at >= _SIZE_BYTES:
            size = int.from_bytes(buffer[at : at + _SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= most:
                self._listener.refuse_size(self, size, bytes(buffer[at : at + 64]))
                self._close(written)
                return
            start = at + _SIZE_BYTES
            if end - start < size:
                if size >= _LARGE:
                    # Imported here: many nodes never get such a frame.
                    from rejoin.coordinator.service.kafka.large_frame import LargeFrame  # noqa: PLC0415

                    self._large = LargeFrame(bytes(buffer[at:]), _SIZE_BYTES + size)
                    at = end
                break
            begin, at = at, start + size
            self._serve(bytes(buffer[begin:at]), written)
            answered += sum(map(len, written[counted:]))
            counted = len(written)
            if at < end and (answered > _TURN_BYTES or perf_counter() > turn_ends):
                self._serve_soon()
                break
        if self.transport is None:
            return
        del buffer[:at]
        self._write(written)
        self._read_or_not()

    def _take_large(self, large: LargeFrame, data: bytes) -> None:
        """Take in more of a large frame. Once complete, serve it and the bytes behind it."""
        if self.transport is None:
            return
        rest = large.take(data)
        if rest is None:
            self.last_used = self._loop.time()
            return
        self._large = None
        self._serve_one(large.joined())
        if rest and self.transport is not None:
            self.data_received(rest)

    def _serve(self, frame: bytes, written: list[Part]) -> tuple[KafkaRequest, Response] | None:
        """Hand in the request of a frame, size included; its response is ``written`` if it is there at once.

        Returns both, where the core has answered at once.
        """
        listener = self._listener
        try:
            call = listener.requests.read(frame, self)
        except NotServed as problem:
            listener.refuse(self, problem)
            self._close(written)
            return None
        if isinstance(call, bytes):
            written.append(call)
            return None
        pending = listener.submit(call.request, call.context)
        response = pending.response
        if response is None:
            self._answer_or_park(call, pending, written)
            return None
        self._answer(call, response, written)
        return call, response

    def _answer_or_park(self, call: KafkaRequest, pending: PendingReply, written: list[Part]) -> None:
        """Answer a request, or let it wait for its response."""
        if pending.response is not None or pending.failed:
            self._answer(call, pending.response, written)
        else:
            self._parked = call
            call.waited = True
            self._pending = pending
            pending.when_answered(self._on_answer)

    def _on_answer(self, response: Response | None) -> None:
        """The parked request has its response; none: it never will."""
        call, pending = self._parked, self._pending
        assert call is not None, "one request at a time"
        self.last_used = self._loop.time()
        self._parked = self._pending = None
        if self.transport is None:
            return
        written: list[Part] = []
        if response is None and pending is not None and not pending.failed:
            # A fault: the client sees no answer, but a connection that ends.
            self.transport.abort()
            return
        self._answer(call, response, written)
        if pending is not None and pending.delivery is not None:
            self._parked = call
            self._listener.deliver(self._deliver(pending.delivery, joined(written)))
            return
        self._write(written)
        self._serve_next()

    def _serve_next(self) -> None:
        if self._buffer and self.transport is not None:
            # Not from within: this may be called by the step that answers.
            self._serve_soon()

    def _serve_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._serve_scheduled)

    def _serve_scheduled(self) -> None:
        self._is_scheduled = False
        if self.transport is not None:
            self._serve_buffered()

    async def _deliver(self, delivery: Delivery, answer: bytes) -> None:
        """Let a fault write the answer; the next request waits for that."""
        transport = self.transport
        if transport is None:
            return
        try:
            goes_on = await delivery.write(answer, transport)
        except NoReply:
            transport.abort()
            goes_on = False
        self._parked = None
        if goes_on:
            self._serve_next()
        else:
            self.transport = None

    def _answer(self, call: KafkaRequest, response: Response | None, written: list[Part]) -> None:
        if response is None:
            response = call.request.error_response(call.context.api_version, ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            self._listener.requests.write(call, response, written)
        except NotServed as problem:
            self._listener.refuse(self, problem)
            self._close(written)
        except SchemaError as problem:
            # A bug, which must cost this client's connection only.
            self._listener.log_unwritable(call.wire.api.name, call.wire.version, problem)
            self._close(written)

    # --- writing

    def _write(self, written: list[Part]) -> None:
        """Hand answers to the transport: few bytes at once, many in chunks, each when the socket has taken the last."""
        transport = self.transport
        if transport is None or not written:
            return
        outgoing = self._outgoing
        if outgoing is None:
            if sum(map(len, written)) <= AT_ONCE:
                transport.writelines(flat(written))
                return
            outgoing = self._outgoing = Outgoing(transport)
            self._is_writable = False
            self._read_or_not()
        outgoing.add(written)
        self._count_unsent()
        if not outgoing.is_scheduled:
            self._write_on()

    def _write_on(self) -> None:
        """Hand over the next chunk. Others have their turn before the one behind it."""
        outgoing = self._outgoing
        if outgoing is None or self._is_paused:
            return
        if outgoing.write_some():
            self._count_unsent()
            if not self._is_paused and not outgoing.is_scheduled:
                outgoing.is_scheduled = True
                self._loop.call_soon(self._write_scheduled, outgoing)
            return
        self._outgoing = None
        outgoing.end()
        if not self._is_paused and self.transport is not None:
            self._go_on_serving()

    def _write_scheduled(self, outgoing: Outgoing) -> None:
        outgoing.is_scheduled = False
        self._write_on()

    def _count_unsent(self) -> None:
        """Report the bytes held for a client that does not read."""
        transport, outgoing = self.transport, self._outgoing
        size = 0 if outgoing is None else outgoing.owned
        if transport is not None and self._is_paused:
            size += transport.get_write_buffer_size()
        self._listener.unsent.hold(self, size)

    # --- limits of connections

    def hold(self) -> None:
        """Serve nothing until :meth:`release`; the client does not see that it is not accepted."""
        self._is_writable = False

    def release(self) -> None:
        """Serve what has come meanwhile, and from now on."""
        self.last_used = self._loop.time()
        self._go_on_serving()

    # --- the end

    def close(self) -> None:
        """Write pending answers, then close."""
        self._close([])

    def close_idle(self) -> None:
        """Close; answers that the client did not take in all the time are dropped."""
        if self._is_writable:
            self.close()
        else:
            self.give_up()

    def give_up(self) -> None:
        """End the connection without the answers that wait for the client."""
        transport = self.transport if self._outgoing is None else self._outgoing.transport
        if transport is not None:
            transport.abort()

    def _close(self, written: list[Part]) -> None:
        self._write(written)
        transport, self.transport = self.transport, None
        if transport is None:
            return
        if self._outgoing is None:
            transport.close()
            return
        self._outgoing.is_last = True
        if self._is_reading:
            self._is_reading = False
            transport.pause_reading()

    def _read_or_not(self) -> None:
        """Resume reading unless the client has too many unserved requests, or does not take its answers."""
        transport = self.transport
        is_behind = self._parked is not None or self._is_scheduled
        wanted = self._is_writable and (not is_behind or len(self._buffer) < _READ_AHEAD)
        if transport is not None and wanted is not self._is_reading:
            self._is_reading = wanted
            if wanted:
                transport.resume_reading()
            else:
                transport.pause_reading()
