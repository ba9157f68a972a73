"""The user's rebalance listener: one call at a time, and what happens after it."""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.client.core.effects import CallbackKind, CallListener
from rejoin.client.core.errors import KafkaError, ListenerError, WakeupError
from rejoin.client.core.group.streams.tasks import StreamsTasks
from rejoin.client.core.state.consumer import ConsumerState, ListenerDone
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


def call(
    state: ConsumerState,
    ctx: StepContext,
    kind: CallbackKind,
    partitions: Iterable[TopicPartition],
    then: ListenerDone,
    tasks: StreamsTasks | None = None,
    *,
    is_group_ready: bool = True,
) -> None:
    """Call the listener; ``then`` is called with how that ended. A share consumer has no listener."""
    if state.share is not None:
        then(None)
        return
    assert state.listener_done is None, "a listener is called once at a time"
    state.listener_done = then
    ctx.emit(CallListener(kind, tuple(sorted(partitions)), tasks, is_group_ready))


def done(state: ConsumerState, error: BaseException | None) -> None:
    """The listener returned, or raised ``error``."""
    then, state.listener_done = state.listener_done, None
    assert then is not None, "a listener that was not called cannot return"
    then(error)


def stops_at_once(error: BaseException) -> bool:
    """True for what Kafka lets through a listener: the step is cut short and done again at the next poll."""
    # Kafka: ConsumerRebalanceListenerInvoker rethrows WakeupException and InterruptException.
    return isinstance(error, WakeupError) or not isinstance(error, Exception)


def raised_by_listener(error: BaseException) -> KafkaError:
    """The error that a poll raises for an exception of the listener's."""
    if isinstance(error, WakeupError):
        return error
    wrapped = ListenerError(f"the rebalance listener raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
