"""A consumer's settings, under Kafka's own dotted names and with Kafka's defaults.

In Python the dots are underscores: ``ConsumerConfig(group_id="orders", session_timeout_ms=10_000)``. Dotted names work
too, so that a properties file can be handed in as a dict. Times are whole milliseconds.

Source: Kafka's ConsumerConfig and CommonClientConfigs of 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from rejoin.client.security_config import ClientSecurityConfig
from rejoin.protocol.units import iso_duration_ms
from rejoin.protocol.validation import nearest, sentence

JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""How much longer than the rebalance timeout a JoinGroup may take before the client gives up on it."""

CLOSE_TIMEOUT_MS: Final = 30_000
"""How long ``close`` may take unless its caller says otherwise. Not a setting in Kafka."""

_INSTANCE_ID = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def split_commas(value: object) -> object:
    """The parts of a text with commas; anything else as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _duration_ms(policy: str) -> int | None:
    name, colon, duration = policy.partition(":")
    if name != "by_duration" or not colon:
        return None
    try:
        found = iso_duration_ms(duration)
    except ValueError:
        return None
    return found if found >= 0 else None


def checked_config(settings: Mapping[str, Any]) -> ConsumerConfig:
    """The configuration of a consumer. Raises ValueError with one sentence."""
    try:
        return ConsumerConfig(**settings)
    except ValidationError as problem:
        raise ValueError(sentence(problem, ConsumerConfig, kind="setting")) from None


_LEFT_TO_THE_BROKER: Final = {
    "partition.assignment.strategy": "the coordinator assigns; ask for one of its assignors with group.remote.assignor",
    "session.timeout.ms": "brokers have it, as group.consumer.session.timeout.ms, or as consumer.session.timeout.ms of "
    "the group",
    "heartbeat.interval.ms": "brokers have it, as group.consumer.heartbeat.interval.ms, or as "
    "consumer.heartbeat.interval.ms of the group",
}
"""Settings that the consumer protocol takes from clients, with what is there in their place."""


class ConsumerConfig(ClientSecurityConfig):
    """Everything about one consumer that can be set. Frozen."""

    bootstrap_servers: tuple[str, ...] = Field(
        default=("http://127.0.0.1:9095",),
        min_length=1,
        description="Nodes to ask first: HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP.",
    )
    group_id: str | None = Field(default=None, description="The group to join, or none for a consumer without one.")
    group_instance_id: str | None = Field(
        default=None, description="Makes this a static member: it keeps its membership over a restart (KIP-345)."
    )
    client_id: str = Field(
        default="", description="Name shown in logs and group descriptions, and start of member ids."
    )
    client_rack: str = Field(
        default="", description="Where this consumer is, for assignors that look at racks (KIP-881)."
    )
    session_timeout_ms: int = Field(
        default=45_000, ge=1, description="After this long without a heartbeat the coordinator removes the member."
    )
    heartbeat_interval_ms: int = Field(default=3_000, ge=1, description="Time between heartbeats.")
    max_poll_interval_ms: int = Field(
        default=300_000,
        ge=1,
        description="Longest time between polls, and how long the group waits for this member to rejoin.",
    )
    max_poll_records: int = Field(default=500, ge=1, description="Most records that one poll returns.")
    partition_assignment_strategy: tuple[str, ...] = Field(
        default=("range", "cooperative-sticky"),
        description="Assignors this consumer offers, in order of preference: names, or module:Class.",
    )
    enable_auto_commit: bool = Field(default=True, description="Commit positions in the background of poll.")
    auto_commit_interval_ms: int = Field(default=5_000, ge=0, description="Time between automatic commits.")
    auto_offset_reset: str = Field(
        default="latest",
        description="Where to start when the group has committed nothing for a partition: latest, earliest, none, or "
        "by_duration:PnDTnHnMnS.",
    )
    metadata_max_age_ms: int = Field(
        default=300_000, ge=0, description="How often topics are looked at again, to notice new partitions."
    )
    retry_backoff_ms: int = Field(default=100, ge=0, description="Wait before the first retry, and between joins.")
    retry_backoff_max_ms: int = Field(default=1_000, ge=0, description="Longest wait before a retry (KIP-580).")
    reconnect_backoff_ms: int = Field(default=50, ge=0, description="Wait before connecting again to a node.")
    reconnect_backoff_max_ms: int = Field(default=1_000, ge=0, description="Longest wait before connecting again.")
    request_timeout_ms: int = Field(
        default=30_000,
        ge=0,
        description="How long a request may wait for its answer; JoinGroup may wait longer.",
    )
    default_api_timeout_ms: int = Field(
        default=60_000, ge=0, description="How long a call such as commit may take when it names no timeout."
    )
    fetch_max_wait_ms: int = Field(
        default=500,
        ge=0,
        description="How long a fetch waits for records, and how often the ends of idle partitions are asked for.",
    )
    fetch_min_bytes: int = Field(default=1, ge=0, description="Fewest bytes that a fetch waits for.")
    fetch_max_bytes: int = Field(default=50 << 20, ge=0, description="Most bytes that one fetch returns.")
    max_partition_fetch_bytes: int = Field(
        default=1 << 20, ge=0, description="Most bytes that one fetch returns of a partition."
    )
    check_crcs: bool = Field(default=True, description="Check the checksums of record batches.")
    isolation_level: Literal["read_uncommitted", "read_committed"] = Field(
        default="read_uncommitted", description="Read records of open and aborted transactions, or only committed ones."
    )
    exclude_internal_topics: bool = Field(default=True, description="Keep internal topics out of a pattern's matches.")
    allow_auto_create_topics: bool = Field(
        default=True, description="Let the coordinator create a subscribed topic that does not exist."
    )
    group_protocol: Literal["classic", "consumer"] = Field(
        default="classic",
        description="How the group is managed: classic, where a member assigns, or consumer, where the coordinator "
        "does (KIP-848).",
    )
    group_remote_assignor: str | None = Field(
        default=None,
        description="With group.protocol=consumer: the coordinator's assignor that this member asks for, such as "
        "uniform or range; none leaves the choice to the others.",
    )
    internal_leave_group_on_close: bool = Field(
        default=True, description="Whether close leaves the group; Kafka Streams sets it to false."
    )

    @field_validator("bootstrap_servers", "partition_assignment_strategy", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return split_commas(value)

    @field_validator("group_instance_id")
    @classmethod
    def _named_as_kafka_allows(cls, value: str | None) -> str | None:
        # Kafka: JoinGroupRequest.validateGroupInstanceId. The coordinator does not check it.
        if value is not None and (not _INSTANCE_ID.fullmatch(value) or value in {".", ".."}):
            raise ValueError("1 to 249 of the characters a-z A-Z 0-9 . _ - and neither '.' nor '..'")
        return value

    @field_validator("auto_offset_reset")
    @classmethod
    def _a_policy(cls, value: str) -> str:
        # Kafka: AutoOffsetResetStrategy.
        if value not in {"latest", "earliest", "none"} and _duration_ms(value) is None:
            names = ("latest", "earliest", "none")
            text = "expected 'latest', 'earliest', by_duration:PnDTnHnMnS or 'none'"
            raise ValueError(f"{text}, not {value!r}{nearest(value, names)}")
        return value

    @model_validator(mode="after")
    def _beats_within_the_session(self) -> Self:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat.interval.ms must be lower than session.timeout.ms")
        if self.group_instance_id is not None and self.group_id is None:
            raise ValueError("group.instance.id without group.id")
        return self

    @model_validator(mode="after")
    def _leaves_to_the_broker_what_is_the_brokers(self) -> Self:
        # Kafka: ConsumerConfig.checkUnsupportedConfigsPostProcess.
        if self.group_protocol == "consumer":
            for name, instead in _LEFT_TO_THE_BROKER.items():
                if name.replace(".", "_") in self.model_fields_set:
                    raise ValueError(f"{name} cannot be set when group.protocol=consumer: {instead}")
        elif self.group_remote_assignor is not None:
            raise ValueError("group.remote.assignor cannot be set when group.protocol=classic")
        return self

    @property
    def reset_duration_ms(self) -> int | None:
        """How long ago the records to start with are, where ``auto.offset.reset`` names a duration."""
        return _duration_ms(self.auto_offset_reset)

    @property
    def is_static(self) -> bool:
        """True when this consumer is a static member."""
        return self.group_instance_id is not None

    @property
    def join_timeout_ms(self) -> int:
        """How long a JoinGroup may be parked before the client gives up on it."""
        # Kafka: AbstractCoordinator.sendJoinGroupRequest.
        return max(self.request_timeout_ms, self.max_poll_interval_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)
