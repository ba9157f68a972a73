"""Requests between nodes: those to the node itself are handled at once, those to others leave as effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from rejoin.coordinator.core.effects import SendRequest
from rejoin.coordinator.core.inputs import NodeAnswered, Token
from rejoin.coordinator.core.step_context import OwnToken, StepContext
from rejoin.protocol.message import Request, Response

CONTROLLER: Final = -1
"""Stands for the controller among the nodes that are asked."""

OnAnswer: TypeAlias = Callable[[Response | None], None]
"""Called once with the response, or with none where the node could not be reached."""

OwnHandler: TypeAlias = Callable[[Token, Any], None]
"""Handles what this node asks itself; nothing is checked that a broker may always do."""


class PeerRequests:
    """Asks nodes."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx
        self._handlers: dict[type[Request], OwnHandler] = {}
        self._asked: dict[int, OnAnswer] = {}
        self._last_id = 0

    def serve(self, api: type[Request], handler: OwnHandler) -> None:
        """Requests of an API that this node sends to itself are handled so."""
        self._handlers[api] = handler

    def is_own(self, node_id: int) -> bool:
        """Whether this is the node itself."""
        return node_id == self._ctx.settings.broker_id

    def ask(self, node_id: int, request: Request, api_version: int, on_answer: OnAnswer) -> None:
        """SendRequest a request to a node."""
        if self.is_own(node_id):
            self._handlers[type(request)](OwnToken(on_answer), request)
            return
        self._last_id += 1
        self._asked[self._last_id] = on_answer
        self._ctx.effects.append(SendRequest(self._last_id, node_id, request, api_version))

    def ask_controller(self, request: Request, api_version: int, on_answer: OnAnswer) -> None:
        """Send a request to the controller of several brokers, which decides on partitions."""
        self.ask(CONTROLLER, request, api_version, on_answer)

    def answered(self, what: NodeAnswered) -> None:
        """A request to another node has ended."""
        on_answer = self._asked.pop(what.send_id, None)
        if on_answer is not None:
            on_answer(what.response)
