"""One trouble: what is done to a client, what it must do about that, and the check that judges it."""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.conform.clients.acts import Act
from rejoin.conform.clients.checks import Check


@dataclass(frozen=True)
class ClientTrouble:
    """A trouble. ``before`` prepares the broker before the client starts; ``act`` follows once it has joined.

    A client that reacted is watched for a while before it is judged where ``is_watched`` is set.
    """

    name: str
    done: str
    expected: str
    source: str
    check: Check
    act: Act | None = None
    before: Act | None = None
    brokers: int = 1
    is_watched: bool = False
