"""Requests of one node to another. They take a millisecond each way, and are lost with a node that is down."""

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


class NodeRequest(Requester):
    """One request: the token that its receiver answers."""

    __slots__ = ("_effect", "_incarnation", "_sender")

    def __init__(self, sender: NodeActor, effect: SendRequest) -> None:
        self._sender = sender
        self._incarnation = sender.incarnation
        self._effect = effect

    def send(self) -> None:
        """Let it travel."""
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._arrive, None)

    def _arrive(self, _: None) -> None:
        effect, nodes = self._effect, self._sender.cluster.nodes
        receiver = next((node for node in nodes if node.broker.node_id == effect.node_id), None)
        if receiver is None or not receiver.is_up:
            self.on_response(None)
        else:
            receiver.hand_in(Received(self, effect.request, Context(effect.api_version, self._sender.name)))

    def on_response(self, response: Response | None) -> None:
        world = self._sender.world
        world.control(world.now + EACH_WAY_MS, self._return, response)

    def _return(self, response: Response | None) -> None:
        self._sender.answered(self._incarnation, self._effect.send_id, response)
