"""Security of a client's connections, under Kafka's names; passwords have librdkafka's.

Source: Kafka's SslConfigs and SaslConfigs, with stores of type PEM.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from rejoin.protocol.sasl.exchange import OAUTHBEARER

if TYPE_CHECKING:
    from ssl import SSLContext

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


def dotted(name: str) -> str:
    """Kafka's name of a setting."""
    return name.replace("_", ".")


class ClientSecurityConfig(BaseModel):
    """The settings of TLS and SASL, which every client has. Frozen."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=dotted, validate_by_name=True, validate_by_alias=True
    )

    security_protocol: Protocol = Field(
        default="PLAINTEXT", description="Whether connections have TLS, and whether this client logs in by SASL."
    )
    ssl_truststore_location: str = Field(
        default="", description="PEM file with the authorities to trust. The default is those of the system."
    )
    ssl_keystore_location: str = Field(
        default="", description="PEM file with this client's private key and certificate, where brokers want one."
    )
    ssl_key_password: SecretStr = Field(default=SecretStr(""), description="Password of that private key.")
    ssl_endpoint_identification_algorithm: Literal["https", ""] = Field(
        default="https", description="Compare a broker's certificate with its address; empty: do not."
    )
    sasl_mechanism: Mechanism = Field(default="PLAIN", description="How this client logs in.")
    sasl_username: str = Field(default="", description="User for PLAIN and SCRAM, and for HTTP's basic authentication.")
    sasl_password: SecretStr = Field(default=SecretStr(""), description="The user's password.")
    sasl_oauthbearer_token_endpoint_url: str = Field(
        default="", description="File with the token for OAUTHBEARER, as file:/run/token; read at each login."
    )

    @model_validator(mode="after")
    def _has_what_a_login_needs(self) -> Self:
        if not self.security_protocol.startswith("SASL"):
            return self
        if self.sasl_mechanism == OAUTHBEARER:
            if urlsplit(self.sasl_oauthbearer_token_endpoint_url).scheme != "file":
                raise ValueError("sasl.mechanism OAUTHBEARER without sasl.oauthbearer.token.endpoint.url=file:PATH")
        elif not self.sasl_username or not self.sasl_password:
            raise ValueError(f"sasl.mechanism {self.sasl_mechanism} without sasl.username and sasl.password")
        return self

    @property
    def has_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")

    def tls_context(self) -> SSLContext | None:
        """The context of connections; none without TLS. Raises ``ValueError`` for files that cannot be used."""
        if not self.has_tls:
            return None
        import ssl  # noqa: PLC0415 (most clients do without)

        setting = "ssl.truststore.location"
        try:
            context = ssl.create_default_context(cafile=self.ssl_truststore_location or None)
            if self.ssl_keystore_location:
                setting = "ssl.keystore.location"
                context.load_cert_chain(self.ssl_keystore_location, password=self.ssl_key_password.get_secret_value)
        except OSError as problem:  # which an SSLError is as well
            location = self.ssl_keystore_location if "key" in setting else self.ssl_truststore_location
            raise ValueError(f"{setting} {location}: {problem.strerror or problem}; expected a PEM file") from None
        context.check_hostname = self.ssl_endpoint_identification_algorithm == "https"
        return context

    def token(self) -> str:
        """The token for OAUTHBEARER. Raises ``ValueError`` for a file that cannot be read."""
        path = unquote(urlsplit(self.sasl_oauthbearer_token_endpoint_url).path)
        try:
            return Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or "not a token"
            raise ValueError(f"sasl.oauthbearer.token.endpoint.url: {path}: {reason}") from None
