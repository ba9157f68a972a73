"""The recording: each request with its answer as a step, from which evidence is made as from the steps of a node.

Requests are recorded when they come, and their answers when they are with the client: a JoinGroup that waits is one
without an answer. Records of Produce and Fetch are not in it; APIs with credentials or configs are not recorded.

Most requests are never looked at: they are kept as bytes, and decoded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rejoin.coordinator.control.fault_injection.faults import Fault
from rejoin.coordinator.control.fault_injection.interceptions import interception
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Context, Elapsed, Received
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.protocol.brokers.listener_address import PLAINTEXT
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchResponse
from rejoin.protocol.registry import DEFINED, JOIN_GROUP, METADATA, SYNC_GROUP
from rejoin.protocol.wire.codec import Codec
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.transcript.steps import Step, StepInput, StepRecorder

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

_WITH_CONFIGS: Final = frozenset({33, 44})
"""AlterConfigs and IncrementalAlterConfigs: a config of a broker may be a password."""
_EXCHANGE_BYTES: Final = 512
"""Memory that a request takes beside its body, about."""
_LEARNED_FROM: Final = frozenset({METADATA.key, JOIN_GROUP.key})
"""APIs whose answers are decoded at once: rules and waits need the names of topics and the generations of groups."""
_PARKED: Final = frozenset({JOIN_GROUP.key, SYNC_GROUP.key})
_NONE: Final[dict[ProxiedRequest, AwaitedExchange]] = {}
_MOST_NAMES: Final = 100_000
"""Topics and groups that are remembered."""


class ClientReply(PendingReply):
    """The token of a client's request."""

    is_of_client = True


class EncodedRequest:
    """A client's request as bytes."""

    __slots__ = ("client_host", "exchange", "token")

    def __init__(self, exchange: ProxiedRequest, relay: Relay) -> None:
        self.exchange = exchange
        self.client_host = relay.client_host
        self.token = ClientReply()

    def decode(self) -> tuple[StepInput, list[Effect]]:
        """The request, if it can be read."""
        exchange = self.exchange
        codec = exchange.plan.codec
        assert codec is not None, "only known forms are recorded"
        try:
            request: Any = codec.read_request(exchange.request, 0)
        except SchemaError:
            return Elapsed(), []
        return Received(self.token, request, _context(self.client_host, exchange)), []


class EncodedAnswer:
    """An answer that its client got, as bytes."""

    __slots__ = ("answer", "codec", "token")

    def __init__(self, token: ClientReply, codec: Codec, answer: bytes) -> None:
        self.token = token
        self.codec = codec
        self.answer = answer

    def decode(self) -> tuple[StepInput, list[Effect]]:
        """The answer, if it can be read."""
        try:
            _, response = self.codec.read_response_frame(self.answer)
        except SchemaError:
            return Elapsed(), []
        return Elapsed(), [Reply(self.token, _without_records(response))]


class AwaitedExchange(NamedTuple):
    """A request that waits for its answer."""

    token: ClientReply
    step: Step


class ExchangeRecorder:
    """A watch that records. ``topic_names`` are names by topic id, as Metadata has said them."""

    watched: frozenset[int] = frozenset(DEFINED) - _WITH_CONFIGS

    def __init__(self, recorder: StepRecorder) -> None:
        self.recorder = recorder
        self.topic_names: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        """The newest generation of each classic group, as its JoinGroups were answered."""
        self._waiting: dict[Relay, dict[ProxiedRequest, AwaitedExchange]] = {}

    def arrived(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Record a request. One that passes in pieces is recorded with its answer."""
        plan = exchange.plan
        if not plan.is_kept or plan.key not in self.watched:
            return
        encoded = EncodedRequest(exchange, relay)
        size = _EXCHANGE_BYTES + len(exchange.request)
        step = self.recorder.add_encoded(round(exchange.arrived_ms), encoded, size)
        waiting = self._waiting.get(relay)
        if waiting is None:
            waiting = self._waiting[relay] = {}
        waiting[exchange] = AwaitedExchange(encoded.token, step)

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Record the answer that is with the client."""
        waiting = self._waiting.get(relay, _NONE)
        if exchange not in waiting and exchange.is_forwarded and exchange.request:
            self.arrived(relay, exchange)
            waiting = self._waiting.get(relay, _NONE)
        awaited = waiting.pop(exchange, None)
        plan = exchange.plan
        if awaited is None or plan.codec is None or not exchange.answer:
            return
        encoded = EncodedAnswer(awaited.token, plan.codec, exchange.answer)
        step = self.recorder.add_encoded(round(exchange.answered_ms), encoded, len(exchange.answer))
        if plan.key in _LEARNED_FROM:
            self._learn(awaited.step, step)
        elif exchange.fault is not None:
            # An answer that a rule has held is whole, with its records, which are not kept.
            self.recorder.decode(step)

    def intercepted(
        self,
        exchange: ProxiedRequest,
        relay: Relay,
        fault: Fault,
        at_ms: float,
        *,
        response: Response | None,
        of_some: bool = False,
        of_broker: Response | None = None,
    ) -> None:
        """Record that a fault has answered, changed, cut or lost. ``of_broker`` is the broker's own answer."""
        awaited = self._waiting.get(relay, _NONE).pop(exchange, None)
        asked = None if awaited is None else self._request(awaited.step)
        if asked is None:
            return
        if of_broker is not None:
            self._learn_of(asked.request, of_broker)
            self.recorder.add(round(at_ms), Elapsed(), [Reply(asked.token, _without_records(of_broker))])
        shown = None if response is None else _without_records(response)
        what = interception(fault, asked.request, asked.context, shown, of_some=of_some)
        self.recorder.add(round(at_ms), what, [])

    def connection_ended(self, relay: Relay) -> None:
        """Requests of the connection get no answer any more."""
        self._waiting.pop(relay, None)

    def parked(self, group_id: str) -> list[Request]:
        """JoinGroups and SyncGroups of a group that wait for their answers."""
        requests = [
            asked.request
            for waiting in self._waiting.values()
            for exchange, each in waiting.items()
            if exchange.plan.key in _PARKED and (asked := self._request(each.step)) is not None
        ]
        return [each for each in requests if getattr(each, "group_id", None) == group_id]

    def _request(self, step: Step) -> Received | None:
        """The request that a step has recorded, if it can be read."""
        self.recorder.decode(step)
        return step.what if isinstance(step.what, Received) else None

    def _learn(self, asked: Step, answered: Step) -> None:
        request = self._request(asked)
        self.recorder.decode(answered)
        for effect in answered.effects:
            if request is not None and isinstance(effect, Reply):
                self._learn_of(request.request, effect.response)

    def _learn_of(self, request: Request, response: Response) -> None:
        if isinstance(response, MetadataResponse):
            for topic in response.topics:
                if topic.name and len(self.topic_names) < _MOST_NAMES:
                    self.topic_names[str(topic.topic_id)] = topic.name
        elif (
            isinstance(request, JoinGroupRequest)
            and isinstance(response, JoinGroupResponse)
            and response.error_code is ErrorCode.NONE
        ):
            self.generations.pop(request.group_id, None)
            self.generations[request.group_id] = response.generation_id
            if len(self.generations) > _MOST_NAMES:
                del self.generations[next(iter(self.generations))]


def _without_records(response: Response) -> Response:
    """A response without records, which are not kept."""
    if not isinstance(response, (FetchResponse, ShareFetchResponse)):
        return response
    topics = []
    for topic in response.responses:
        partitions = tuple(each.model_copy(update={"records": b""}) for each in topic.partitions)
        topics.append(topic.model_copy(update={"partitions": partitions}))
    return response.model_copy(update={"responses": tuple(topics)})


def context_of(relay: Relay, exchange: ProxiedRequest) -> Context:
    """Who asks, and in which version."""
    return _context(relay.client_host, exchange)


def _context(client_host: str, exchange: ProxiedRequest) -> Context:
    return Context(exchange.plan.version, exchange.client_id, f"/{client_host}", listener=PLAINTEXT)
