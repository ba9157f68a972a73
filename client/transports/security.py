"""Settings of TLS and SASL for the transports: a login on a connection, or a header of requests.

Source: Kafka's SaslClientAuthenticator.
"""

from __future__ import annotations

import base64
import secrets

from rejoin.client.core.errors import AuthenticationError, KafkaError
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.http import HttpSecurity
from rejoin.client.transports.kafka.broker import Security
from rejoin.client.transports.kafka.connection import BrokerConnection
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rejoin.protocol.registry import SASL_AUTHENTICATE, SASL_HANDSHAKE
from rejoin.protocol.sasl.exchange import OAUTHBEARER, AuthenticationFailed, SaslClient
from rejoin.protocol.sasl.oauthbearer import OAuthBearerClient
from rejoin.protocol.sasl.plain import PlainClient
from rejoin.protocol.sasl.scram import ScramClient

_NONCE_BYTES = 24
_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 1


def kafka_security(config: ClientSecurityConfig) -> Security:
    """For the transport of Kafka's protocol. Raises ``ValueError`` for files that cannot be used."""
    return Security(config.tls_context(), SaslLogin(config) if config.has_sasl else None)


def http_security(config: ClientSecurityConfig) -> HttpSecurity:
    """For the transport over HTTP, where every mechanism with a password is basic authentication."""
    return HttpSecurity(config.tls_context(), _authorization(config) if config.has_sasl else None)


def _authorization(config: ClientSecurityConfig) -> str:
    if config.sasl_mechanism == OAUTHBEARER:
        return f"Bearer {config.token()}"
    pair = f"{config.sasl_username}:{config.sasl_password.get_secret_value()}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


class SaslLogin:
    """Logs in on each new connection, and before a login ends. Raises AuthenticationError where that is refused.

    Returns for how many ms it lasts, 0 for as long as the connection.
    """

    def __init__(self, config: ClientSecurityConfig) -> None:
        self._config = config

    async def __call__(self, connection: BrokerConnection) -> int:
        mechanism = self._config.sasl_mechanism
        handshake = await connection.ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), _HANDSHAKE_VERSION)
        assert isinstance(handshake, SaslHandshakeResponse)
        if handshake.error_code is not ErrorCode.NONE:
            offered = ", ".join(handshake.mechanisms) or "none"
            detail = f"sasl.mechanism {mechanism}: {handshake.error_code.name}; the broker has: {offered}"
            raise AuthenticationError(f"{connection.address}: {detail}")
        client = self._client()
        token: bytes | None = client.first()
        lifetime_ms = 0
        try:
            while token is not None:
                answer = await self._exchange(connection, token)
                token, lifetime_ms = client.evaluate(answer.auth_bytes), answer.session_lifetime_ms
        except AuthenticationFailed as problem:
            raise AuthenticationError(f"{connection.address}: {problem}") from None
        return lifetime_ms

    async def _exchange(self, connection: BrokerConnection, token: bytes) -> SaslAuthenticateResponse:
        try:
            answer = await connection.ask(
                SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token), _AUTHENTICATE_VERSION
            )
        except TransportError as error:
            # Kafka: a broker that closes the connection here may have refused the login without an answer.
            raise TransportError(error.failure, f"{error.detail}, while this client logged in") from error
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.NONE:
            raise AuthenticationError(f"{connection.address}: {answer.error_message or answer.error_code.name}")
        return answer

    def _client(self) -> SaslClient:
        config = self._config
        name, password = config.sasl_username, config.sasl_password.get_secret_value()
        match config.sasl_mechanism:
            case "PLAIN":
                return PlainClient(name, password)
            case "OAUTHBEARER":
                try:
                    return OAuthBearerClient(config.token())
                except ValueError as problem:
                    raise KafkaError(str(problem)) from None
            case mechanism:
                return ScramClient(mechanism, name, password, secrets.token_urlsafe(_NONCE_BYTES))
