"""Replays each record of a group on the groups of a shard, and can undo it: epochs, members and their assignments.

Records are replayed at once when they are written, and at load. After compaction only the last record of each key is
left, in any order: each makes the group and the member that it needs. Kafka: GroupMetadataManager.replay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH
from rejoin.coordinator.core.groups.modern.group import EpochMember, ModernGroup
from rejoin.coordinator.core.groups.modern.records import PartRecords
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, GroupPart, MemberPart
from rejoin.protocol.records.keyed import Record

G = TypeVar("G", bound=ModernGroup[Any, Any])

Replay: TypeAlias = Callable[[Any], Undo]
"""Applies a record of one type; returns what undoes it."""


class ModernReplay(ABC, Generic[G]):
    """Replays the records of one kind of groups. The kind says what is in its records, and adds those of its own."""

    def __init__(self, groups: dict[str, Group], group_type: type[G], parts: PartRecords, released: object) -> None:
        """``released`` is the current assignment of a member after its tombstone."""
        self._groups: dict[str, Any] = groups
        self._group_type = group_type
        self._released = released
        self._by_type: dict[type[Any], Replay] = {
            parts.epoch: self._epoch,
            parts.member: self._member,
            parts.target_epoch: self._target_epoch,
            parts.target: self._target,
            parts.current: self._current,
        }

    def replay(self, record: Record) -> Undo:
        """Apply a record; returns what undoes it."""
        replay = self._by_type.get(type(record))
        return nothing_to_undo if replay is None else replay(record)

    # --- what a kind says

    @abstractmethod
    def new_group(self, group_id: str) -> G:
        """A group that is in no record yet."""

    @abstractmethod
    def repair(self, group_id: str) -> None:
        """A change of a group has failed behind which others were made: mend what depends on both."""

    @abstractmethod
    def _metadata_of(self, value: Any) -> object:
        """A member as its record describes it."""

    @abstractmethod
    def _target_of(self, value: Any) -> object:
        """A member's target assignment, from its record."""

    @abstractmethod
    def _current_of(self, value: Any) -> object:
        """A member's current assignment, from its record."""

    def _restoring(self, group: G, member_id: str, metadata: object | None, current: object | None) -> Undo:
        """The undoing of a change of a member's metadata; without metadata the member was not there before."""
        return partial(_restore, group, member_id, metadata, current)

    # --- groups

    def known(self, group_id: str) -> G | None:
        """The group of this kind and id, if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, self._group_type) else None

    def _change(self, group_id: str, change: Callable[[G], Undo]) -> Undo:
        """Change the group of a record, made where it is not there; a simple group of offsets gives way."""
        group = self._groups.get(group_id)
        if isinstance(group, self._group_type):
            return change(group)
        made = self._groups[group_id] = self.new_group(group_id)
        change(made)
        return partial(self._put_back, group_id, group)

    def _put_back(self, group_id: str, group: object | None) -> None:
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def _epoch(self, record: GroupPart[Any]) -> Undo:
        group_id = record.key.data.group_id
        if record.value is not None:
            value = record.value.data
            return self._change(group_id, lambda group: self._set_epoch(group, value))
        known = self.known(group_id)
        if known is None:
            return nothing_to_undo
        del self._groups[group_id]
        return partial(self._put_back, group_id, known)

    def _set_epoch(self, group: G, value: Any) -> Undo:
        """Take in the record of a group's epoch."""
        undo = partial(group.set_epoch, group.epoch, group.metadata_hash)
        group.set_epoch(value.epoch, value.metadata_hash)
        return undo

    # --- targets

    def _target_epoch(self, record: GroupPart[AssignmentEpoch]) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            return nothing_to_undo if known is None else _set_assignment_epoch(known, NO_EPOCH, known.assignment_at)
        epoch, at = record.value.data.assignment_epoch, record.value.data.assignment_timestamp
        return self._change(group_id, lambda group: _set_assignment_epoch(group, epoch, at))

    def _target(self, record: MemberPart[Any]) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            if known is None or key.member_id not in known.targets:
                return nothing_to_undo
            return _set_target(known, key.member_id, None)
        target = self._target_of(record.value.data)
        return self._change(key.group_id, lambda group: _set_target(group, key.member_id, target))

    # --- members

    def _member(self, record: MemberPart[Any]) -> Undo:
        key = record.key.data
        if record.value is not None:
            value = record.value.data
            return self._change(key.group_id, lambda group: self._set_metadata(group, key.member_id, value))
        known = self.known(key.group_id)
        member: EpochMember | None = None if known is None else known.members.get(key.member_id)
        if known is None or member is None:
            return nothing_to_undo
        undo = self._restoring(known, key.member_id, member.metadata, member.current)
        undo = known.member_order.restoring(member.number, undo)
        known.set_metadata(key.member_id, None)
        return undo

    def _set_metadata(self, group: G, member_id: str, value: Any) -> Undo:
        member: EpochMember | None = group.members.get(member_id)
        undo = self._restoring(group, member_id, None if member is None else member.metadata, None)
        undo = group.member_order.restoring(None, undo)
        group.set_metadata(member_id, self._metadata_of(value))
        return undo

    def _current(self, record: MemberPart[Any]) -> Undo:
        key = record.key.data
        if record.value is not None:
            current = self._current_of(record.value.data)
            return self._change(key.group_id, lambda group: _set_current(group, key.member_id, current))
        known = self.known(key.group_id)
        if known is None or key.member_id not in known.members:
            return nothing_to_undo
        return _set_current(known, key.member_id, self._released)


def _set_assignment_epoch(group: ModernGroup[Any, Any], epoch: int, at: Millis) -> Undo:
    undo = partial(group.set_assignment_epoch, group.assignment_epoch, group.assignment_at)
    group.set_assignment_epoch(epoch, at)
    return undo


def _set_target(group: ModernGroup[Any, Any], member_id: str, target: object) -> Undo:
    undo = partial(group.set_target, member_id, group.targets.get(member_id))
    group.set_target(member_id, target)
    return undo


def _set_current(group: ModernGroup[Any, Any], member_id: str, current: object) -> Undo:
    member: EpochMember | None = group.members.get(member_id)
    if member is None:
        undo = partial(group.set_metadata, member_id, None)
    else:
        undo = partial(group.set_current, member_id, member.current)
    restore = group.member_order.restoring(None, undo)
    group.set_current(member_id, current)
    return restore


def _restore(group: ModernGroup[Any, Any], member_id: str, metadata: object | None, current: object | None) -> None:
    """Restore a member, or take it out where it was not there."""
    group.set_metadata(member_id, metadata)
    if current is not None:
        group.set_current(member_id, current)
