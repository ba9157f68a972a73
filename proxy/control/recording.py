"""The recording: each request with its answer as a step, from which evidence is made as from the steps of a node.

Requests are recorded when they come, and their answers when they are with the client: a JoinGroup that waits is one
without an answer. Records of Produce and Fetch are not in it; APIs with credentials or configs are not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rejoin.coordinator.control.fault_injection.faults import Fault
from rejoin.coordinator.control.fault_injection.interceptions import interception
from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Context, Elapsed, Received
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.protocol.brokers.listener_address import PLAINTEXT
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.records.fetch import FetchResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchResponse
from rejoin.protocol.registry import DEFINED
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.transcript.steps import StepRecorder

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

_WITH_CONFIGS: Final = frozenset({33, 44})
"""AlterConfigs and IncrementalAlterConfigs: a config of a broker may be a password."""
_MOST_NAMES: Final = 100_000
"""Topics and groups that are remembered."""


class AwaitedExchange(NamedTuple):
    """A request that waits for its answer."""

    token: PendingReply
    request: Request
    context: Context


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
        codec = exchange.plan.codec
        if codec is None or not exchange.plan.is_kept or exchange.plan.key not in self.watched:
            return
        try:
            request: Any = codec.read_request(exchange.request, 0)
        except SchemaError:
            return
        token = PendingReply()
        token.is_of_client = True
        context = context_of(relay, exchange)
        self._waiting.setdefault(relay, {})[exchange] = AwaitedExchange(token, request, context)
        self.recorder.add(round(exchange.arrived_ms), Received(token, request, context), [])

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Record the answer that is with the client."""
        waiting = self._waiting.get(relay, {})
        codec = exchange.plan.codec
        if exchange not in waiting and exchange.is_forwarded and exchange.request:
            self.arrived(relay, exchange)
            waiting = self._waiting.get(relay, {})
        recorded = waiting.pop(exchange, None)
        if recorded is None or codec is None or not exchange.answer:
            return
        try:
            _, response = codec.read_response_frame(exchange.answer)
        except SchemaError:
            return
        self._answered(recorded, response, exchange.answered_ms)

    def _answered(self, recorded: AwaitedExchange, response: Response, at_ms: float) -> None:
        self._learn(recorded.request, response)
        self.recorder.add(round(at_ms), Elapsed(), [Reply(recorded.token, _without_records(response))])

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
        recorded = self._waiting.get(relay, {}).pop(exchange, None)
        if recorded is None:
            return
        if of_broker is not None:
            self._answered(recorded, of_broker, at_ms)
        shown = None if response is None else _without_records(response)
        what = interception(fault, recorded.request, recorded.context, shown, of_some=of_some)
        self.recorder.add(round(at_ms), what, [])

    def connection_ended(self, relay: Relay) -> None:
        """Requests of the connection get no answer any more."""
        self._waiting.pop(relay, None)

    def parked(self, group_id: str) -> list[Request]:
        """JoinGroups and SyncGroups of a group that wait for their answers."""
        return [
            each.request
            for waiting in self._waiting.values()
            for each in waiting.values()
            if isinstance(each.request, (JoinGroupRequest, SyncGroupRequest)) and each.request.group_id == group_id
        ]

    def _learn(self, request: Request, response: Response) -> None:
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
    return Context(exchange.plan.version, exchange.client_id, f"/{relay.client_host}", listener=PLAINTEXT)
