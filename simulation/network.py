"""The network: connections that keep their order, are slow, break, and are cut off.

A consumer has two connections to a node, one for what it asks the coordinator and one for what any node may answer, as
Kafka's client has. On a connection nothing overtakes and nothing is doubled, as TCP has it. What can happen:

- the connection breaks before a request arrives (*lost request*): the coordinator never hears of it;
- it breaks before the answer arrives (*lost answer*): the coordinator has done what was asked;
- two parties cannot reach one another for a while: what was sent waits, and arrives when the way is free again, unless
  the client has lost patience before;
- the node is not there: the connection is refused.

A client that loses patience drops the connection and all that waits on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from rejoin.client.core.inputs import Failure
from rejoin.protocol.message import Request, Response
from rejoin.simulation.world import Actor, Lane, Millis, Order, World

if TYPE_CHECKING:
    from rejoin.simulation.actors.cluster import NodeActor
    from rejoin.simulation.actors.consumers import ConsumerActor

_DRAWS: Final = 1_024
_MASK: Final = 0xFFFFFFFF


class Latency:
    """One-way delays in whole ms, at least 1, drawn once from a distribution.

    Which of the draws a message gets is a function of its connection and the instant. So messages that are not played
    take nothing away from those that are.
    """

    def __init__(self, random: Random, draw: Callable[[Random], float], longest_ms: Millis) -> None:
        self.longest_ms = longest_ms
        self._delays = [min(longest_ms, max(1, round(draw(random)))) for _ in range(_DRAWS)]

    def of(self, way: int, sent_at: Millis) -> Millis:
        """The delay of what is sent this way now."""
        mixed = (way * 2654435761 + sent_at * 2246822519) & _MASK
        mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & _MASK
        return self._delays[(mixed ^ (mixed >> 13)) & (_DRAWS - 1)]


class Requester:
    """Whoever waits for a node's answer: the token of a request."""

    __slots__ = ()

    def hear(self, response: Response) -> None:
        """The node answers."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Exchange(Requester):
    """A request on its way, and its answer: the token that the coordinator gives back."""

    connection: ClientConnection
    serial: int
    request_id: int
    request: Request
    version: int
    asked_at: Millis
    expires_at: Millis
    answers: int = 0
    response: Response | None = None

    def hear(self, response: Response) -> None:
        """Send the answer back."""
        self.answers += 1
        self.connection.answer(self, response)


class ClientConnection:
    """A consumer's connection to a node. ``serial`` counts how often it was made anew; older exchanges are void."""

    __slots__ = (
        "_down",
        "_last_down",
        "_last_up",
        "_up",
        "alarm_lane",
        "answer_lane",
        "client",
        "held",
        "network",
        "node",
        "request_lane",
        "serial",
        "waiting",
        "watched_at",
    )

    def __init__(self, network: Network, client: ConsumerActor, node: NodeActor, kind: int) -> None:
        self.network = network
        self.client = client
        self.node = node
        # Lanes and delays hang on who talks to whom, not on who came first: what is not played is not missed.
        slot = 2 * node.index + kind
        self.request_lane: Lane = client.lane(Order.REQUEST, slot)
        self.answer_lane: Lane = client.lane(Order.ANSWER, slot)
        # Kafka: NetworkClient reads what has come before it looks for requests that took too long.
        self.alarm_lane: Lane = client.lane(Order.CONSUMER_TIMER, slot + 1)
        self._up = 2 * self.request_lane
        self._down = 2 * self.request_lane + 1
        self.serial = 0
        self.waiting: dict[int, Exchange] = {}
        self.held: list[tuple[bool, Exchange]] = []
        self.watched_at: Millis | None = None
        self._last_up: Millis = 0
        self._last_down: Millis = 0

    @property
    def parties(self) -> tuple[str, str]:
        return (self.client.name, self.node.name)

    # -- there

    def ask(self, request_id: int, request: Request, version: int, timeout_ms: Millis) -> None:
        """Send a request."""
        network = self.network
        now = network.world.now
        exchange = Exchange(self, self.serial, request_id, request, version, now, now + max(1, timeout_ms))
        self.waiting[request_id] = exchange
        self.watch(exchange.expires_at)
        if network.lossy and network.loses_request():
            network.world.at(now + network.latency.of(self._up, now), self.answer_lane, self._broken, exchange)
        else:
            self.carry(exchange)

    def carry(self, exchange: Exchange) -> None:
        """Take a request to the node."""
        network = self.network
        if network.blocked and network.is_blocked(*self.parties):
            self.held.append((True, exchange))
            return
        now = network.world.now
        self._last_up = max(self._last_up, now + network.latency.of(self._up, now))
        network.world.at(self._last_up, self.request_lane, self._arrive, exchange)

    def send_at(self, arrives: Millis, exchange: Exchange) -> None:
        """Put a request on its way that was sent before and arrives then."""
        self._last_up = max(self._last_up, arrives)
        self.network.world.at(arrives, self.request_lane, self._arrive, exchange)

    def answer_at(self, arrives: Millis, exchange: Exchange) -> None:
        """Put an answer on its way that was sent before and arrives then."""
        self._last_down = max(self._last_down, arrives)
        self.network.world.at(arrives, self.answer_lane, self._arrive_back, exchange)

    def arrival(self, sent_at: Millis) -> Millis:
        """When something arrives that is sent on a quiet connection."""
        return sent_at + self.network.latency.of(self._up, sent_at)

    def answer_arrival(self, answered_at: Millis) -> Millis:
        """When an answer arrives on a quiet connection."""
        return answered_at + self.network.latency.of(self._down, answered_at)

    def _arrive(self, exchange: Exchange) -> None:
        if exchange.serial != self.serial:
            return
        if not self.node.is_up:
            self._broken(exchange)
        else:
            self.node.receive(exchange)

    # -- and back

    def answer(self, exchange: Exchange, response: Response) -> None:
        """Send an answer."""
        if exchange.serial != self.serial:
            return
        exchange.response = response
        network = self.network
        if network.lossy and network.loses_answer():
            now = network.world.now
            network.world.at(now + network.latency.of(self._down, now), self.answer_lane, self._broken, exchange)
        else:
            self.carry_back(exchange)

    def carry_back(self, exchange: Exchange) -> None:
        """Take an answer to the consumer."""
        network = self.network
        if network.blocked and network.is_blocked(*self.parties):
            self.held.append((False, exchange))
            return
        now = network.world.now
        self._last_down = max(self._last_down, now + network.latency.of(self._down, now))
        network.world.at(self._last_down, self.answer_lane, self._arrive_back, exchange)

    def _arrive_back(self, exchange: Exchange) -> None:
        client = self.client
        if exchange.serial != self.serial or exchange.request_id not in self.waiting:
            return
        if client.later(self._arrive_back, exchange, self.answer_lane):
            return
        del self.waiting[exchange.request_id]
        client.answered(exchange)

    # -- ends

    def _broken(self, exchange: Exchange) -> None:
        if exchange.serial == self.serial and not self.client.later(self._broken, exchange, self.answer_lane):
            self.fail_all(Failure.DISCONNECT)

    def cancel(self, request_id: int) -> None:
        """Nobody waits for this any more."""
        self.waiting.pop(request_id, None)

    def drop(self) -> list[Exchange]:
        """Forget the connection and return what waited on it; the next request makes a new one."""
        self.serial += 1
        self.held.clear()
        lost = list(self.waiting.values())
        self.waiting.clear()
        return lost

    def fail_all(self, failure: Failure) -> None:
        """The connection is gone: the consumer hears of it for each request that waited."""
        for exchange in self.drop():
            self.client.failed(exchange, failure)

    def break_off(self) -> None:
        """Break now, as far as anything waits; the consumer hears of it as soon as its clock goes."""
        if self.waiting:
            self._broken(next(iter(self.waiting.values())))

    def watch(self, at: Millis) -> None:
        """Look for requests that took too long; one alarm for all of a connection."""
        if self.watched_at is None or at < self.watched_at:
            self.watched_at = at
            self.network.world.at(at, self.alarm_lane, self._look, at)

    def _look(self, at: Millis) -> None:
        if self.watched_at != at:
            return
        if self.client.later(self._look, at, self.alarm_lane):
            return
        self.watched_at = None
        now = self.network.world.now
        if any(exchange.expires_at <= now for exchange in self.waiting.values()):
            self.fail_all(Failure.TIMEOUT)
        elif self.waiting:
            self.watch(min(exchange.expires_at for exchange in self.waiting.values()))


class Network:
    """All connections, who cannot reach whom, and how often connections break. Chances are for each message."""

    def __init__(self, world: World, latency: Latency) -> None:
        self.world = world
        self.latency = latency
        self.random = Random(world.random.getrandbits(64))
        self.lost_requests = 0.0
        self.lost_answers = 0.0
        self.blocked: dict[tuple[str, str], int] = {}
        self._connections: list[ClientConnection] = []

    def connect(self, client: ConsumerActor, node: NodeActor, kind: int) -> ClientConnection:
        """A connection that is there for good; breaking makes it a new one."""
        connection = ClientConnection(self, client, node, kind)
        self._connections.append(connection)
        return connection

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
        """Let them reach one another again: what was sent meanwhile arrives after all."""
        for pair in pairs:
            left = self.blocked[pair] - 1
            if left:
                self.blocked[pair] = left
            else:
                del self.blocked[pair]
        for connection in self._connections:
            if connection.held and not self.is_blocked(*connection.parties):
                held, connection.held = connection.held, []
                for is_request, exchange in held:
                    (connection.carry if is_request else connection.carry_back)(exchange)

    def node_down(self, node: Actor) -> None:
        """Every connection to a node breaks; those who are cut off from it do not notice before they lose patience."""
        for connection in self._connections:
            if connection.node is node and connection.waiting and not self.is_blocked(*connection.parties):
                exchange = next(iter(connection.waiting.values()))
                now = self.world.now
                arrives = connection.answer_arrival(now)
                self.world.at(arrives, connection.answer_lane, connection._broken, exchange)
