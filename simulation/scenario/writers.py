"""Scenario parts about real records: producers, transforms and readers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rejoin.client.producer_config import MOST_RETRIES, ProducerConfig, checked_producer_config
from rejoin.simulation.scenario.durations import Duration, Length
from rejoin.simulation.scenario.fields import Names, Part


class StartSpec(Part):
    """When processes start: the first ``after``, then one ``every``."""

    after: Duration = 0
    every: Duration = 0


class ProducerSettings(Part):
    """Settings of a producer. Kafka's defaults: it is idempotent unless another setting forbids it."""

    acks: Annotated[Literal["all", "0", "1"], BeforeValidator(str)] = "all"
    idempotence: bool | None = None
    retries: int = Field(default=MOST_RETRIES, ge=0, le=MOST_RETRIES)
    max_in_flight: int = Field(default=5, ge=1)
    batch_size: int = Field(default=16_384, ge=1)
    linger: Duration = 5
    request_timeout: Duration = 30_000
    delivery_timeout: Duration = 120_000
    retry_backoff: Duration = 100
    metadata_max_age: Duration = 300_000

    def config(self, client_id: str, transactional_id: str | None = None) -> ProducerConfig:
        """The settings of one producer. Raises ValueError."""
        settings: dict[str, Any] = {
            "client_id": client_id,
            "acks": self.acks,
            "retries": self.retries,
            "max_in_flight_requests_per_connection": self.max_in_flight,
            "batch_size": self.batch_size,
            "linger_ms": self.linger,
            "request_timeout_ms": self.request_timeout,
            "delivery_timeout_ms": self.delivery_timeout,
            "retry_backoff_ms": self.retry_backoff,
            "metadata_max_age_ms": self.metadata_max_age,
        }
        if self.idempotence is not None:
            settings["enable_idempotence"] = self.idempotence
        if transactional_id is not None:
            settings["transactional_id"] = transactional_id
        return checked_producer_config(settings)


class ProducerSpec(ProducerSettings):
    """Producers of a kind: what they write and how they are set up. Each writes records to its topics in turn."""

    topics: Names
    producers: int = Field(default=1, ge=1, le=1_000)
    records_per_second: float = Field(gt=0.0, le=1e4)
    """Records that each producer writes."""
    until: Duration | None = None
    """Time at which the writers stop; none: at the horizon."""
    keys: int = Field(default=0, ge=0, le=1_000_000)
    """How many keys there are; 0: records have none."""
    start: StartSpec = StartSpec()

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        self.config("")
        return self


class TransformSpec(ProducerSettings):
    """Output of a group's consumers: a record for each that they read, or several."""

    to: str
    outputs: int = Field(default=1, ge=1, le=16)
    """How many records are made from one, each in another partition: two are the bookings of a transfer."""
    keys: int = Field(default=0, ge=0, le=1_000_000)
    """How many keys there are; 0: the records of one input partition have the same."""
    records: int = Field(default=0, ge=0)
    """Most records of a transaction; 0: all that a poll returned."""
    commit_interval: Duration = 0
    """How old a transaction gets, which takes in what several polls return; 0: it ends before the next poll."""
    aborts: float = Field(default=0.0, ge=0.0, le=1.0)
    """The chance that the user's code aborts a transaction."""
    transactional_id: Literal["process", "partition"] = "process"
    group_metadata: bool = True
    """Whether offsets are committed with the member's generation (KIP-447)."""
    transaction_timeout: Length = 60_000
    max_block: Duration = 60_000

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        self.config("")
        if self.records and self.commit_interval:
            raise ValueError(
                "records ends a transaction within a poll, commit_interval after several; give one of them"
            )
        return self

    def config(self, client_id: str, transactional_id: str | None = None) -> ProducerConfig:
        settings = {"transaction_timeout_ms": self.transaction_timeout, "max_block_ms": self.max_block}
        return super().config(client_id, transactional_id).model_copy(update=settings)


class ReaderSpec(Part):
    """A reader that compares what transforms wrote with what they read."""

    topics: Names
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    request_timeout: Duration = 30_000
    metadata_max_age: Duration = 300_000
    fetch_max_wait: Length = 500
    """``fetch.max.wait.ms``, which is also how long a poll waits for records."""
    end_offsets: Duration = 0
    """How often it asks where its partitions end; 0: never."""
    start: StartSpec = StartSpec()
