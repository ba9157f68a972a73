"""Consumers that join: the Python API, and what it takes and raises.

Imported lazily, so that a command of this package that needs no consumer starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.config import ConsumerConfig
    from client.consumer import Consumer, GroupMetadata, RebalanceListener
    from client.core.errors import (
        AssignorFailedError,
        CommitFailedError,
        FencedInstanceIdError,
        GroupAuthorizationError,
        IllegalStateError,
        KafkaError,
        KafkaTimeoutError,
        ListenerError,
        RebalanceInProgressError,
        RetriableCommitFailedError,
        TopicAuthorizationError,
        WakeupError,
    )
    from client.core.inputs import OffsetAndMetadata, RecordRange
    from client.http import HttpTransport, ProblemError
    from client.records import ConsumerRecord, Records
    from client.runtime import Runtime
    from protocol.consumer_protocol import TopicPartition

_HOMES = {
    "ConsumerConfig": "client.config",
    "Consumer": "client.consumer",
    "GroupMetadata": "client.consumer",
    "RebalanceListener": "client.consumer",
    "AssignorFailedError": "client.core.errors",
    "CommitFailedError": "client.core.errors",
    "FencedInstanceIdError": "client.core.errors",
    "GroupAuthorizationError": "client.core.errors",
    "IllegalStateError": "client.core.errors",
    "KafkaError": "client.core.errors",
    "KafkaTimeoutError": "client.core.errors",
    "ListenerError": "client.core.errors",
    "RebalanceInProgressError": "client.core.errors",
    "RetriableCommitFailedError": "client.core.errors",
    "TopicAuthorizationError": "client.core.errors",
    "WakeupError": "client.core.errors",
    "OffsetAndMetadata": "client.core.inputs",
    "RecordRange": "client.core.inputs",
    "HttpTransport": "client.http",
    "ProblemError": "client.http",
    "ConsumerRecord": "client.records",
    "Records": "client.records",
    "Runtime": "client.runtime",
    "TopicPartition": "protocol.consumer_protocol",
}

__all__ = [
    "AssignorFailedError",
    "CommitFailedError",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "FencedInstanceIdError",
    "GroupAuthorizationError",
    "GroupMetadata",
    "HttpTransport",
    "IllegalStateError",
    "KafkaError",
    "KafkaTimeoutError",
    "ListenerError",
    "OffsetAndMetadata",
    "ProblemError",
    "RebalanceInProgressError",
    "RebalanceListener",
    "RecordRange",
    "Records",
    "RetriableCommitFailedError",
    "Runtime",
    "TopicAuthorizationError",
    "TopicPartition",
    "WakeupError",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
