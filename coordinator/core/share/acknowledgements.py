"""Acknowledgements of one request, partition by partition: checked, handed to the share-partitions, collected.

Kafka: KafkaApis.getAcknowledgeBatchesFromShareFetchRequest, SharePartitionManager.acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from rejoin.coordinator.core.share.led_partitions import LedSharePartitions
from rejoin.coordinator.core.share.sessions import SessionKey, SharedPartition
from rejoin.coordinator.core.share.window.acknowledging import acknowledgement_error
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import FIRST_WITH_RENEWALS, AcknowledgementBatch
from rejoin.protocol.records.share_partitions import SharePartitionKey

PartitionErrorOf: TypeAlias = Callable[[SharedPartition], ErrorCode]
"""Why a partition cannot be looked at: its topic is unknown or not allowed, or there is no such partition."""


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...

    @property
    def acknowledgement_batches(self) -> tuple[AcknowledgementBatch, ...]: ...


class _Topic(Protocol):
    @property
    def topic_id(self) -> str: ...

    @property
    def partitions(self) -> Iterable[_Partition]: ...


class Acknowledged(Protocol):
    """Collector of results: one call for each partition."""

    def __call__(self, shared: SharedPartition, error: ErrorCode, *, breaks_request: bool = False) -> None:
        """A partition has its result."""


class AcknowledgingMember(NamedTuple):
    """The member that acknowledges, and what its request allows."""

    key: SessionKey
    api_version: int
    is_renewal: bool


def asked_batches(topics: Iterable[_Topic]) -> dict[SharedPartition, tuple[AcknowledgementBatch, ...]]:
    """The acknowledgements of a request; empty where no partition has any. Of a repeated partition the last count."""
    found = {
        SharedPartition(topic.topic_id, each.partition_index): each.acknowledgement_batches
        for topic in topics
        for each in topic.partitions
    }
    return found if any(found.values()) else {}


class Acknowledgements:
    """Hands acknowledgements to the share-partitions."""

    def __init__(self, ctx: StepContext, led: LedSharePartitions) -> None:
        self._ctx = ctx
        self._led = led

    def acknowledge(
        self,
        member: AcknowledgingMember,
        asked: dict[SharedPartition, tuple[AcknowledgementBatch, ...]],
        error_of: PartitionErrorOf,
        on_result: Acknowledged,
    ) -> None:
        """Acknowledge; ``on_result`` is called for each partition, for some of them later."""
        accepted: list[tuple[SharedPartition, tuple[AcknowledgementBatch, ...]]] = []
        for shared, batches in asked.items():
            error = acknowledgement_error(
                batches,
                knows_renewal=member.api_version >= FIRST_WITH_RENEWALS,
                is_renewal=member.is_renewal,
            )
            error = error if error is not ErrorCode.NONE else error_of(shared)
            if error is not ErrorCode.NONE or not batches:
                on_result(shared, error)
            else:
                accepted.append((shared, batches))
        for shared, batches in accepted:
            self._acknowledge_one(member.key, shared, batches, on_result)

    def _acknowledge_one(
        self,
        key: SessionKey,
        shared: SharedPartition,
        batches: tuple[AcknowledgementBatch, ...],
        on_result: Acknowledged,
    ) -> None:
        led = self._led.get(SharePartitionKey(key.group_id, *shared))
        if led is None or not led.machine.is_active:
            on_result(shared, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        led.machine.acknowledge(partial(on_result, shared), key.member_id, batches, self._ctx.now)
        self._led.acknowledged(led)

    def release(self, key: SessionKey, partitions: Iterable[SharedPartition], reason: str) -> None:
        """Release what a member holds of some partitions: its session is gone, for a reason that events name."""
        # A waiting fetch may acquire at once what is released, which changes the order of a session's partitions.
        for shared in list(partitions):
            led = self._led.get(SharePartitionKey(key.group_id, *shared))
            if led is not None and led.machine.is_active:
                led.machine.release(_ignored, key.member_id, self._ctx.now, reason)
                self._led.acknowledged(led)


def _ignored(error: ErrorCode, *, breaks_request: bool) -> None:
    """No client waits for the end of a release."""
