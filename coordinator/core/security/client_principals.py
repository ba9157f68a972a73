"""Principals of clients that do not log in, by their client ids: a test sees a refusal without any certificate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from rejoin.coordinator.core.inputs import ANONYMOUS, Context
from rejoin.coordinator.settings.security import client_principals


class ClientPrincipals:
    """Principals by client id, or by the beginning of one. A client that has logged in keeps its own."""

    def __init__(self, given: Iterable[tuple[str, str]]) -> None:
        self._exact: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}
        for client_id, principal in given:
            if client_id.endswith("*"):
                self._prefixes[client_id[:-1]] = principal
            else:
                self._exact[client_id] = principal

    @classmethod
    def of_setting(cls, text: str) -> Self:
        """The principals of ``emulator.principals``."""
        return cls(client_principals(text))

    def of(self, context: Context) -> str:
        """The principal of a client; of several prefixes the longest counts."""
        if context.principal != ANONYMOUS:
            return context.principal
        client_id = context.client_id
        found = self._exact.get(client_id)
        if found is not None or not self._prefixes:
            return found or ANONYMOUS
        fitting = [prefix for prefix in self._prefixes if client_id.startswith(prefix)]
        return self._prefixes[max(fitting, key=len)] if fitting else ANONYMOUS
