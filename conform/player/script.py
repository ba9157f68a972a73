"""Scripts: what clients do, on which topics. A set of scripts shares a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rejoin.conform.player.play import Play

Run: TypeAlias = Callable[["Play"], Awaitable[None]]


class ScriptFailed(Exception):
    """A script that did not go as its author meant."""


@dataclass(frozen=True)
class Script:
    """One script: its name, its run, and the topics that exist when it begins.

    Its own topic has ``partitions`` and ``configs``; ``assignment`` names the replicas of each partition.
    """

    name: str
    run: Run
    partitions: int = 2
    configs: dict[str, str] = field(default_factory=dict)
    assignment: list[list[int]] | None = None
    more_topics: dict[str, int] = field(default_factory=dict)
    """Number of partitions of each further topic."""
    epoch: int | None = None
    """Epoch of the script's transactional id when the script begins; None where the id is unknown then."""
    keeps_ids: bool = False
    """Record members and topics by the ids that the broker drew, where an order depends on the ids."""
    subject: str = ""
    """File of a script that is written in steps."""

    @property
    def topic(self) -> str:
        """The name of the script's own topic."""
        return f"orders-{self.name}"

    @property
    def transactional_id(self) -> str:
        return f"tx-{self.name}"

    @property
    def group(self) -> str:
        """The id of the script's group, which no other script of a cluster uses."""
        return f"{self.subject}.{self.name}" if self.subject else f"group-{self.name}"


@dataclass(frozen=True)
class ScriptSet:
    """Scripts that share a cluster, which are played ``at_once``, so many at a time.

    ``deny`` lists denied resources, as in ``group=secret-*``; ``topics`` exist as long as the cluster.
    """

    name: str
    scripts: Callable[[], Iterable[Script]]
    settings: dict[str, str] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    brokers: int = 1
    topics: dict[str, int] = field(default_factory=dict)
    deny: tuple[str, ...] = ()
    at_once: int = 4
    folder: str = "transactions"
    """Folder of the recording, below tests/golden."""
    is_fresh: bool = True
    """No broker of the cluster restarts: leader epochs begin at 0."""
