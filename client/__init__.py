"""Consumers that join, and producers: the Python API, with its settings and errors.

Names are imported when they are used, so that a command without a client starts at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
from rejoin.lazy_names import load

if TYPE_CHECKING:
    from rejoin.client.admin.admin import Admin
    from rejoin.client.admin.replicas import PartitionReassignment
    from rejoin.client.admin.scram_users import CredentialDeletion, CredentialUpsertion, ScramMechanism
    from rejoin.client.config import ConsumerConfig
    from rejoin.client.consumer import Consumer, RebalanceListener
    from rejoin.client.core.errors import (
        AssignorFailedError,
        CommitFailedError,
        FencedInstanceIdError,
        GroupAuthorizationError,
        IllegalStateError,
        KafkaError,
        KafkaTimeoutError,
        ListenerError,
        ProducerFencedError,
        RebalanceInProgressError,
        RetriableCommitFailedError,
        TopicAuthorizationError,
        WakeupError,
    )
    from rejoin.client.core.fetch.consumer_record import ConsumerRecord
    from rejoin.client.core.inputs import GroupMetadata, OffsetAndMetadata, RecordRange
    from rejoin.client.driver import ConsumerRuntime
    from rejoin.client.producer import Producer
    from rejoin.client.producer_config import ProducerConfig
    from rejoin.client.producer_driver import RecordMetadata
    from rejoin.client.records import Records
    from rejoin.client.share_config import ShareConsumerConfig
    from rejoin.client.share_consumer import ShareConsumer
    from rejoin.client.transports.http import HttpTransport, ProblemError
    from rejoin.client.transports.kafka.transport import KafkaTransport
    from rejoin.protocol.messages.replication.elect_leaders import ElectionType
    from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
    from rejoin.protocol.security.acl_bindings import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclResource,
        PatternType,
        Permission,
    )
    from rejoin.protocol.security.quota_limits import QuotaHolder, QuotaLimits
    from rejoin.protocol.types import TopicPartition

_HOMES = {
    "AclBinding": "rejoin.protocol.security.acl_bindings",
    "AclBindingFilter": "rejoin.protocol.security.acl_bindings",
    "AclOperation": "rejoin.protocol.security.acl_bindings",
    "AclResource": "rejoin.protocol.security.acl_bindings",
    "PatternType": "rejoin.protocol.security.acl_bindings",
    "Permission": "rejoin.protocol.security.acl_bindings",
    "QuotaHolder": "rejoin.protocol.security.quota_limits",
    "QuotaLimits": "rejoin.protocol.security.quota_limits",
    "Admin": "rejoin.client.admin.admin",
    "PartitionReassignment": "rejoin.client.admin.replicas",
    "ElectionType": "rejoin.protocol.messages.replication.elect_leaders",
    "CredentialDeletion": "rejoin.client.admin.scram_users",
    "CredentialUpsertion": "rejoin.client.admin.scram_users",
    "ScramMechanism": "rejoin.client.admin.scram_users",
    "ConsumerConfig": "rejoin.client.config",
    "Consumer": "rejoin.client.consumer",
    "GroupMetadata": "rejoin.client.core.inputs",
    "RebalanceListener": "rejoin.client.consumer",
    "AssignorFailedError": "rejoin.client.core.errors",
    "CommitFailedError": "rejoin.client.core.errors",
    "FencedInstanceIdError": "rejoin.client.core.errors",
    "GroupAuthorizationError": "rejoin.client.core.errors",
    "IllegalStateError": "rejoin.client.core.errors",
    "KafkaError": "rejoin.client.core.errors",
    "KafkaTimeoutError": "rejoin.client.core.errors",
    "ListenerError": "rejoin.client.core.errors",
    "ProducerFencedError": "rejoin.client.core.errors",
    "RebalanceInProgressError": "rejoin.client.core.errors",
    "RetriableCommitFailedError": "rejoin.client.core.errors",
    "TopicAuthorizationError": "rejoin.client.core.errors",
    "WakeupError": "rejoin.client.core.errors",
    "OffsetAndMetadata": "rejoin.client.core.inputs",
    "RecordRange": "rejoin.client.core.inputs",
    "HttpTransport": "rejoin.client.transports.http",
    "KafkaTransport": "rejoin.client.transports.kafka.transport",
    "ProblemError": "rejoin.client.transports.http",
    "Producer": "rejoin.client.producer",
    "ProducerConfig": "rejoin.client.producer_config",
    "RecordMetadata": "rejoin.client.producer_driver",
    "ConsumerRecord": "rejoin.client.core.fetch.consumer_record",
    "Records": "rejoin.client.records",
    "AcknowledgeType": "rejoin.protocol.messages.share.acknowledgements",
    "ShareConsumer": "rejoin.client.share_consumer",
    "ShareConsumerConfig": "rejoin.client.share_config",
    "ConsumerRuntime": "rejoin.client.driver",
    "TopicPartition": "rejoin.protocol.types",
}

__all__ = [
    "AcknowledgeType",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclResource",
    "Admin",
    "AssignorFailedError",
    "CommitFailedError",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "ConsumerRuntime",
    "CredentialDeletion",
    "CredentialUpsertion",
    "ElectionType",
    "FencedInstanceIdError",
    "GroupAuthorizationError",
    "GroupMetadata",
    "HttpTransport",
    "IllegalStateError",
    "KafkaError",
    "KafkaTimeoutError",
    "KafkaTransport",
    "ListenerError",
    "OffsetAndMetadata",
    "PartitionReassignment",
    "PatternType",
    "Permission",
    "ProblemError",
    "Producer",
    "ProducerConfig",
    "ProducerFencedError",
    "QuotaHolder",
    "QuotaLimits",
    "RebalanceInProgressError",
    "RebalanceListener",
    "RecordMetadata",
    "RecordRange",
    "Records",
    "RetriableCommitFailedError",
    "ScramMechanism",
    "ShareConsumer",
    "ShareConsumerConfig",
    "TopicAuthorizationError",
    "TopicPartition",
    "WakeupError",
]


def __getattr__(name: str) -> Any:
    return load(__name__, _HOMES, name)
