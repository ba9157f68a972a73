"""The kinds of groups: one table, and the kinds that one shard has made of it.

A kind is a package with its requests, its state, and how that state is written, read and shown. What all kinds have in
common (offsets, expiry, loading, listing, deletion) finds a kind here, by a group's ``kind`` or a record's owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from rejoin.coordinator.core.groups.classic.group import CLASSIC
from rejoin.coordinator.core.groups.classic.groups import ClassicGroups
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.group import Group, GroupKind
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.share.model.state import SHARE
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.groups.streams.model.state import STREAMS
from rejoin.coordinator.core.runtime.appends import ShardLog
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.table import Owner

if TYPE_CHECKING:
    from rejoin.coordinator.core.groups.consumer.groups import ConsumerGroups
    from rejoin.coordinator.core.groups.share.groups import ShareGroups
    from rejoin.coordinator.core.groups.share.persister import SharePersister
    from rejoin.coordinator.core.groups.streams.groups import StreamsGroups


@dataclass(frozen=True, slots=True)
class ShardParts:
    """The parts of a shard that its kinds of groups work on."""

    ctx: StepContext
    log: ShardLog
    groups: dict[str, Group]
    statistics: StatisticsStore
    topics: TopicsMetadata
    persister: SharePersister


class Kinds:
    """The kinds of groups on one shard. Each is made, and its modules loaded, when it is first asked for."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts
        self._made: dict[str, GroupKind[Any]] = {}
        self._by_owner: dict[Owner, GroupKind[Any]] = {}

    def __getitem__(self, name: str) -> GroupKind[Any]:
        """The kind of this name."""
        kind = self._made.get(name)
        if kind is None:
            kind = self._made[name] = KINDS[name].make(self._parts, self)
        return kind

    def of(self, group: Group) -> GroupKind[Any]:
        """The kind of a group."""
        return self._made.get(group.kind) or self[group.kind]

    def of_records(self, owner: Owner) -> GroupKind[Any]:
        """The kind whose records an owner's are."""
        kind = self._by_owner.get(owner)
        if kind is None:
            kind = self._by_owner[owner] = self[NAME_BY_OWNER[owner]]
        return kind

    def made(self) -> Iterable[GroupKind[Any]]:
        """The kinds of which there ever was a group."""
        return self._made.values()

    # --- with their own operations

    @cached_property
    def classic(self) -> ClassicGroups:
        """Operations on classic groups."""
        return cast("ClassicGroups", self[CLASSIC])

    @cached_property
    def consumer(self) -> ConsumerGroups:
        """Operations on consumer groups."""
        return cast("ConsumerGroups", self[CONSUMER])

    @cached_property
    def share(self) -> ShareGroups:
        """Operations on share groups."""
        return cast("ShareGroups", self[SHARE])

    @cached_property
    def streams(self) -> StreamsGroups:
        """Operations on streams groups."""
        return cast("StreamsGroups", self[STREAMS])


Make: TypeAlias = Callable[[ShardParts, Kinds], GroupKind[Any]]


@dataclass(frozen=True, slots=True)
class KindEntry:
    """A kind of groups: its name as ListGroups has it, and the owner of its records."""

    name: str
    records: Owner
    make: Make


def _classic(parts: ShardParts, _: Kinds) -> GroupKind[Any]:
    return ClassicGroups(parts.ctx, parts.log, parts.groups, parts.statistics)


def _consumer(parts: ShardParts, kinds: Kinds) -> GroupKind[Any]:
    from rejoin.coordinator.core.groups.consumer.groups import ConsumerGroups  # noqa: PLC0415 - loaded with the first

    return ConsumerGroups(parts.ctx, parts.log, parts.groups, parts.topics, kinds.classic)


def _share(parts: ShardParts, _: Kinds) -> GroupKind[Any]:
    from rejoin.coordinator.core.groups.share.groups import ShareGroups  # noqa: PLC0415 - loaded with the first

    return ShareGroups(parts.ctx, parts.log, parts.groups, parts.topics, parts.persister)


def _streams(parts: ShardParts, _: Kinds) -> GroupKind[Any]:
    from rejoin.coordinator.core.groups.streams.groups import StreamsGroups  # noqa: PLC0415 - loaded with the first

    return StreamsGroups(parts.ctx, parts.log, parts.groups, parts.topics)


KINDS: Final = {
    entry.name: entry
    for entry in (
        KindEntry(CLASSIC, Owner.CLASSIC_GROUPS, _classic),
        KindEntry(CONSUMER, Owner.CONSUMER_GROUPS, _consumer),
        KindEntry(SHARE, Owner.SHARE_GROUPS, _share),
        KindEntry(STREAMS, Owner.STREAMS_GROUPS, _streams),
    )
}
"""The kinds of groups, by name."""

NAME_BY_OWNER: Final = {entry.records: entry.name for entry in KINDS.values()}
