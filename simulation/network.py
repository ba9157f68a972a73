"""The network: connections that keep their order, are slow, break, and are cut off.

As in Kafka's client, a consumer has two connections to a node: one for requests to the coordinator, one for requests
that any node answers. A connection keeps the order of messages and duplicates none, as TCP does. What can happen:

- the connection breaks before a request arrives (*lost request*): the coordinator never receives it;
- it breaks before the response arrives (*lost answer*): the coordinator has carried the request out;
- a client and a node cannot reach each other for a while: messages wait, and arrive when the connection is healed,
  unless the request times out before;
- the node is down: the connection is refused.

A client whose request times out drops the connection and all requests on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from rejoin.client.core.inputs import Failure
from rejoin.protocol.message import Request, Response
from rejoin.simulation.kernel import Actor, Lane, Millis, Order, World

if TYPE_CHECKING:
    from rejoin.simulation.actors.node import NodeActor

_DRAWS: Final = 1_024
_MASK: Final = 0xFFFFFFFF


class Latency:
    """One-way delays in whole ms, at least 1, drawn once from a distribution.

    Which of them a message gets is a function of its connection and the instant, so a message that is skipped changes
    the delay of no other.
    """

    def __init__(self, random: Random, draw: Callable[[Random], float], longest_ms: Millis) -> None:
        self.longest_ms = longest_ms
        self._delays = [min(longest_ms, max(1, round(draw(random)))) for _ in range(_DRAWS)]

    def of(self, way: int, sent_at: Millis) -> Millis:
        """The delay of a message that is sent at an instant, by the direction of its connection."""
        mixed = (way * 2654435761 + sent_at * 2246822519) & _MASK
        mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & _MASK
        return self._delays[(mixed ^ (mixed >> 13)) & (_DRAWS - 1)]


class Requester:
    """The token of a request: it gets the node's response."""

    __slots__ = ()

    def on_response(self, response: Response) -> None:
        """The node answers."""
        raise NotImplementedError


class NetworkObserver:
    """Observes what becomes of each request; this one does nothing."""

    def sent(self, exchange: Exchange) -> None:
        """A client sends a request."""

    def blocked(self, exchange: Exchange) -> None:
        """A request or its response waits, because client and node cannot reach each other."""

    def lost(self, exchange: Exchange) -> None:
        """A request is lost; or its response, if the exchange has one. Neither side knows it yet."""

    def arrived(self, exchange: Exchange) -> None:
        """A request arrives at its node."""

    def answered(self, exchange: Exchange) -> None:
        """A node sends its response."""

    def ended(self, exchange: Exchange, failure: Failure | None) -> None:
        """The client has the response, or gives up: with a failure, or because it does not want the response."""


class NetworkClient(Actor):
    """A process with connections to nodes."""

    names_connections = False
    """Whether nodes see its connections end."""

    def answered(self, exchange: Exchange) -> None:
        """A response arrived."""
        raise NotImplementedError

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        """A request has failed: no response will come."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Exchange(Requester):
    """A request and its response: the token that the coordinator gives back."""

    connection: ClientConnection
    serial: int
    request_id: int
    request: Request
    version: int
    asked_at: Millis
    expires_at: Millis
    answers: int = 0
    response: Response | None = None

    def on_response(self, response: Response) -> None:
        """Send the response back."""
        self.answers += 1
        self.connection.answer(self, response)


class ClientConnection:
    """A client's connection to a node. ``serial`` counts reconnections; exchanges of an older serial are void."""

    __slots__ = (
        "_down",
        "_last_down",
        "_last_up",
        "_up",
        "answer_lane",
        "client",
        "is_breaking",
        "network",
        "node",
        "request_lane",
        "serial",
        "timeout_lane",
        "undelivered",
        "waiting",
        "watched_at",
    )

    def __init__(self, network: Network, client: NetworkClient, node: NodeActor, kind: int) -> None:
        self.network = network
        self.client = client
        self.node = node
        # Lanes and delays depend on client and node only, so that skipped messages change nothing for others.
        slot = 2 * node.index + kind
        self.request_lane: Lane = client.lane(Order.REQUEST, slot)
        self.answer_lane: Lane = client.lane(Order.ANSWER, slot)
        # Kafka: NetworkClient reads responses before it looks for requests that have timed out.
        self.timeout_lane: Lane = client.lane(Order.CONSUMER_TIMER, slot + 1)
        self._up = 2 * self.request_lane
        self._down = 2 * self.request_lane + 1
        self.serial = 0
        self.waiting: dict[int, Exchange] = {}
        self.undelivered: list[tuple[bool, Exchange]] = []
        self.is_breaking = False
        """A message was lost: nothing that is sent after it arrives, and soon the client sees it."""
        self.watched_at: Millis | None = None
        self._last_up: Millis = 0
        self._last_down: Millis = 0

    @property
    def ends(self) -> tuple[str, str]:
        return (self.client.name, self.node.name)

    # -- requests

    def ask(self, request_id: int, request: Request, version: int, timeout_ms: Millis) -> None:
        """Send a request."""
        network = self.network
        now = network.world.now
        exchange = Exchange(self, self.serial, request_id, request, version, now, now + max(1, timeout_ms))
        self.waiting[request_id] = exchange
        self.watch(exchange.expires_at)
        observer = network.observer
        if observer is not None:
            observer.sent(exchange)
        if self.is_breaking:
            if observer is not None:
                observer.lost(exchange)
            return
        if network.lossy and network.loses_request():
            self.is_breaking = True
            if observer is not None:
                observer.lost(exchange)
            network.world.at(self.next_arrival(), self.answer_lane, self.broken, exchange)
        else:
            self.carry(exchange)

    def carry(self, exchange: Exchange) -> None:
        """Deliver a request to the node."""
        network = self.network
        if network.blocked and network.is_blocked(*self.ends):
            self.hold(True, exchange)
            return
        late = network.take_delay(self.client, exchange.request) if network.delays else 0
        if late:
            network.world.at(network.world.now + late, self.request_lane, self.arrive_late, exchange)
            return
        network.world.at(self.next_arrival(), self.request_lane, self.arrive, exchange)

    def hold(self, is_request: bool, exchange: Exchange) -> None:
        """Keep a message until its client and its node can reach each other."""
        self.undelivered.append((is_request, exchange))
        if self.network.observer is not None:
            self.network.observer.blocked(exchange)

    def next_arrival(self) -> Millis:
        """When the next request arrives that is sent now; none overtakes another."""
        now = self.network.world.now
        self._last_up = max(self._last_up, now + self.network.latency.of(self._up, now))
        return self._last_up

    def next_answer_arrival(self) -> Millis:
        """When the next response arrives that is sent now; none overtakes another."""
        now = self.network.world.now
        self._last_down = max(self._last_down, now + self.network.latency.of(self._down, now))
        return self._last_down

    def resume(self, request_id: int, request: Request, version: int, asked_at: Millis, timeout_ms: Millis) -> Exchange:
        """The exchange of a request that was sent before, and waits for its response."""
        exchange = Exchange(self, self.serial, request_id, request, version, asked_at, asked_at + timeout_ms)
        self.waiting[request_id] = exchange
        # A connection that breaks fails its requests in the order in which they were sent.
        self.waiting = dict(sorted(self.waiting.items(), key=lambda each: each[1].asked_at))
        self.watch(exchange.expires_at)
        return exchange

    def send_at(self, arrives: Millis, exchange: Exchange) -> None:
        """Deliver a request that was sent before."""
        self._last_up = max(self._last_up, arrives)
        self.network.world.at(arrives, self.request_lane, self.arrive, exchange)

    def answer_at(self, arrives: Millis, exchange: Exchange) -> None:
        """Deliver a response that was sent before."""
        self._last_down = max(self._last_down, arrives)
        self.network.world.at(arrives, self.answer_lane, self.arrive_back, exchange)

    def arrival(self, sent_at: Millis) -> Millis:
        """When a request arrives that is sent on a connection without other messages."""
        return sent_at + self.network.latency.of(self._up, sent_at)

    def answer_arrival(self, answered_at: Millis) -> Millis:
        """When a response arrives that is sent on a connection without other messages."""
        return answered_at + self.network.latency.of(self._down, answered_at)

    def arrive(self, exchange: Exchange) -> None:
        """A request arrives at the node."""
        if exchange.serial != self.serial:
            return
        if not self.node.is_up:
            self.broken(exchange)
        else:
            self.hand_over(exchange)

    def hand_over(self, exchange: Exchange) -> None:
        """Give a request to the node."""
        if self.network.observer is not None:
            self.network.observer.arrived(exchange)
        self.node.receive(exchange)

    def arrive_late(self, exchange: Exchange) -> None:
        """A request that was delayed arrives at the node, perhaps after its connection has been dropped."""
        if self.node.is_up:
            self.hand_over(exchange)

    # -- responses

    def answer(self, exchange: Exchange, response: Response) -> None:
        """Send a response."""
        if exchange.serial != self.serial:
            return
        exchange.response = response
        network, observer = self.network, self.network.observer
        if observer is not None:
            observer.answered(exchange)
        if self.is_breaking:
            if observer is not None:
                observer.lost(exchange)
            return
        if network.lossy and network.loses_answer():
            self.is_breaking = True
            if observer is not None:
                observer.lost(exchange)
            network.world.at(self.next_answer_arrival(), self.answer_lane, self.broken, exchange)
        else:
            self.carry_back(exchange)

    def carry_back(self, exchange: Exchange) -> None:
        """Deliver a response to the consumer."""
        network = self.network
        if network.blocked and network.is_blocked(*self.ends):
            self.hold(False, exchange)
            return
        network.world.at(self.next_answer_arrival(), self.answer_lane, self.arrive_back, exchange)

    def arrive_back(self, exchange: Exchange) -> None:
        """A response arrives at the consumer."""
        client = self.client
        if exchange.serial != self.serial or exchange.request_id not in self.waiting:
            return
        if client.later(self.arrive_back, exchange, self.answer_lane):
            return
        del self.waiting[exchange.request_id]
        if self.network.observer is not None:
            self.network.observer.ended(exchange, None)
        client.answered(exchange)

    # -- breaking

    def broken(self, exchange: Exchange) -> None:
        if exchange.serial == self.serial and not self.client.later(self.broken, exchange, self.answer_lane):
            self.fail_all(Failure.DISCONNECT)

    def cancel(self, request_id: int) -> None:
        """The consumer does not wait for this request any more."""
        exchange = self.waiting.pop(request_id, None)
        if exchange is not None and self.network.observer is not None:
            self.network.observer.ended(exchange, None)

    @property
    def name(self) -> str:
        """The connection as it is now, unlike those before it; empty where the node need not see its end."""
        return f"{self.request_lane}/{self.serial}" if self.client.names_connections else ""

    def drop(self, failure: Failure | None = None) -> list[Exchange]:
        """Drop the connection and return the requests that waited; the next request connects anew."""
        if self.client.names_connections and not self.network.is_blocked(*self.ends):
            now = self.network.world.now
            gone = (self.node.incarnation, self.name)
            self.network.world.at(self.arrival(now), self.request_lane, self.node.connection_lost, gone)
        self.serial += 1
        self.is_breaking = False
        self.undelivered.clear()
        lost = list(self.waiting.values())
        self.waiting.clear()
        if self.network.observer is not None:
            for exchange in lost:
                self.network.observer.ended(exchange, failure)
        return lost

    def fail_all(self, failure: Failure) -> None:
        """The connection is broken: each request that waited fails."""
        for exchange in self.drop(failure):
            self.client.failed(exchange, failure)

    def break_off(self) -> None:
        """Break now, if any request waits; a paused consumer learns of it when its pause ends."""
        if self.waiting:
            self.broken(next(iter(self.waiting.values())))

    def watch(self, at: Millis) -> None:
        """Watch for requests that time out; a connection has one timer for all."""
        if self.network.times_out and (self.watched_at is None or at < self.watched_at):
            self.watched_at = at
            self.network.world.at(at, self.timeout_lane, self._check_timeouts, at)

    def _check_timeouts(self, at: Millis) -> None:
        if self.watched_at != at:
            return
        if self.client.later(self._check_timeouts, at, self.timeout_lane):
            return
        self.watched_at = None
        now = self.network.world.now
        if any(exchange.expires_at <= now for exchange in self.waiting.values()):
            self.fail_all(Failure.TIMEOUT)
        elif self.waiting:
            self.watch(min(exchange.expires_at for exchange in self.waiting.values()))


class Network:
    """All connections, which of them are cut, and how often they break: chances are for each message."""

    def __init__(self, world: World, latency: Latency) -> None:
        self.world = world
        self.latency = latency
        self.random = world.new_random()
        self.lost_requests = 0.0
        self.lost_answers = 0.0
        self.blocked: dict[tuple[str, str], int] = {}
        self.delays: dict[tuple[str, str], Millis] = {}
        """By client and kind of request: how long the next one takes."""
        self.observer: NetworkObserver | None = None
        self.times_out = True
        """Whether requests without an answer fail after a time."""
        self.connections: list[ClientConnection] = []

    def connect(self, client: NetworkClient, node: NodeActor, kind: int) -> ClientConnection:
        """A connection, made once; when it breaks it gets a new serial."""
        connection = ClientConnection(self, client, node, kind)
        self.connections.append(connection)
        return connection

    def take_delay(self, client: NetworkClient, request: Request) -> Millis:
        """How long a request is delayed; each delay is for one."""
        return self.delays.pop((client.name, type(request).__name__.removesuffix("Request")), 0)

    @property
    def lossy(self) -> bool:
        return self.lost_requests > 0 or self.lost_answers > 0

    def loses_request(self) -> bool:
        return self.random.random() < self.lost_requests

    def loses_answer(self) -> bool:
        return self.random.random() < self.lost_answers

    def is_blocked(self, client: str, node: str) -> bool:
        return (client, node) in self.blocked

    def block(self, pairs: list[tuple[str, str]]) -> None:
        """Cut consumers off from nodes. A pair that is cut twice must be healed twice."""
        for pair in pairs:
            self.blocked[pair] = self.blocked.get(pair, 0) + 1

    def heal(self, pairs: list[tuple[str, str]]) -> None:
        """Connect them again: messages that waited arrive after all."""
        for pair in pairs:
            left = self.blocked[pair] - 1
            if left:
                self.blocked[pair] = left
            else:
                del self.blocked[pair]
        for connection in self.connections:
            if connection.undelivered and not self.is_blocked(*connection.ends):
                waiting, connection.undelivered = connection.undelivered, []
                for is_request, exchange in waiting:
                    (connection.carry if is_request else connection.carry_back)(exchange)

    def node_down(self, node: Actor) -> None:
        """Every connection to a node breaks; a consumer that is cut off notices only when its requests time out."""
        for connection in self.connections:
            if connection.node is node and connection.waiting and not self.is_blocked(*connection.ends):
                exchange = next(iter(connection.waiting.values()))
                now = self.world.now
                arrives = connection.answer_arrival(now)
                self.world.at(arrives, connection.answer_lane, connection.broken, exchange)
