"""The security protocol of each listener of a node, with its certificates and logins.

What takes time to import, or more than the standard library, is imported where a listener needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.coordinator.service.security.failed_logins import FailedLogins
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.brokers.security_protocol import SecurityProtocol, protocols_from

if TYPE_CHECKING:
    import ssl

    from rejoin.coordinator.service.security.logins import Logins
    from rejoin.coordinator.service.security.principals import SslPrincipals
    from rejoin.coordinator.service.security.self_signed import SelfSignedCertificate
    from rejoin.coordinator.service.security.users import Users

_EXPOSED: Final = (
    "other machines can reach it, and its clients need no login: expected users (--users-file), or certificates of "
    "clients (ssl.client.auth=required), or --insecure to allow that; docs/security.md has more"
)
_UNSECURED: Final = (
    "other machines can reach it, and with emulator.oauthbearer.unsecured=true anyone can make a token for it: "
    "expected that setting to be false, or --insecure to allow it; docs/security.md has more"
)


def _ignore(_: str) -> None:
    pass


class ListenerSecurity:
    """Protection of each listener. A certificate made at the start is valid for ``names``.

    Raises ``ValueError`` where files or settings cannot be used.
    """

    def __init__(self, settings: Settings, names: tuple[str, ...] = ()) -> None:
        self._settings = settings
        self._names = names
        self._protocols = protocols_from(settings.listener_security_protocol_map)
        self._context: ssl.SSLContext | None = None
        self._self_signed: SelfSignedCertificate | None = None
        self._principals: SslPrincipals | None = None
        self._logins: Logins | None = None
        self._users: Users | None = None
        self.failed_logins = FailedLogins(settings.emulator_failed_logins_per_minute)
        self.on_failed_handshake: Callable[[str], None] = _ignore
        """Called with the reason why a client's TLS handshake has failed, on any listener."""
        self.default = SecurityProtocol.of(tls=self._has_certificate, sasl=self._has_logins)
        """The protocol of a listener that no setting names."""

    @property
    def _has_certificate(self) -> bool:
        settings = self._settings
        return bool(
            settings.emulator_tls_self_signed or settings.ssl_keystore_location or settings.ssl_certificate_location
        )

    @property
    def _has_logins(self) -> bool:
        settings = self._settings
        return bool(
            settings.emulator_users_file
            or settings.emulator_users.get_secret_value()
            or settings.sasl_oauthbearer_jwks_endpoint_url
            or settings.emulator_oauthbearer_unsecured
        )

    @property
    def ca_location(self) -> str:
        """The file with the authority that was made at the start; empty without one."""
        return self._self_signed.ca_location if self._self_signed is not None else ""

    def peer_tls(self) -> ssl.SSLContext | None:
        """TLS for HTTP requests to other nodes, which are set up as this one; none without TLS."""
        if self.tls(HTTP) is None:
            return None
        from rejoin.coordinator.service.security.peer_login import peer_context  # noqa: PLC0415

        return peer_context(self._settings, self.ca_location)

    def peer_authorization(self) -> str | None:
        """The header with which it logs in there, if it has one."""
        from rejoin.coordinator.service.security.peer_login import peer_authorization  # noqa: PLC0415

        return peer_authorization(self._settings) if self.protocol(HTTP).has_sasl else None

    def protocol(self, listener: str) -> SecurityProtocol:
        """The security protocol of a listener. Raises ``ValueError`` where no setting names one.

        Kafka: No security protocol defined for listener. A listener's name says nothing by itself.
        """
        found = self._protocols.get(listener, self.default if listener == HTTP else None)
        if found is None:
            known = ", ".join(SecurityProtocol)
            raise ValueError(
                f"listener {listener}: listener.security.protocol.map has no security protocol for it; "
                f"expected {listener}:PROTOCOL there, with one of {known}"
            )
        return found

    @property
    def has_tls(self) -> bool:
        """Whether any listener has had use of TLS."""
        return self._context is not None

    def check_exposed(self, listener: str, address: str) -> None:
        """Refuse a listener that other machines can reach, unless all its clients must prove who they are."""
        settings, protocol = self._settings, self.protocol(listener)
        if settings.emulator_insecure:
            return
        if protocol.has_sasl and settings.emulator_oauthbearer_unsecured:
            raise ValueError(f"listener {listener} on {address}: {_UNSECURED}")
        if not protocol.has_sasl and not (protocol.has_tls and settings.ssl_client_auth == "required"):
            raise ValueError(f"listener {listener} on {address}: {_EXPOSED}")

    def tls(self, listener: str) -> ssl.SSLContext | None:
        """The TLS context of a listener; none where connections are not encrypted."""
        if not self.protocol(listener).has_tls:
            return None
        if self._context is None:
            from rejoin.coordinator.service.security.tls import server_context  # noqa: PLC0415

            if self._settings.emulator_tls_self_signed:
                from rejoin.coordinator.service.security.self_signed import SelfSignedCertificate  # noqa: PLC0415

                self._self_signed = SelfSignedCertificate(self._names, self._settings.emulator_tls_ca_file)
            self._context = server_context(self._settings, self._self_signed, self._handshake_failed)
        return self._context

    def _handshake_failed(self, reason: str) -> None:
        self.on_failed_handshake(reason)

    def principals(self) -> SslPrincipals:
        """Who shows a certificate."""
        if self._principals is None:
            from rejoin.coordinator.service.security.principals import SslPrincipals  # noqa: PLC0415

            self._principals = SslPrincipals(self._settings.ssl_principal_mapping_rules)
        return self._principals

    def logins(self) -> Logins:
        """Who may log in by SASL, or with the same names over HTTP."""
        if self._logins is None:
            from rejoin.coordinator.service.security.logins import Logins  # noqa: PLC0415

            self._logins = Logins(self._settings, self._known_users())
        return self._logins

    def file_users(self) -> FileUsers:
        """Users of SCRAM from the users file or the environment. Raises ``ValueError`` for a mistake in it."""
        settings = self._settings
        if not settings.emulator_users_file and not settings.emulator_users.get_secret_value():
            return NO_USERS
        return self._known_users().iterations()

    def _known_users(self) -> Users:
        if self._users is None:
            from rejoin.coordinator.service.security.users import users_from  # noqa: PLC0415

            self._users = users_from(self._settings)
        return self._users

    def prepare(self, listener: str) -> None:
        """Load a listener's certificates and logins, so that a mistake is found before anything is bound."""
        self.tls(listener)
        protocol = self.protocol(listener)
        if protocol.has_sasl:
            self.logins()
        elif protocol.has_tls:
            self.principals()

    def close(self) -> None:
        """Remove the files made for this node."""
        if self._self_signed is not None:
            self._self_signed.remove()
            self._self_signed = None
