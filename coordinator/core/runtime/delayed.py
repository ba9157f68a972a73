"""Requests that wait for their appends, no longer than they allow. Kafka: DelayedOperationPurgatory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


class DelayedTimer(IntEnum):
    """One timer for all waiting requests of an API."""

    PRODUCE_TIMEOUT = 2_100
    DELETE_RECORDS_TIMEOUT = 2_101


class DelayedOperation(ABC):
    """A request that waits until ``deadline``."""

    __slots__ = ("deadline",)

    deadline: Millis

    @abstractmethod
    def time_out(self) -> None:
        """Wait no longer, and answer."""


class Purgatory:
    """The waiting requests of one API."""

    def __init__(self, ctx: StepContext, kind: DelayedTimer) -> None:
        self._ctx = ctx
        self._key = TimerKey(kind, TopicPartition("", -1))
        self._waiting: dict[DelayedOperation, None] = {}

    def wait(self, operation: DelayedOperation, timeout_ms: Millis) -> None:
        """Keep a request, no longer than it allows."""
        operation.deadline = self._ctx.now + max(0, timeout_ms)
        self._waiting[operation] = None
        due = self._ctx.deadlines.at(self._key)
        if due is None or operation.deadline < due:
            self._ctx.deadlines.set(self._key, operation.deadline)

    def ended(self, operation: DelayedOperation) -> None:
        """A request is answered, whether it had to wait or not."""
        if operation in self._waiting:
            del self._waiting[operation]
            if not self._waiting:
                self._ctx.deadlines.cancel(self._key)

    def fire(self) -> None:
        """Time out the requests that have waited long enough."""
        for operation in list(self._waiting):
            if operation.deadline <= self._ctx.now:
                operation.time_out()
        if self._waiting:
            self._ctx.deadlines.set(self._key, min(operation.deadline for operation in self._waiting))
