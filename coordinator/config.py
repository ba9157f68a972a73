"""Settings, under Kafka's own dotted names where Kafka has one, with Kafka's defaults.

Names that begin with ``emulator.`` are ours. Every setting can be given as ``-c NAME=VALUE`` or as an environment
variable: ``REJOIN_`` and the name in capitals with underscores, ``REJOIN_GROUP_INITIAL_REBALANCE_DELAY_MS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from rejoin.coordinator.consumer_settings import ConsumerGroupSettings
from rejoin.coordinator.setting_types import Int32, Int64
from rejoin.coordinator.topic_defaults import TopicDefaults
from rejoin.protocol.brokers.listener_address import checked_advertised, checked_listeners
from rejoin.protocol.brokers.releases import newest_versions
from rejoin.protocol.brokers.security_protocol import protocols_from
from rejoin.protocol.validation import reason

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""Longest wait of a new member in the join phase before it is removed. Not a setting in Kafka."""

END_TXN_KEY: Final = 26
FIRST_END_WITH_EPOCH_BUMP: Final = 5


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _check_protocols(text: str) -> str:
    protocols_from(text)
    return text


def _check_release(text: str) -> str:
    if text:
        newest_versions(text)
    return text


Release = Annotated[str, AfterValidator(_check_release)]
"""A release of Kafka, or empty."""

ProtocolMap = Annotated[str, AfterValidator(_check_protocols)]
"""Security protocols by the name of a listener, as in Kafka."""

Listeners = Annotated[str, AfterValidator(checked_listeners)]
"""Addresses by the name of their listener, as in Kafka."""

AdvertisedListeners = Annotated[str, AfterValidator(checked_advertised)]


class Settings(TopicDefaults, ConsumerGroupSettings):
    """Everything that can be set. Frozen; times are whole milliseconds unless the name says minutes."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=_dotted, validate_by_name=True, validate_by_alias=True
    )

    group_min_session_timeout_ms: Int32 = Field(default=6_000, ge=0, description="Shortest session timeout allowed.")
    group_max_session_timeout_ms: Int32 = Field(default=1_800_000, ge=0, description="Longest session timeout allowed.")
    group_initial_rebalance_delay_ms: Int32 = Field(
        default=3_000,
        ge=0,
        description="How long an Empty group waits for more members; each new member extends the wait by this much.",
    )
    group_max_size: Int32 = Field(default=2**31 - 1, ge=1, description="Largest number of members in a group.")
    offsets_topic_num_partitions: Int32 = Field(
        default=50, ge=1, le=10_000, description="Number of offsets partitions; groups are spread over them by hash."
    )
    offset_metadata_max_bytes: Int32 = Field(
        default=4_096, ge=0, description="Longest metadata of a committed offset, in UTF-16 code units."
    )
    offsets_commit_timeout_ms: Int32 = Field(
        default=5_000, ge=1, description="How long an append to the offsets log may take before it fails."
    )
    offsets_retention_minutes: Int32 = Field(
        default=10_080,
        ge=1,
        description="How long offsets are kept after the group is empty, or after the commit if it has no members.",
    )
    offsets_retention_check_interval_ms: Int64 = Field(
        default=600_000, ge=1, description="How often expired offsets and empty groups are removed."
    )
    offsets_topic_replication_factor: Int32 = Field(
        default=3,
        ge=1,
        description="With --brokers: replicas of __consumer_offsets, at most as many as there are brokers. Else "
        "replication is up to the store.",
    )
    group_coordinator_threads: Int32 = Field(
        default=1, ge=1, description="Accepted for compatibility; has no effect. There is one event loop."
    )
    group_coordinator_append_linger_ms: Int32 = Field(
        default=10, ge=0, description="Accepted for compatibility; has no effect. Appends are not delayed."
    )
    group_coordinator_rebalance_protocols: str = Field(
        default="classic,consumer",
        pattern="^classic(,consumer)?$",
        description="Group protocols that are served: classic alone, or classic,consumer.",
    )
    fetch_max_bytes: Int32 = Field(
        default=57_671_680, ge=1_024, description="Most bytes in the response to a Fetch, whatever the request allows."
    )
    max_incremental_fetch_session_cache_slots: Int32 = Field(
        default=1_000, ge=0, description="Number of fetch sessions that a node keeps."
    )
    producer_id_expiration_ms: Int32 = Field(
        default=86_400_000, ge=1, description="How long a partition remembers an idempotent producer that is silent."
    )
    producer_id_expiration_check_interval_ms: Int32 = Field(
        default=600_000, ge=1, description="How often such producers are looked for."
    )
    transaction_state_log_num_partitions: Int32 = Field(
        default=50,
        ge=1,
        le=10_000,
        description="Number of partitions of the transaction log; transactional ids are spread over them by hash.",
    )
    transaction_state_log_replication_factor: Int32 = Field(
        default=3,
        ge=1,
        description="Accepted for compatibility; has no effect. Replication is up to the store.",
    )
    transaction_state_log_min_isr: Int32 = Field(
        default=2, ge=1, description="Accepted for compatibility; has no effect. Replication is up to the store."
    )
    transaction_max_timeout_ms: Int32 = Field(
        default=900_000, ge=1, description="Longest transaction timeout that a producer may ask for."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Int32 = Field(
        default=10_000, ge=1, description="How often transactions are looked for that take longer than their timeout."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: Int32 = Field(
        default=3_600_000, ge=1, description="How often transactional ids are looked for that are not used any more."
    )
    transactional_id_expiration_ms: Int32 = Field(
        default=604_800_000, ge=1, description="How long a transactional id is kept after its last transaction."
    )
    transaction_partition_verification_enable: bool = Field(
        default=True,
        description="Ask the transaction coordinator before the first records of a transaction go to a partition.",
    )
    add_partitions_to_txn_retry_backoff_ms: Int32 = Field(
        default=20, ge=1, description="How long a Produce waits before it asks again while a transaction is ending."
    )
    add_partitions_to_txn_retry_backoff_max_ms: Int32 = Field(
        default=100, ge=0, description="How long a Produce waits for the end of a transaction altogether."
    )
    log_retention_check_interval_ms: Int64 = Field(
        default=300_000, ge=1, description="How often records are deleted that a topic keeps no longer."
    )
    log_cleaner_backoff_ms: Int64 = Field(
        default=15_000, ge=0, description="How long the log of a compacted topic waits to be cleaned once it has grown."
    )
    num_partitions: Int32 = Field(
        default=1, ge=1, description="Partitions of a topic that is created without a partition count."
    )
    auto_create_topics_enable: bool = Field(
        default=True, description="Create a missing topic on a Metadata request that allows it."
    )
    broker_id: Int32 = Field(default=1, ge=0, description="Id of this node.")
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
        default=2**31 - 1, ge=0, description="Most connections of Kafka's protocol; one more is closed at once."
    )
    connections_max_idle_ms: Int64 = Field(
        default=600_000,
        ge=-(2**63),
        description="How long a connection of Kafka's protocol may be idle; below 0: for ever.",
    )
    broker_session_timeout_ms: Int32 = Field(
        default=9_000,
        ge=300,
        description="With several nodes: how long a node that is silent keeps the partitions that it leads.",
    )
    default_replication_factor: Int32 = Field(
        default=3,
        ge=1,
        description="With --brokers: replicas of a topic that is created without a replication factor, at most as many "
        "as there are brokers. Kafka's own default is 1.",
    )
    replica_lag_time_max_ms: Int64 = Field(
        default=30_000, ge=1, description="With --brokers: how long a follower that is behind counts as in sync."
    )
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
        "neither offered nor served.",
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

    @property
    def transaction_version(self) -> int:
        """The level of transaction.version; releases before 4.0 have no such feature."""
        release = self.emulator_as_kafka
        is_known = not release or newest_versions(release).get(END_TXN_KEY, 0) >= FIRST_END_WITH_EPOCH_BUMP
        return self.emulator_transaction_version if is_known else 0

    @model_validator(mode="after")
    def _check_session_timeouts(self) -> Self:
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) is more than "
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms}): no member could join"
            )
        return self


DEFAULTS: Final = Settings()

_SECRET: Final = frozenset(
    info.alias or name for name, info in Settings.model_fields.items() if info.annotation is SecretStr
)
"""Settings that are never on a command line, nor in an error, a log or a response."""

VARIABLE_PREFIX: Final = "REJOIN_"
_OTHER_VARIABLES: Final = frozenset(
    {
        "REJOIN_STORE",
        "REJOIN_CONTROL_TOKEN",
        "REJOIN_RUN_ID",
        "REJOIN_SASL_PASSWORD",
        "REJOIN_SPARK_CLASSES",
        "REJOIN_SPARK_MASTER",
        "REJOIN_SPARK_MEMORY",
    }
)
"""Variables that are not settings, so that none of them is reported."""
_MISSPELT: Final = 0.85
"""How similar a variable must be to a setting's to be refused as misspelt. Others are ignored with a warning."""


class WrongSetting(Exception):
    """A setting or option that is invalid. The text is for the user."""


# Ours, since pydantic-settings adds 27 modules and 75 ms to a start of 500, and its errors do not name the variable.
def settings_from(
    pairs: Sequence[str], environment: Mapping[str, str], options: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Settings:
    """Settings from ``NAME=VALUE`` pairs, else from ``options`` of their own (name: option, value), or variables."""
    names = {info.alias or name for name, info in Settings.model_fields.items()}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, name in _variables(names, environment).items():
        values[name], origins[name] = environment[variable], variable
    for name, (option, value) in options.items():
        values[name], origins[name] = value, option
    for pair in pairs:
        name, equals, value = map(str.strip, pair.partition("="))
        if not equals:
            raise WrongSetting(f"-c {pair}: expected NAME=VALUE")
        if name not in names:
            from rejoin.coordinator.client_settings import unknown_setting  # noqa: PLC0415 - for mistakes only

            raise WrongSetting(f"-c {pair}: {unknown_setting(name, sorted(names))}")
        if name in _SECRET:
            variable = _variable(name)
            raise WrongSetting(f"-c {name}: expected in the environment, as {variable}; other users see command lines")
        values[name], origins[name] = value, f"-c {name}"
    if isinstance(values.get("emulator.deny"), str):
        values["emulator.deny"] = tuple(rule.strip() for rule in values["emulator.deny"].split(",") if rule.strip())
    try:
        return Settings.model_validate(values)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = reason(first)
        if not name:
            raise WrongSetting(message) from None
        given = "" if name in _SECRET or repr(first["input"]) in message else f", not {first['input']!r}"
        raise WrongSetting(f"{origins.get(name, name)}: {message}{given}") from None


def _variables(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of settings that are set, each with its setting. Raises WrongSetting for a misspelt one."""
    settings = {_variable(name): name for name in sorted(names)}
    for variable in unknown_variables(environment):
        near = get_close_matches(variable, settings, n=1, cutoff=_MISSPELT)
        if near:
            raise WrongSetting(f"{variable} in the environment: there is no such setting; is it {near[0]}?")
    return {variable: name for variable, name in settings.items() if variable in environment}


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Variables that look like those of settings and belong to none."""
    known = {_variable(info.alias or name) for name, info in Settings.model_fields.items()} | _OTHER_VARIABLES
    return sorted(each for each in environment if each.startswith(VARIABLE_PREFIX) and each not in known)


def _variable(name: str) -> str:
    return VARIABLE_PREFIX + name.replace(".", "_").upper()
