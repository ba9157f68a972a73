"""Settings of a node's listeners: addresses, TLS, SASL, and limits of connections."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart
from rejoin.protocol.brokers.listener_address import checked_advertised, checked_listeners
from rejoin.protocol.brokers.security_protocol import protocols_from


def _check_protocols(text: str) -> str:
    protocols_from(text)
    return text


ProtocolMap = Annotated[str, AfterValidator(_check_protocols)]
"""Security protocols by the name of a listener, as in Kafka."""

Listeners = Annotated[str, AfterValidator(checked_listeners)]
"""Addresses by the name of their listener, as in Kafka."""

AdvertisedListeners = Annotated[str, AfterValidator(checked_advertised)]


def connections_by_address(text: str) -> dict[str, int]:
    """Limits by address, of ``ADDRESS:COUNT`` with commas between them. Raises ``ValueError``."""
    found: dict[str, int] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        address, colon, count = pair.rpartition(":")
        if not colon or not address or not count.isdecimal():
            raise ValueError(f"{pair!r}: expected ADDRESS:COUNT, as 127.0.0.1:200, with commas between pairs")
        found["127.0.0.1" if address == "localhost" else address.strip("[]")] = int(count)
    return found


def _check_overrides(text: str) -> str:
    connections_by_address(text)
    return text


class ListenerSettings(SettingsPart):
    """The id of a node, and who may connect to it."""

    broker_id: Int32 = Field(default=1, ge=0, description="Id of this node.")
    broker_rack: str = Field(
        default="",
        description="Rack of this node. With --brokers, the racks of brokers 1, 2, ... with commas between them; after "
        "the last one the first comes again.",
    )
    listeners: Listeners = Field(
        default="",
        description="Addresses for Kafka's protocol, as PLAINTEXT://127.0.0.1:9092,DOCKER://0.0.0.0:29092, each with a "
        "port of its own; in place of --kafka-port.",
    )
    advertised_listeners: AdvertisedListeners = Field(
        default="",
        description="Addresses that clients of each listener are sent to, as DOCKER://broker:29092; port 0 is the port "
        "that was bound.",
    )
    listener_security_protocol_map: ProtocolMap = Field(
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        description="Security protocol of each listener, as DOCKER:SSL,HTTP:SASL_SSL; HTTP, which may be left out, is "
        "the HTTP service. Without a protocol for a listener the start is refused.",
    )
    ssl_keystore_location: str = Field(
        default="", description="PEM file with the private key of the listeners, and their certificate with its chain."
    )
    ssl_certificate_location: str = Field(
        default="", description="In place of a keystore: PEM file with the certificate and its chain."
    )
    ssl_key_location: str = Field(default="", description="PEM file with the private key of that certificate.")
    ssl_key_password: SecretStr = Field(
        default=SecretStr(""), description="Password of the private key. Only from the environment."
    )
    ssl_keystore_type: Literal["PEM"] = Field(default="PEM", description="Only PEM is supported.")
    ssl_truststore_location: str = Field(
        default="", description="PEM file with the authorities that sign certificates of clients and of other nodes."
    )
    ssl_truststore_type: Literal["PEM"] = Field(default="PEM", description="Only PEM is supported.")
    ssl_client_auth: Literal["none", "requested", "required"] = Field(
        default="none", description="Whether a client of a listener with TLS must show a certificate."
    )
    ssl_principal_mapping_rules: str = Field(
        default="DEFAULT",
        description="Rules from the subject of a client's certificate to its principal, as RULE:^CN=(.*?),.*$/$1/L,"
        "DEFAULT; the first one that fits.",
    )
    sasl_enabled_mechanisms: str = Field(
        default="",
        description="SASL mechanisms of listeners with SASL, as PLAIN,SCRAM-SHA-512. The default is all that there "
        "are users or tokens for.",
    )
    sasl_server_max_receive_size: Int32 = Field(
        default=524_288, ge=1, description="Largest request of a client that is not logged in yet."
    )
    sasl_oauthbearer_jwks_endpoint_url: str = Field(
        default="", description="File with the keys that sign tokens, as file:/etc/keys.json (a JWK set)."
    )
    sasl_oauthbearer_expected_audience: str = Field(
        default="", description="Audiences, separated by commas; a token must name one of them. Empty: any."
    )
    sasl_oauthbearer_expected_issuer: str = Field(default="", description="The issuer of tokens. Empty: any.")
    sasl_oauthbearer_sub_claim_name: str = Field(
        default="sub", min_length=1, description="The claim of a token that is the name of the user."
    )
    sasl_oauthbearer_clock_skew_seconds: Int32 = Field(
        default=30, ge=0, description="How far the clock that tokens are made by may be off."
    )
    connections_max_reauth_ms: Int64 = Field(
        default=0,
        ge=0,
        description="How long a login by SASL lasts, unless the client logs in again; with 0, as long as its token.",
    )
    connection_failed_authentication_delay_ms: Int32 = Field(
        default=100, ge=0, description="How long the answer to a failed login is held back."
    )
    socket_request_max_bytes: Int32 = Field(
        default=104_857_600, ge=1, description="Largest request of Kafka's protocol; a larger one ends its connection."
    )
    max_connections: Int32 = Field(
        default=2**31 - 1,
        ge=0,
        description="Most connections of Kafka's protocol; one more waits until another is closed.",
    )
    max_connections_per_ip: Int32 = Field(
        default=2**31 - 1, ge=0, description="Most connections of one address; one more is closed at once."
    )
    max_connections_per_ip_overrides: Annotated[str, AfterValidator(_check_overrides)] = Field(
        default="", description="Most connections of single addresses, as 127.0.0.1:200,10.0.0.7:5."
    )
    max_connection_creation_rate: Int32 = Field(
        default=2**31 - 1,
        ge=0,
        description="New connections a second, over quota.window.num windows; above it they are accepted later.",
    )
    connections_max_idle_ms: Int64 = Field(
        default=600_000,
        ge=-(2**63),
        description="How long a connection of Kafka's protocol may be idle; below 0: for ever.",
    )
