"""The user's rebalance listener: one call at a time, and what happens after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rejoin.client.core.effects import CallbackKind, CallListener
from rejoin.client.core.errors import KafkaError, ListenerError, WakeupError
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


class Listener:
    """Calls the listener and remembers how to go on. While it is ``busy``, the user's thread is inside it."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx
        self._then: Callable[[BaseException | None], None] | None = None

    @property
    def busy(self) -> bool:
        return self._then is not None

    def call(
        self, kind: CallbackKind, partitions: Iterable[TopicPartition], then: Callable[[BaseException | None], None]
    ) -> None:
        """Call the listener; ``then`` is told how that ended."""
        assert self._then is None, "a listener is called once at a time"
        self._then = then
        self._ctx.effects.append(CallListener(kind, tuple(sorted(partitions))))

    def done(self, error: BaseException | None) -> None:
        """The listener returned, or raised ``error``."""
        then, self._then = self._then, None
        assert then is not None, "a listener that was not called cannot return"
        then(error)


def stops_at_once(error: BaseException | None) -> bool:
    """True for what Kafka lets through a listener: the step is cut short and done again at the next poll."""
    # Kafka: ConsumerRebalanceListenerInvoker rethrows WakeupException and InterruptException.
    return isinstance(error, WakeupError) or (error is not None and not isinstance(error, Exception))


def raised_by_listener(error: BaseException) -> KafkaError:
    """What a poll raises for an exception of the listener's."""
    if isinstance(error, WakeupError):
        return error
    wrapped = ListenerError(f"the rebalance listener raised {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
