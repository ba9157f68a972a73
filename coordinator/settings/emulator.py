"""Settings that Kafka does not have; their names begin with ``emulator.``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from rejoin.coordinator.settings.types import Int32, SettingsPart
from rejoin.protocol.brokers.releases import newest_versions


def _check_release(text: str) -> str:
    if text:
        newest_versions(text)
    return text


Release = Annotated[str, AfterValidator(_check_release)]
"""A release of Kafka, or empty."""


class EmulatorSettings(SettingsPart):
    """Synthetic topics, differences between releases of Kafka, users, and faults of a whole run."""

    emulator_records_per_second: float | None = Field(
        default=None,
        ge=0.0,
        description="Make new topics synthetic: so many records a second in each partition, unless the topic sets "
        "its own rate. Without either, a topic has a real log.",
    )
    emulator_member_order: Literal["join", "hashmap"] = Field(
        default="join",
        description="Order of members where Kafka defines none: by joining, or as in a broker's Java HashMap.",
    )
    emulator_sync_while_loading: Literal["rebalance-in-progress", "load-in-progress"] = Field(
        default="rebalance-in-progress",
        description="Error of SyncGroup while loading: one that consumers survive (27), or that of Kafka 4 (14).",
    )
    emulator_transaction_version: Int32 = Field(
        default=2,
        ge=0,
        le=2,
        description="First level of Kafka's feature transaction.version: 0, 1, or 2 (KIP-890: each end raises the "
        "epoch). UpdateFeatures changes it.",
    )
    emulator_transaction_marker_delay_ms: Int32 = Field(
        default=0,
        ge=0,
        description="How long the end of a transaction is decided before its markers are written.",
    )
    emulator_as_kafka: Release = Field(
        default="",
        description="A release of Kafka from 0.11.0 to 4.4, as 2.8: APIs and versions that it does not have are "
        "neither offered nor served. Answers are those of that release where docs/releases.md says so.",
    )
    emulator_users_file: str = Field(
        default="", description="YAML file with the users: their passwords, or the keys that SCRAM needs."
    )
    emulator_users: SecretStr = Field(
        default=SecretStr(""), description="In place of such a file, its text. Only from the environment."
    )
    emulator_peers_username: str = Field(
        default="", description="With several nodes on one store: the user as which this node logs in to the others."
    )
    emulator_peers_password: SecretStr = Field(
        default=SecretStr(""), description="Its password, if the users have none for it. Only from the environment."
    )
    emulator_oauthbearer_unsecured: bool = Field(
        default=False,
        description="Accept tokens without a signature, which anyone can make.",
    )
    emulator_failed_logins_per_minute: Int32 = Field(
        default=60, ge=1, description="Failed logins that one address may have; with more, all its logins are refused."
    )
    emulator_tls_self_signed: bool = Field(
        default=False, description="Make an authority and a certificate at the start, for all listeners with TLS."
    )
    emulator_tls_ca_file: str = Field(
        default="", description="File to write that authority's certificate to. The default is a temporary one."
    )
    emulator_insecure: bool = Field(
        default=False, description="Allow listeners without authentication that other machines can reach."
    )
    emulator_deny: tuple[str, ...] = Field(
        default=(),
        description="Operations to deny: User:NAME:OPERATION:KIND=NAME, as in User:*:READ:group=secret-*.",
    )
