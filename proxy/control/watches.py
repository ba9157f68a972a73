"""Several watches as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.proxy.exchange import ProxiedRequest

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay
    from rejoin.proxy.service import Watch


class SeveralWatches:
    """Passes each exchange on to the watches that want to see its API."""

    def __init__(self, *watches: Watch) -> None:
        self._watches = watches
        self.watched = frozenset[int]().union(*(each.watched for each in watches))

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Pass on."""
        for each in self._watches:
            if exchange.plan.key in each.watched:
                each.exchanged(relay, exchange)

    def connection_ended(self, relay: Relay) -> None:
        """Pass on."""
        for each in self._watches:
            each.connection_ended(relay)
