"""Settings of idempotent producers and of transactions."""

from __future__ import annotations

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, SettingsPart


class TransactionSettings(SettingsPart):
    """Producer ids, the transaction log, timeouts, and verification of partitions."""

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
