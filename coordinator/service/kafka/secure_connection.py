"""Connections of listeners with TLS or SASL: who the client is, before anything is served.

Kafka: SslTransportLayer, SaslChannelBuilder.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.service.kafka.connection import KafkaConnection
from rejoin.coordinator.service.kafka.requests import KafkaRequest
from rejoin.coordinator.service.security.authenticator import Authenticator, Login, LoginStep, Verdict
from rejoin.coordinator.service.security.logins import Logins
from rejoin.coordinator.service.security.principals import SslPrincipals
from rejoin.protocol.message import Response
from rejoin.protocol.wire.writer import Part

if TYPE_CHECKING:
    from rejoin.coordinator.service.kafka.listener import KafkaListener

_SIZE_BYTES: Final = 4
_HANDSHAKE: Final = b"\0\x11"
"""The key that begins a SaslHandshake."""
_LOGIN_INTERVAL_SECONDS: Final = 1.0
"""Kafka: KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""


class TlsConnection(KafkaConnection):
    """A connection whose client is known by its certificate, if it shows one."""

    __slots__ = ("_principals",)

    def __init__(self, listener: KafkaListener, name: str, principals: SslPrincipals) -> None:
        super().__init__(listener, name)
        self._principals = principals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        principal = self._principals.principal(transport.get_extra_info("peercert"))
        if principal is None:
            self._listener.refuse_login(self, "no rule of ssl.principal.mapping.rules fits the certificate")
            self.close()
        else:
            self.principal = principal


class SaslConnection(KafkaConnection):
    """A connection whose client logs in first, and again before its login ends (KIP-368)."""

    __slots__ = ("_authenticator", "_expires_at", "_log_in_again_at", "_login", "_logins", "_stored")

    def __init__(self, listener: KafkaListener, name: str, logins: Logins) -> None:
        super().__init__(listener, name)
        self._logins = logins
        self._login: Login | None = None
        self._stored = listener.stored_credentials()
        self._expires_at: int | None = None
        self._log_in_again_at = 0.0
        self._authenticator: Authenticator | None = self._new_login()
        self.max_request_bytes = listener.max_login_bytes

    def _serve(self, frame: bytes, written: list[Part]) -> tuple[KafkaRequest, Response] | None:
        if self.transport is None:
            return None
        authenticator = self._authenticator or self._further_login(frame)
        if authenticator is not None:
            self._log_in(authenticator, frame, written)
        elif self._expires_at is not None and self._stored.now() > self._expires_at:
            self._listener.refuse_login(self, "the login has ended, and the client did not log in again")
            self._close(written)
        else:
            return super()._serve(frame, written)
        return None

    def _takes_repeated(self) -> bool:
        return False  # the login may have ended

    def _further_login(self, frame: bytes) -> Authenticator | None:
        """The login that a handshake begins where logins end; else it is a request like others."""
        now = self._loop.time()
        if self._expires_at is None or not frame.startswith(_HANDSHAKE, _SIZE_BYTES) or now < self._log_in_again_at:
            return None
        self._log_in_again_at = now + _LOGIN_INTERVAL_SECONDS
        self._authenticator = self._new_login()
        return self._authenticator

    def _new_login(self) -> Authenticator:
        self._stored = self._listener.stored_credentials()
        return Authenticator(self._logins, self._listener.max_login_ms, self._login, self._stored)

    def _log_in(self, authenticator: Authenticator, frame: bytes, written: list[Part]) -> None:
        failures, now = self._listener.security.failed_logins, self._loop.time()
        is_limited = failures.wait_seconds(self.client_host, now) > 0
        step = authenticator.receive(frame[_SIZE_BYTES:], self._stored.now(), is_limited=is_limited)
        if authenticator.has_failed:
            failures.add(self.client_host, now)
        match step.verdict:
            case Verdict.SERVE_API_VERSIONS:
                super()._serve(frame, written)
            case Verdict.GOES_ON:
                written.append(step.answer)
            case Verdict.LOGGED_IN:
                written.append(step.answer)
                self._logged_in(authenticator.login)
            case Verdict.REFUSED:
                self._refused(step, written)
            case Verdict.CLOSED:
                self._listener.refuse_login(self, step.reason)
                self._close(written)

    def _logged_in(self, login: Login | None) -> None:
        assert login is not None, "the login is complete"
        self._authenticator, self._login = None, login
        self._expires_at = None if login.lifetime_ms is None else self._stored.now() + login.lifetime_ms
        self.principal, self.by_token = login.principal, login.by_token
        self.heads.clear()
        self.max_request_bytes = self._listener.max_request_bytes

    def _refused(self, step: LoginStep, written: list[Part]) -> None:
        """Hold the answer back, so that passwords cannot be tried quickly, and close."""
        self._listener.refuse_login(self, step.reason)
        self._write(written)
        if self._outgoing is not None:
            self._close([])  # earlier answers wait for the client, and the refusal cannot stand before them
            return
        transport, self.transport = self.transport, None
        assert transport is not None, "the connection is open"
        transport.pause_reading()
        self._listener.end_refused(transport, step.answer)
