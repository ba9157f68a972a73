"""Requests of one node to another.

They take a millisecond each way. One fails with a node that is down or crashes, or after as long as in a service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.coordinator.core.effects import SendRequest
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.message import Response
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Requester

if TYPE_CHECKING:
    from rejoin.simulation.actors.cluster import NodeActor

EACH_WAY_MS: Final[Millis] = 1
TIMEOUT_MS: Final[Millis] = 10_000


class NodeRequest(Requester):
    """One request: the token that its receiver answers."""

    __slots__ = ("_effect", "_incarnation", "_is_done", "_receiver", "_sender")

    def __init__(self, sender: NodeActor, effect: SendRequest) -> None:
        self._sender = sender
        self._incarnation = sender.incarnation
        self._effect = effect
        self._receiver: NodeActor | None = None
        self._is_done = False

    def send(self) -> None:
        """Let it travel."""
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._arrive, None)

    def _arrive(self, _: None) -> None:
        effect, nodes, world = self._effect, self._sender.cluster.nodes, self._sender.world
        receiver = next((node for node in nodes if node.broker.node_id == effect.node_id), None)
        if receiver is None or not receiver.is_up:
            self.on_response(None)
        else:
            self._receiver = receiver
            receiver.peer_requests[self] = None
            world.control(world.now + TIMEOUT_MS, self.on_response, None)
            receiver.hand_in(Received(self, effect.request, Context(effect.api_version, self._sender.name)))

    def on_response(self, response: Response | None) -> None:
        if self._is_done:
            return
        self._is_done = True
        if self._receiver is not None:
            self._receiver.peer_requests.pop(self, None)
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._return, response)

    def _return(self, response: Response | None) -> None:
        self._sender.answered(self._incarnation, self._effect.send_id, response)
