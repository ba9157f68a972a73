"""SaslHandshake (key 17) and SaslAuthenticate (key 36): logging in on a connection of Kafka's protocol.

Version 0 of the handshake is followed by tokens without headers, version 1 by SaslAuthenticate (KIP-152). Version 1 of
that has the lifetime of the session (KIP-368).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import Bytes, In, Int64


class SaslHandshakeRequest(Request):
    """Choose a mechanism."""

    mechanism: str

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return SaslHandshakeResponse(error_code=error)


class SaslHandshakeResponse(Response):
    """The mechanisms that the listener has."""

    error_code: ErrorCode = ErrorCode.NONE
    mechanisms: tuple[str, ...] = ()


class SaslAuthenticateRequest(Request):
    """A token of the mechanism."""

    auth_bytes: Bytes

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return SaslAuthenticateResponse(error_code=error, error_message=error.name)


class SaslAuthenticateResponse(Response):
    """The broker's token. A session lifetime of 0 does not end."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, In(1)] = 0
