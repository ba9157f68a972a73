"""TLS and logins of the proxy's own listeners, by the settings of a coordinator's listeners.

A login that the proxy checks ends here: the cluster sees the proxy's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.security.authenticator import Authenticator, LoginStep, Verdict
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.protocol.registry import SASL_HANDSHAKE
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.frames import LENGTH_BYTES
from rejoin.proxy.side import ConnectionRefused

if TYPE_CHECKING:
    from ssl import SSLContext

    from rejoin.proxy.relay import Relay

SETTINGS: Final = frozenset(
    {
        *("ssl_keystore_location", "ssl_keystore_type", "ssl_certificate_location", "ssl_key_location"),
        *("ssl_key_password", "ssl_truststore_location", "ssl_truststore_type", "ssl_client_auth"),
        *("sasl_enabled_mechanisms", "sasl_server_max_receive_size", "connection_failed_authentication_delay_ms"),
        *("emulator_tls_self_signed", "emulator_tls_ca_file", "emulator_users", "emulator_users_file"),
        *("emulator_failed_logins_per_minute", "emulator_insecure"),
    }
)
"""The settings of a coordinator that listeners of a proxy have, by their Python names."""

LOGIN_SECONDS: Final = 30.0
"""How long a client has to log in."""


class ClientProtection:
    """TLS and users of the listeners. Raises ``ValueError`` for other settings, and for files that cannot be used.

    A certificate made at the start is valid for ``names``.
    """

    def __init__(self, settings: Settings, names: tuple[str, ...] = ()) -> None:
        other = sorted(settings.model_fields_set - SETTINGS)
        if other:
            known = ", ".join(sorted(name.replace("_", ".") for name in SETTINGS))
            raise ValueError(f"{other[0].replace('_', '.')}: a proxy has no such setting; it has {known}")
        self.listeners = ListenerSecurity(settings, names)
        self._protocol = self.listeners.default
        self.listeners.prepare(self._protocol)
        self.refused_seconds = settings.connection_failed_authentication_delay_ms / 1_000
        """How long the answer to a failed login is held back."""
        self.longest_login = settings.sasl_server_max_receive_size
        """Bytes of the largest request before the login."""

    @property
    def tls(self) -> SSLContext | None:
        """The context of the listeners; none where connections are not encrypted."""
        return self.listeners.tls(self._protocol)

    @property
    def ca_location(self) -> str:
        """The file with the authority that was made at the start; empty without one."""
        return self.listeners.ca_location

    @property
    def has_logins(self) -> bool:
        """Whether clients log in to the proxy, and not to the brokers behind it."""
        return self._protocol.has_sasl

    def check_exposed(self, host: str) -> None:
        """Refuse a host that other machines can reach, unless all clients must prove who they are."""
        self.listeners.check_exposed(self._protocol, host or "every address")

    def close(self) -> None:
        """Remove the files that were made at the start."""
        self.listeners.close()


class ClientLogin:
    """The login of one client, by PLAIN or SCRAM, before any of its requests passes."""

    def __init__(self, relay: Relay, protection: ClientProtection) -> None:
        self._relay = relay
        self._protection = protection
        self._authenticator = Authenticator(protection.listeners.logins(), 0)
        self._timer = relay.proxy.call_later(LOGIN_SECONDS, self._too_late)

    def check_size(self, size: int) -> None:
        """Refuse a request that is too large for a client that is not logged in. Raises ConnectionRefused."""
        if size > self._protection.longest_login:
            longest = self._protection.longest_login
            raise ConnectionRefused(f"a request of {size:,} bytes before the login; expected at most {longest:,}")

    def takes(self, frame: bytes) -> bool:
        """Take a frame of the login; false for ApiVersions, which the broker answers."""
        relay, authenticator = self._relay, self._authenticator
        proxy, failures = relay.proxy, self._protection.listeners.failed_logins
        is_limited = failures.wait_seconds(relay.client_host, proxy.loop_time()) > 0
        step = authenticator.receive(frame[LENGTH_BYTES:], round(proxy.now_ms()), is_limited=is_limited)
        if authenticator.has_failed:
            failures.add(relay.client_host, proxy.loop_time())
        match step.verdict:
            case Verdict.SERVE_API_VERSIONS:
                return False
            case Verdict.LOGGED_IN:
                relay.login = None
                assert authenticator.login is not None, "the login is complete"
                relay.principal = authenticator.login.principal
                self.end()
                self._answer(step.answer)
            case Verdict.GOES_ON:
                self._answer(step.answer)
            case Verdict.REFUSED:
                # Held back, so that passwords cannot be tried quickly. Nothing more is taken from the client.
                relay.is_draining = True
                proxy.call_later(self._protection.refused_seconds, lambda: self._refuse(step))
            case Verdict.CLOSED:
                raise ConnectionRefused(step.reason)
        return True

    def end(self) -> None:
        """Wait no longer."""
        self._timer.cancel()

    def _answer(self, answer: bytes) -> None:
        relay = self._relay
        plan = relay.proxy.plans[SASL_HANDSHAKE.key, 1]
        relay.proxy.count(plan)
        exchange = ProxiedRequest(plan, -1)
        exchange.is_forwarded = False
        exchange.ready = answer
        relay.pending.append(exchange)
        relay.settle()

    def _refuse(self, step: LoginStep) -> None:
        relay = self._relay
        if relay.client.transport is None:
            return
        relay.proxy.login_refused(relay, step.reason)
        if step.answer:
            self._answer(step.answer)
        else:
            relay.end()

    def _too_late(self) -> None:
        relay = self._relay
        if relay.login is self and relay.client.transport is not None:
            relay.proxy.login_refused(relay, f"no login within {LOGIN_SECONDS:g} s")
            relay.end()
