"""Finds out which protocol an address speaks that closes connections before it answers.

It may speak another protocol than it was asked in, or be starting. So it is asked in the others: only an answer there
shows that the address or security.protocol is wrong. No login is sent, and no certificate is checked.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, NamedTuple

from rejoin.client.core.errors import WrongProtocolError
from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.registry import API_VERSIONS
from rejoin.protocol.wire.codec import codec_of

_PATIENCE_SECONDS: Final = 2.0
_CORRELATION_ID: Final = 0x5EED
_HTTP_REQUEST: Final = b"HEAD / HTTP/1.0\r\n\r\n"
_BEGINNING: Final = 8
"""So many bytes of an answer show its protocol: a length and the correlation id, or ``HTTP/1.1``."""


class Spoken(NamedTuple):
    """The protocol of a connection."""

    is_http: bool
    has_tls: bool

    def __str__(self) -> str:
        protocol = "HTTP" if self.is_http else "Kafka's protocol"
        return f"{protocol} {'with' if self.has_tls else 'without'} TLS"


async def wrong_protocol(address: BrokerAddress, asked: Spoken) -> WrongProtocolError | None:
    """The error for an address that speaks something else than it was asked in; None where that does not show."""
    # Differs: Kafka's client tries for as long as it is let.
    found = await _spoken_instead(address, asked)
    if found is None:
        return None
    return WrongProtocolError(f"{address} speaks {found}, and was asked in {asked}; {_advice(address, found, asked)}")


def _advice(address: BrokerAddress, found: Spoken, asked: Spoken) -> str:
    if found.is_http:
        return f"write http{'s' if found.has_tls else ''}://{address}"
    write = f"write {address}" if asked.is_http else ""
    # With https:// there is TLS whatever security.protocol says.
    is_set = found.has_tls == asked.has_tls and not (asked.is_http and asked.has_tls)
    protocols = "SSL or SASL_SSL" if found.has_tls else "PLAINTEXT or SASL_PLAINTEXT"
    security = "" if is_set else f"set security.protocol to {protocols}"
    return " and ".join(filter(None, (write, security)))


async def _spoken_instead(address: BrokerAddress, asked: Spoken) -> Spoken | None:
    is_http, has_tls = asked
    for other in (Spoken(not is_http, has_tls), Spoken(not is_http, not has_tls), Spoken(is_http, not has_tls)):
        # A listener that wants a certificate of its clients answers none without: its handshake is enough.
        if await _answers(address, other, handshake_only=other.has_tls and other.is_http == is_http):
            return other
    return None


async def _answers(address: BrokerAddress, spoken: Spoken, *, handshake_only: bool) -> bool:
    """Whether a new connection is answered in this protocol."""
    writer = None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(*address, ssl=_unchecked() if spoken.has_tls else None)
            if handshake_only:
                return True
            writer.write(_HTTP_REQUEST if spoken.is_http else _kafka_request())
            beginning = await reader.readexactly(_BEGINNING)
    except (OSError, EOFError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.transport.abort()
    if spoken.is_http:
        return beginning.startswith(b"HTTP/")
    return int.from_bytes(beginning[4:], "big") == _CORRELATION_ID


def _kafka_request() -> bytes:
    """ApiVersions in version 0, which every broker answers, before a login as well."""
    codec = codec_of(API_VERSIONS.key, 0)
    assert codec is not None
    return codec.request_frame(_CORRELATION_ID, "rejoin", ApiVersionsRequest())


def _unchecked() -> ssl.SSLContext:
    """A context that takes any certificate: nothing is sent that others must not read."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
