"""A broker's runtime that can be paused, cut off from its clients, killed, and started with a new node."""

from __future__ import annotations

from collections import deque

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import ConnectionLost, Context, Input, Received
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.driver import Runtime
from rejoin.protocol.message import Request


class BrokerRuntime(Runtime):
    """One of several brokers in this process. It runs, is paused, or is down."""

    is_up = True
    """Whether the broker's process runs, or would if it were not paused."""
    is_paused = False
    """Whether the broker is paused: input waits until it goes on."""
    is_cut_off = False
    """Whether the broker is cut off from its clients: neither requests nor answers arrive."""

    _arrived: deque[Received | ConnectionLost] | None = None
    _blocked: list[Reply] | None = None
    _on_the_way: list[Received | ConnectionLost] | None = None
    _unanswered: dict[PendingReply, None] | None = None

    # --- a paused process

    def pause(self) -> None:
        """Stand still, as a process does that is stopped by a signal."""
        self.is_paused = True
        self._arrived = deque()

    def resume(self) -> None:
        """Resume: first with the controller's decisions meanwhile, then with clients' requests."""
        self.is_paused = False
        arrived, self._arrived = self._arrived or deque(), None
        self._inbox.extend(arrived)
        self._drive()

    # --- clients that cannot be reached

    def cut_off(self) -> None:
        """Delay requests of clients, and responses to them, until :meth:`heal`."""
        self.is_cut_off = True
        self._blocked, self._on_the_way = [], []

    def heal(self) -> None:
        """Deliver the requests and responses that waited."""
        self.is_cut_off = False
        blocked, self._blocked = self._blocked or [], None
        sent, self._on_the_way = self._on_the_way or [], None
        for reply in blocked:
            self._deliver(reply)
        for what in sent:
            self._take_in(what)

    # --- a process that ends

    def kill(self) -> None:
        """Lose everything in memory. Requests that wait are never answered."""
        waiting, self._unanswered = self._unanswered or {}, {}
        self.is_up = self.is_paused = self.is_cut_off = False
        self._arrived = self._blocked = self._on_the_way = None
        self._inbox.clear()
        self._leading.clear()
        self.load_ms.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for pending in waiting:
            pending.lose()

    def start_anew(self, node: Node) -> None:
        """Run again, with a node that knows nothing yet."""
        self.is_up = True
        self.go_on_with(node, {})

    # --- as a runtime

    def submit(self, request: Request, context: Context) -> PendingReply:
        if not self.is_up:
            lost = PendingReply()
            lost.lose()
            return lost
        pending = PendingReply()
        if self._unanswered is None:
            self._unanswered = {}
        self._unanswered[pending] = None
        received = Received(pending, request, context)
        if self._on_the_way is not None:
            self._on_the_way.append(received)
        else:
            self._take_in(received)
        return pending

    def hand_in(self, what: Input) -> None:
        # The end of a connection is seen after the requests that came by it.
        if self._on_the_way is not None and isinstance(what, ConnectionLost):
            self._on_the_way.append(what)
        else:
            super().hand_in(what)

    def _take_in(self, what: Input) -> None:
        if not self.is_up:
            return
        if self._arrived is None:
            super()._take_in(what)
        elif isinstance(what, Received | ConnectionLost):
            self._arrived.append(what)
        else:
            self._inbox.append(what)

    def _reply(self, effect: Reply) -> None:
        if self._blocked is None:
            self._deliver(effect)
        else:
            self._blocked.append(effect)

    def _deliver(self, effect: Reply) -> None:
        if self._unanswered is not None and isinstance(effect.token, PendingReply):
            self._unanswered.pop(effect.token, None)
        super()._reply(effect)

    def _ring(self) -> None:
        if self.is_up and not self.is_paused:
            super()._ring()
        else:
            self._alarm = None
