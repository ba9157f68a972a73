"""Settings of several nodes: leases of partitions and replicas."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from rejoin.coordinator.settings.types import Int32, Int64, SettingsPart

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ClusterSettings(SettingsPart):
    """Leases of nodes on one store, and replicas with ``--brokers``."""

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
    replica_selector_class: Literal["", "org.apache.kafka.common.replica.RackAwareReplicaSelector"] = Field(
        default="",
        description="With --brokers: empty, consumers read from leaders; Kafka's RackAwareReplicaSelector, a leader "
        "sends a consumer with client.rack to a replica in that rack.",
    )
