"""What one call of ``ConsumerCore.step`` carries through the core: the time, the effects, the requests in flight.

Every part of the consumer says how long it can wait (:meth:`StepContext.wake`) each time it is looked at; the smallest
of these is the next deadline. Nothing else remembers timers, so none can go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.effects import Cancel, Effect, Endpoint, Send
from rejoin.client.core.errors import CoordinatorGivenUpError, KafkaError
from rejoin.client.core.inputs import Millis, OffsetAndMetadata
from rejoin.journal.events.client import Offsets, Partitions
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST, Api
from rejoin.protocol.types import TopicPartition

RETRY_BACKOFF_JITTER = 0.2


class Generation(NamedTuple):
    """Which membership this is: the generation, the member id and the assignor that the group chose."""

    generation_id: int
    member_id: str
    protocol: str | None

    def __str__(self) -> str:
        # Kafka: Generation.toString; it travels in the reason of a JoinGroup.
        name = "null" if self.protocol is None else self.protocol
        return f"Generation{{generationId={self.generation_id}, memberId='{self.member_id}', protocol='{name}'}}"


NO_GENERATION = Generation(-1, "", None)


class InFlight(NamedTuple):
    """A request that waits for its answer, and the generation at the time it was sent."""

    request_id: int
    api: Api
    request: Request
    generation: Generation
    sent_at: Millis
    to: Endpoint | None
    on_answer: OnAnswer
    on_failure: OnFailure


OnAnswer: TypeAlias = "Callable[[InFlight, Response], None]"
OnFailure: TypeAlias = "Callable[[InFlight, KafkaError], None]"


class StepContext:
    """The consumer's hands: everything that decides takes the time from here and leaves its effects here."""

    __slots__ = ("_lost", "_next_id", "config", "effects", "in_flight", "jitter", "next_wake", "now", "versions", "who")

    def __init__(self, config: ConsumerConfig, jitter: Callable[[], float], versions: Mapping[Api, int]) -> None:
        self.config = config
        self.jitter = jitter
        self.versions = versions
        self.now: Millis = 0
        self.effects: list[Effect] = []
        self.next_wake: Millis | None = None
        self.in_flight: dict[int, InFlight] = {}
        self._lost: list[InFlight] = []
        self._next_id = 0
        self.who: dict[str, Any] = {
            "client_id": config.client_id,
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
        }

    def begin(self, now: Millis) -> None:
        """Start a step."""
        self.now = now
        self.effects = []
        self.next_wake = None

    def wake(self, at: Millis) -> None:
        """Come back at this time at the latest."""
        if self.next_wake is None or at < self.next_wake:
            self.next_wake = at

    def version(self, api: Api) -> int:
        """The version this consumer speaks: the newest, unless it was told otherwise."""
        return self.versions.get(api, api.max_version)

    def send(
        self,
        request: Request,
        on_answer: OnAnswer,
        on_failure: OnFailure,
        *,
        to: Endpoint | None = None,
        generation: Generation = NO_GENERATION,
        timeout_ms: int | None = None,
    ) -> int:
        """Send a request to the coordinator (``to``) or to any node; exactly one of the two handlers is called."""
        api = BY_REQUEST[type(request)]
        self._next_id += 1
        request_id = self._next_id
        self.in_flight[request_id] = InFlight(request_id, api, request, generation, self.now, to, on_answer, on_failure)
        timeout = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        self.effects.append(Send(request_id, to, request, self.version(api), timeout))
        return request_id

    def cancel(self, request_id: int) -> None:
        """Forget a request; its handlers are not called."""
        if self.in_flight.pop(request_id, None) is not None:
            self.effects.append(Cancel(request_id))

    def drop_requests_to_coordinator(self) -> None:
        """Give up on everything that waits for the coordinator; the handlers hear of it before the step ends."""
        # Kafka: markCoordinatorUnknown disconnects, which fails whatever is in flight on that connection.
        for lost in [request for request in self.in_flight.values() if request.to is not None]:
            self.cancel(lost.request_id)
            self._lost.append(lost)

    def fail_lost_requests(self) -> bool:
        """Tell the handlers of dropped requests; false when there were none."""
        if not self._lost:
            return False
        lost, self._lost = self._lost, []
        for request in lost:
            problem = CoordinatorGivenUpError(f"{request.api.name}: the coordinator was given up")
            request.on_failure(request, problem)
        return True

    def backoff(self, attempts: int) -> int:
        """The wait before retry number ``attempts``, counted from 0: exponential, with 20 % of jitter (KIP-580)."""
        # Kafka: ExponentialBackoff.
        config = self.config
        longest = max(config.retry_backoff_max_ms, config.retry_backoff_ms)
        term = min(config.retry_backoff_ms * 2 ** min(attempts, 30), longest)
        factor = 1 - RETRY_BACKOFF_JITTER + 2 * RETRY_BACKOFF_JITTER * self.jitter()
        return min(int(term * factor), longest)


def by_topic(partitions: Iterable[tuple[str, int]]) -> Partitions:
    """Partitions as events show them."""
    shown: Partitions = {}
    for topic, partition in sorted(partitions):
        shown.setdefault(topic, []).append(partition)
    return shown


def offsets_by_topic(offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Offsets as events show them."""
    shown: Offsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shown.setdefault(topic, {})[partition] = offset if isinstance(offset, int) else offset.offset
    return shown
