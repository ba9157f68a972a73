"""A producer's settings, under Kafka's own dotted names and with Kafka's defaults.

In Python the dots are underscores: ``ProducerConfig(linger_ms=20)``. Dotted names work too. Times are whole
milliseconds.

Source: Kafka's ProducerConfig and CommonClientConfigs of 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from rejoin.client.config import split_commas
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.protocol.validation import sentence

MOST_RETRIES: Final = 2**31 - 1

MOST_IN_FLIGHT_WITH_IDEMPOTENCE: Final = 5
"""A broker remembers so many batches of each producer."""


def checked_producer_config(settings: Mapping[str, Any]) -> ProducerConfig:
    """The configuration of a producer. Raises ValueError with one sentence."""
    try:
        return ProducerConfig(**settings)
    except ValidationError as problem:
        raise ValueError(sentence(problem, ProducerConfig, kind="setting")) from None


class ProducerConfig(ClientSecurityConfig):
    """Everything about one producer that can be set. Frozen."""

    bootstrap_servers: tuple[str, ...] = Field(
        default=("http://127.0.0.1:9095",),
        min_length=1,
        description="Nodes to ask first: HOST:PORT speaks Kafka's protocol, http://HOST:PORT HTTP.",
    )
    client_id: str = Field(default="", description="Name shown in logs.")
    acks: Literal["all", "0", "1"] = Field(
        default="all", description="Whether to wait for all in-sync replicas, for the leader (1), or for nothing (0)."
    )
    enable_idempotence: bool = Field(
        default=True, description="Write each record exactly once and in order, however often it is sent."
    )
    transactional_id: str | None = Field(
        default=None, min_length=1, description="Allows transactions. One producer at a time has this id."
    )
    transaction_timeout_ms: int = Field(
        default=60_000, ge=1, description="The coordinator aborts a transaction that takes longer."
    )
    batch_size: int = Field(default=16_384, ge=1, description="Most bytes of a batch of several records.")
    linger_ms: int = Field(default=5, ge=0, description="How long a batch waits for more records.")
    buffer_memory: int = Field(
        default=33_554_432, ge=1, description="Bytes for records that are not sent yet; beyond it, send waits."
    )
    max_block_ms: int = Field(
        default=60_000, ge=0, description="How long send waits for metadata and memory, and calls about transactions."
    )
    max_request_size: int = Field(
        default=1_048_576, ge=1, description="Most bytes of one request, and of one record before compression."
    )
    max_in_flight_requests_per_connection: int = Field(
        default=5, ge=1, description="How many requests to a node may wait for their answers; 5 with idempotence."
    )
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none", description="How batches are compressed."
    )
    retries: int = Field(
        default=MOST_RETRIES, ge=0, le=MOST_RETRIES, description="How often a batch is sent again after an error."
    )
    retry_backoff_ms: int = Field(default=100, ge=0, description="Wait before the first retry.")
    retry_backoff_max_ms: int = Field(default=1_000, ge=0, description="Longest wait before a retry (KIP-580).")
    request_timeout_ms: int = Field(default=30_000, ge=0, description="How long a request may wait for its answer.")
    delivery_timeout_ms: int = Field(
        default=120_000, ge=0, description="A record that is not stored by then has failed, whatever retries are left."
    )
    metadata_max_age_ms: int = Field(
        default=300_000, ge=0, description="How often topics are looked at again, to notice new partitions and leaders."
    )
    metadata_max_idle_ms: int = Field(
        default=300_000, ge=5_000, description="A topic without records for so long is forgotten."
    )
    reconnect_backoff_ms: int = Field(default=50, ge=0, description="Wait before connecting again to a node.")
    reconnect_backoff_max_ms: int = Field(default=1_000, ge=0, description="Longest wait before connecting again.")
    partitioner_ignore_keys: bool = Field(default=False, description="Choose partitions without looking at keys.")
    partitioner_adaptive_partitioning_enable: bool = Field(
        default=True, description="Give fewer records without a key to partitions whose batches wait (KIP-794)."
    )

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return split_commas(value)

    @field_validator("acks", mode="before")
    @classmethod
    def _acks(cls, value: object) -> object:
        return "all" if value in (-1, "-1") else str(value) if isinstance(value, int) else value

    @model_validator(mode="before")
    @classmethod
    def _idempotence_gives_way(cls, settings: Any) -> Any:
        """Idempotence is on by default, and off where other settings exclude it, unless it was set."""
        # Kafka: ProducerConfig.postProcessAndValidateIdempotenceConfigs. Too many requests in flight are an error.
        settings = dict(settings)
        names = {name.replace(".", "_"): value for name, value in settings.items()}
        if "enable_idempotence" not in names and (
            str(names.get("acks", "all")) not in {"all", "-1"} or names.get("retries") in (0, "0")
        ):
            settings["enable_idempotence"] = False
        return settings

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.enable_idempotence:
            if self.acks != "all":
                raise ValueError("enable.idempotence needs acks=all")
            if self.retries == 0:
                raise ValueError("enable.idempotence needs retries above 0")
            if self.max_in_flight_requests_per_connection > MOST_IN_FLIGHT_WITH_IDEMPOTENCE:
                raise ValueError(
                    "enable.idempotence needs max.in.flight.requests.per.connection of at most "
                    f"{MOST_IN_FLIGHT_WITH_IDEMPOTENCE}"
                )
        elif self.transactional_id is not None:
            raise ValueError("transactional.id needs enable.idempotence, acks=all and retries above 0")
        if "delivery_timeout_ms" in self.model_fields_set and self.delivery_timeout_ms < self._least_delivery_ms:
            raise ValueError("delivery.timeout.ms must be at least linger.ms plus request.timeout.ms")
        return self

    @property
    def _least_delivery_ms(self) -> int:
        return self.linger_ms + self.request_timeout_ms

    @property
    def effective_delivery_timeout_ms(self) -> int:
        """``delivery.timeout.ms``; its default grows with the times that it must contain."""
        return max(self.delivery_timeout_ms, self._least_delivery_ms)

    @property
    def required_acks(self) -> int:
        """``acks`` as a request carries it."""
        return -1 if self.acks == "all" else int(self.acks)
