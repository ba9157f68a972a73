"""SaslHandshake and SaslAuthenticate where they are too late: logging in comes first on a connection, not here.

Kafka: KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest.
"""

from __future__ import annotations

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


class SaslRequests:
    """Refuses both."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx

    def handshake(self, token: Token, _: SaslHandshakeRequest, __: Context) -> None:
        self._ctx.reply(token, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))

    def authenticate(self, token: Token, _: SaslAuthenticateRequest, __: Context) -> None:
        text = "SaslAuthenticate request received after successful authentication"
        self._ctx.reply(token, SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=text))
