"""The TLS context of a node's listeners, from PEM files.

Kafka: SslFactory, with stores of type PEM.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rejoin.coordinator.config import Settings
from rejoin.files import check_size, read_bounded
from rejoin.protocol.brokers.listener_address import check_advertised_host

if TYPE_CHECKING:
    from rejoin.coordinator.service.security.self_signed import SelfSignedCertificate

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(
    settings: Settings, made: SelfSignedCertificate | None, on_failed_handshake: Callable[[str], None]
) -> ssl.SSLContext:
    """The context with its certificate; ``made`` is one of this start. Raises ``ValueError`` where that fails.

    An event loop closes a connection whose handshake fails, and says nothing: ``on_failed_handshake`` gets the reason.
    """

    class Connection(ssl.SSLObject):
        server_name = ""
        """The host that the client connects to, as its handshake names it; empty if it names none."""

        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as problem:
                on_failed_handshake(handshake_problem(problem))
                raise

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = Connection
    context.sni_callback = _keep_server_name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if made is not None:
        made.load_into(context)
    else:
        load_certificate(context, settings)
    load_authorities(context, settings)
    context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]
    return context


def _keep_server_name(connection: Any, server_name: str | None, _: ssl.SSLContext) -> None:
    if server_name:
        with suppress(ValueError):
            check_advertised_host(server_name)
            connection.server_name = server_name


def handshake_problem(problem: ssl.SSLError) -> str:
    """Why a handshake failed, in OpenSSL's words."""
    detail = getattr(problem, "verify_message", "")
    return f"{problem.reason or problem}{f': {detail}' if detail else ''}".replace("_", " ").lower()


def load_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """The node's own certificate. Raises ``ValueError`` where that fails."""
    setting, location = "ssl.keystore.location", settings.ssl_keystore_location
    if settings.ssl_certificate_location:
        if location:
            raise ValueError("expected ssl.certificate.location or ssl.keystore.location, not both")
        setting, location = "ssl.certificate.location", settings.ssl_certificate_location
    if not location:
        raise ValueError(
            "a listener has TLS and no certificate: expected ssl.keystore.location, ssl.certificate.location with "
            "ssl.key.location, or --tls-self-signed"
        )
    password = settings.ssl_key_password.get_secret_value()
    try:
        for file in (location, settings.ssl_key_location):
            if file:
                check_size(file)
        # A function: with a text that is empty, OpenSSL would ask the terminal for the password.
        context.load_cert_chain(location, settings.ssl_key_location or None, password=lambda: password)
    except ssl.SSLError as problem:
        raise ValueError(f"{setting} {location}: {_reason(problem, settings.ssl_key_location or location)}") from None
    except OSError as problem:
        files = f"{setting} {location}" + (f", {settings.ssl_key_location}" if settings.ssl_key_location else "")
        raise ValueError(f"{files}: {problem.strerror}; expected PEM files that can be read") from None


def _reason(problem: ssl.SSLError, key_location: str) -> str:
    if problem.reason == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the certificate"
    if b"ENCRYPTED" in read_bounded(key_location):
        return "the private key is encrypted: expected its password as REJOIN_SSL_KEY_PASSWORD in the environment"
    return "expected a PEM file with a certificate and its private key, which may be in ssl.key.location"


def load_authorities(context: ssl.SSLContext, settings: Settings) -> None:
    """Whom the node trusts. Raises ``ValueError`` where that fails."""
    location = settings.ssl_truststore_location
    if not location:
        if settings.ssl_client_auth != "none":
            raise ValueError(
                f"ssl.client.auth={settings.ssl_client_auth}: expected ssl.truststore.location too, a PEM file with "
                "the authorities of the clients"
            )
        return
    try:
        check_size(location)
        context.load_verify_locations(location)
    except ssl.SSLError:
        raise ValueError(f"ssl.truststore.location {location}: expected a PEM file with certificates") from None
    except OSError as problem:
        raise ValueError(f"ssl.truststore.location {location}: {problem.strerror}") from None
