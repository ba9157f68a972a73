"""Principals that a test gives clients while the coordinator runs, so that it needs no log-ins and no certificates."""

from __future__ import annotations

from dataclasses import replace

from rejoin.coordinator.core.inputs import ANONYMOUS, Context
from rejoin.coordinator.core.security.client_principals import ClientPrincipals


class GivenPrincipals:
    """Principals by client id; a star at the end of an id is a prefix. A client that has logged in keeps its own.

    A request has its principal before the node sees it.
    """

    def __init__(self) -> None:
        self.by_client: dict[str, str] = {}
        self._found = ClientPrincipals(())

    def give(self, client_id: str, principal: str | None) -> None:
        """Give a client a principal; none takes it away again."""
        if principal is None:
            self.by_client.pop(client_id, None)
        else:
            self.by_client[client_id] = principal
        self._found = ClientPrincipals(self.by_client.items())

    def clear(self) -> None:
        """Take all principals away."""
        self.by_client.clear()
        self._found = ClientPrincipals(())

    def applied(self, context: Context) -> Context:
        """The context of a request, with the principal of its client."""
        if not self.by_client or context.by_operator:
            return context
        principal = self._found.of(context)
        return context if principal in {context.principal, ANONYMOUS} else replace(context, principal=principal)
