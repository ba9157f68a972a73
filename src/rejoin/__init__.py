"""Rejoin: Kafka's group coordinator as a service, consumers that join it, a virtual clock for both, and a pipeline that
explains what happened.

The top-level folders of the repository are its packages: ``rejoin.protocol`` is ``protocol/``, and so on. What most
programs need can be imported from here; it is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import rejoin.release as _release  # noqa: F401 (refuses a foreign rejoin in the same folder)
from rejoin.lazy_names import load

if TYPE_CHECKING:
    from rejoin.client import AcknowledgeType as AcknowledgeType
    from rejoin.client import Admin as Admin
    from rejoin.client import Consumer as Consumer
    from rejoin.client import ConsumerRecord as ConsumerRecord
    from rejoin.client import Producer as Producer
    from rejoin.client import RecordMetadata as RecordMetadata
    from rejoin.client import ShareConsumer as ShareConsumer
    from rejoin.client import TopicPartition as TopicPartition
    from rejoin.coordinator.testing import GroupCoordinator as GroupCoordinator
    from rejoin.coordinator.testing import running as running
    from rejoin.coordinator.testing import running_in_thread as running_in_thread

_HOMES: Final = {
    "AcknowledgeType": "rejoin.client",
    "Admin": "rejoin.client",
    "Consumer": "rejoin.client",
    "ConsumerRecord": "rejoin.client",
    "Producer": "rejoin.client",
    "RecordMetadata": "rejoin.client",
    "ShareConsumer": "rejoin.client",
    "TopicPartition": "rejoin.client",
    "GroupCoordinator": "rejoin.coordinator.testing",
    "running": "rejoin.coordinator.testing",
    "running_in_thread": "rejoin.coordinator.testing",
}

__all__ = [
    "AcknowledgeType",
    "Admin",
    "Consumer",
    "ConsumerRecord",
    "GroupCoordinator",
    "Producer",
    "RecordMetadata",
    "ShareConsumer",
    "TopicPartition",
    "running",
    "running_in_thread",
]


def __getattr__(name: str) -> Any:
    return load(__name__, _HOMES, name)
