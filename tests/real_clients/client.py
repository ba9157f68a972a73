"""What the life of a client is made of, in words that fit every Kafka library."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias

Partition: TypeAlias = tuple[str, int]

PATIENCE_SECONDS = 120.0


class Client(ABC):
    """A library with its admin client, its producers, and the members of one group. Everything blocks."""

    name: ClassVar[str]
    version: ClassVar[str]
    without: ClassVar[frozenset[str]] = frozenset()
    """The steps that the library cannot do."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.seen: list[str] = []
        """The values of all records that members of the group were given, in that order."""

    @abstractmethod
    def close(self) -> None:
        """Close whatever is open."""

    # --- topics

    @abstractmethod
    def create_topic(self, topic: str, partitions: int) -> None: ...

    @abstractmethod
    def partitions_of(self, topic: str) -> int:
        """How many partitions metadata shows; 0 for a topic that is not there."""

    @abstractmethod
    def grow_topic(self, topic: str, partitions: int) -> None: ...

    @abstractmethod
    def topic_config(self, topic: str) -> dict[str, str | None]: ...

    @abstractmethod
    def alter_topic_config(self, topic: str, name: str, value: str) -> None: ...

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    # --- records

    @abstractmethod
    def produce(self, topic: str, values: Iterable[str], *, idempotent: bool) -> list[tuple[int, int]]:
        """Produce and flush; returns partition and offset of each record."""

    @abstractmethod
    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Returns the first offset that is left."""

    # --- the group

    @abstractmethod
    def join(self, member: str, group_id: str, topic: str) -> None:
        """Add a member, which begins at the earliest offset."""

    @abstractmethod
    def leave(self, member: str) -> None: ...

    def leave_all(self) -> None:
        """Leave the group without members."""
        for member in list(self.assignments()):
            self.leave(member)

    @abstractmethod
    def poll(self) -> None:
        """Poll each member once, for a moment, and add the values to ``seen``."""

    @abstractmethod
    def assignments(self) -> dict[str, set[int]]:
        """The partitions of each member."""

    @abstractmethod
    def commit(self) -> None:
        """Every member commits its positions, and waits for that."""

    def poll_until(self, condition: Callable[[], bool]) -> None:
        """Poll until something is so."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < end, f"not reached: {self.assignments()}, {len(self.seen)} records seen"
            self.poll()

    def poll_until_shared(self, members: int, partitions: int) -> None:
        """Poll until so many members have all partitions between them, each at least one."""

        def is_shared() -> bool:
            owned = list(self.assignments().values())
            return (
                len(owned) == members
                and all(owned)
                and sum(map(len, owned)) == len(set[int]().union(*owned)) == partitions
            )

        self.poll_until(is_shared)

    # --- questions

    @abstractmethod
    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        """The committed offsets of a group."""

    @abstractmethod
    def offsets_at(self, topic: str, timestamp: int, partitions: int) -> dict[int, int | None]:
        """The first offset of each partition at or after an instant; none where there is none."""

    @abstractmethod
    def describe_group(self, group_id: str) -> tuple[str, int]:
        """State and number of members."""

    @abstractmethod
    def list_groups(self) -> set[str]: ...

    @abstractmethod
    def delete_group(self, group_id: str) -> None: ...
