"""The free clients of a run: the letters that they could send next, as choices, and what these do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rejoin.simulation.explore.free.client import FreeClient
from rejoin.simulation.explore.free.letters import LETTERS, Sent

if TYPE_CHECKING:
    from rejoin.simulation.explore.free.spec import FreeSpec
    from rejoin.simulation.network import Exchange
    from rejoin.simulation.simulation import Simulation


class FreeClients:
    """All free clients of one run. Their letters are numbered: those of the first client, then those of the next."""

    def __init__(self, free: FreeSpec, simulation: Simulation) -> None:
        self.free = free
        self.letters = free.alphabet()
        self.clients = [FreeClient(simulation, free, number) for number in range(free.clients)]

    def sendable(self) -> list[int]:
        """The numbers of all letters that can be sent now."""
        found = []
        for client in self.clients:
            first = client.number * len(self.letters)
            found += [first + at for at, letter in enumerate(self.letters) if LETTERS[letter](client) is not None]
        return found

    def begin_step(self) -> None:
        """Forget the answers of the step before."""
        for client in self.clients:
            client.answers.clear()

    def send(self, number: int) -> None:
        """Send a letter."""
        client, _ = self.sender(number)
        client.send(self.sent(number))

    def sent(self, number: int) -> Sent:
        """The request of a letter that can be sent."""
        client, letter = self.sender(number)
        sent = LETTERS[letter](client)
        assert sent is not None, "the letter was a choice"
        version = self.free.versions.get(type(sent.request).__name__.removesuffix("Request"))
        return sent if version is None else sent.in_version(version)

    def sender(self, number: int) -> tuple[FreeClient, str]:
        """The client and the name of a letter."""
        client, letter = divmod(number, len(self.letters))
        return self.clients[client], self.letters[letter]

    def label(self, number: int) -> str:
        """A letter in words."""
        client, letter = self.sender(number)
        return f"{client.name}: {letter}"

    def answers(self) -> list[Exchange]:
        """Requests that the last step has answered: by client, in the order in which they were sent."""
        answered = [exchange for client in self.clients for exchange in client.answers]
        return sorted(answered, key=lambda each: each.request_id)

    # -- the state

    def known(self) -> dict[int, str]:
        """The objects that a form names."""
        known = {id(client): client.name for client in self.clients}
        known.update((id(client.connection), f"{client.name}'s connection") for client in self.clients)
        return known

    def parts(self) -> Iterator[Any]:
        """The knowledge of each client."""
        for client in self.clients:
            yield client.knowledge()
