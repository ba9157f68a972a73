"""A request on its way through the proxy, until its answer is with the client."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from rejoin.protocol.wire.codec import read_request_header
from rejoin.protocol.wire.errors import SchemaError
from rejoin.protocol.wire.primitives import Malformed, read_long_varint
from rejoin.proxy.frames import LENGTH_BYTES
from rejoin.proxy.plans import Plan

_INT16: Final = struct.Struct(">h")
_FIRST_TRANSACTIONAL: Final = 3
"""The first version of Produce that names a transactional id."""
NOTHING: Final = b""


class ProxiedRequest:
    """A request with what is known of it.

    ``request`` is the body that is kept, without header; ``answer`` the kept frame without its length. Empty: not kept.
    """

    # Defaults of the class: most requests pass, and set nothing but their plan and correlation id.
    client_id = ""
    body_at = 0
    """Where the body begins in the frame, its length included."""
    arrived_ms = 0.0
    answered_ms = 0.0
    request = NOTHING
    answer = NOTHING
    has_answer = True
    """Whether the broker answers: it does not answer a Produce with acks of 0."""
    is_forwarded = True
    """Whether the broker has it. A rule may answer in the broker's place."""
    is_raw = False
    """True for a bare token of SASL, without a header (SaslHandshake 0)."""
    ready: bytes | None = None
    """The answer in the broker's place."""
    fault: object = None
    """A rule's change of the answer."""
    on_turn: Callable[[], None] | None = None
    """Called when all answers in front of this one are with the client."""

    def __init__(self, plan: Plan, correlation_id: int) -> None:
        self.plan = plan
        self.correlation_id = correlation_id


def is_raw_token(beginning: bytes) -> bool:
    """Whether a frame behind SaslHandshake 0 is a token without a header, and no request.

    Kafka: SaslServerAuthenticator, which knows by its state; the first bytes of PLAIN, SCRAM and GSSAPI are no header.
    """
    key, version = (int.from_bytes(beginning[at : at + 2], "big") for at in (LENGTH_BYTES, LENGTH_BYTES + 2))
    try:
        read_request_header(beginning, LENGTH_BYTES)
    except SchemaError:
        return True
    return key > 100 or version > 64


def acks_of(beginning: bytes, exchange: ProxiedRequest) -> int:
    """The acks of a Produce request, from the beginning of its frame. Raises :class:`SchemaError`."""
    at = exchange.body_at
    try:
        if exchange.plan.is_flexible:
            length = beginning[at]
            at += 1
            if length >= 0x80:
                length, at = read_long_varint(beginning, at, length)
            at += max(length - 1, 0)
        elif exchange.plan.version >= _FIRST_TRANSACTIONAL:
            at += 2 + max(_INT16.unpack_from(beginning, at)[0], 0)
        acks: int = _INT16.unpack_from(beginning, at)[0]
    except (IndexError, struct.error, Malformed):
        raise SchemaError("acks", f"{len(beginning):,} bytes", "a Produce request") from None
    return acks
