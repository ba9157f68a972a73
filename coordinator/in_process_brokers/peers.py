"""Requests of one broker to another, within the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.peers import CONTROLLER
from rejoin.coordinator.in_process_brokers.broker import BrokerApp
from rejoin.protocol.message import Request, Response


class BrokerPeers:
    """The other brokers, as one of them reaches them. ``reaches`` says whether it does.

    ``ask_controller`` gives the controller's answer to a request of a broker, or none where it cannot be reached.
    """

    def __init__(
        self,
        by: BrokerApp,
        apps: Sequence[BrokerApp],
        reaches: Callable[[int, int], bool],
        ask_controller: Callable[[int, Request], Response | None],
    ) -> None:
        self._by = by
        self._ask_controller = ask_controller
        self._apps = {app.node_id: app for app in apps}
        self._reaches = reaches

    def send(
        self, node_id: int, request: Request, api_version: int, on_answer: Callable[[Response | None], None]
    ) -> None:
        """Send a request to a broker. ``on_answer`` is called once, with none where it could not be reached."""
        if node_id == CONTROLLER:
            on_answer(self._ask_controller(self._by.node_id, request))
            return
        if node_id not in self._apps or not self._reaches(self._by.node_id, node_id):
            on_answer(None)
            return
        runtime = self._apps[node_id].runtime
        context = Context(api_version, f"broker-{self._by.node_id}", by_operator=True)
        runtime.submit(request, context).when_answered(on_answer)
