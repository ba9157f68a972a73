"""Access control entries: what they are, which of them a filter selects, and the table of all.

Kafka: StandardAcl, AclCache, ResourcePatternFilter, AccessControlEntryFilter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.coordinator.core.security.recorded_state import RecordedState
from rejoin.coordinator.core.security.resources import ANYTHING, Operation, Resource
from rejoin.protocol.message import Struct
from rejoin.protocol.records.security import (
    AccessControlEntryData,
    AccessControlEntryRecord,
    RemoveAccessControlEntryData,
    RemoveAccessControlEntryRecord,
)
from rejoin.protocol.security.acl_bindings import PatternType, Permission

Decided: TypeAlias = tuple[str, str, str, Operation, Resource]
"""A decision's principal, host, name of a resource, operation and kind of resource."""


ANY: Final = 1
"""Kafka's number for anything, in the fields of filters."""


class Acl(NamedTuple):
    """One entry: who may or may not do what, on which resources, from where. Numbers are Kafka's."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def allows(self) -> bool:
        return self.permission_type == Permission.ALLOW


class AclFilter(NamedTuple):
    """Selects ACLs. A text that is none and the number ``ANY`` stand for everything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in {ANY, acl.resource_type}
            and self._matches_name(acl)
            and self.principal in {None, acl.principal}
            and self.host in {None, acl.host}
            and self.operation in {ANY, acl.operation}
            and self.permission_type in {ANY, acl.permission_type}
        )

    def _matches_name(self, acl: Acl) -> bool:
        pattern, name = self.pattern_type, self.resource_name
        if pattern not in {PatternType.ANY, PatternType.MATCH, acl.pattern_type}:
            return False
        if name is None:
            return True
        if pattern != PatternType.MATCH:
            return name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in {name, ANYTHING}


class _ResourceAcls:
    """The ACLs on one kind of resource, by name and by prefix."""

    def __init__(self) -> None:
        self.literal: dict[str, dict[Acl, None]] = {}
        self.prefixed: dict[str, dict[Acl, None]] = {}
        self._lengths: Counter[int] = Counter()
        self._sorted_lengths: tuple[int, ...] = ()

    def add(self, acl: Acl) -> None:
        name = acl.resource_name
        if acl.pattern_type == PatternType.LITERAL:
            self.literal.setdefault(name, {})[acl] = None
            return
        if name not in self.prefixed:
            self._lengths[len(name)] += 1
            self._sorted_lengths = tuple(sorted(self._lengths))
        self.prefixed.setdefault(name, {})[acl] = None

    def remove(self, acl: Acl) -> None:
        name = acl.resource_name
        by_name = self.literal if acl.pattern_type == PatternType.LITERAL else self.prefixed
        del by_name[name][acl]
        if by_name[name]:
            return
        del by_name[name]
        if by_name is self.prefixed:
            self._lengths[len(name)] -= 1
            self._lengths += Counter()  # forgets what is 0
            self._sorted_lengths = tuple(sorted(self._lengths))

    def about(self, name: str) -> Iterator[Acl]:
        """The ACLs on the resource of this name."""
        yield from self.literal.get(name, ())
        if name != ANYTHING:
            yield from self.literal.get(ANYTHING, ())
        longest = len(name)
        for length in self._sorted_lengths:
            if length > longest:
                return
            yield from self.prefixed.get(name[:length], ())


class AclTable(RecordedState):
    """All ACLs of the cluster, by id and by the resources that they are about."""

    RECORDS: ClassVar[tuple[type[Struct], ...]] = (AccessControlEntryRecord, RemoveAccessControlEntryRecord)

    def __init__(self) -> None:
        self.by_id: dict[str, Acl] = {}
        self.ids: dict[Acl, str] = {}
        self.decisions: dict[Decided, bool] = {}
        """Decisions of the authorizer since the last change."""
        self._by_resource: dict[int, _ResourceAcls] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def about(self, resource_type: int, name: str) -> Iterator[Acl]:
        """The ACLs on one resource: those with its name, those with a prefix of it, and those on everything."""
        found = self._by_resource.get(resource_type)
        return iter(()) if found is None else found.about(name)

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """The ACLs on resources of one kind."""
        found = self._by_resource.get(resource_type)
        if found is not None:
            for by_name in (found.literal, found.prefixed):
                for acls in by_name.values():
                    yield from acls

    def replay(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        self.decisions.clear()
        if isinstance(record, RemoveAccessControlEntryRecord):
            self._remove(record.data.id)
            return
        data = record.data
        self._remove(data.id)
        acl = Acl(
            data.resource_type,
            data.resource_name,
            data.pattern_type,
            data.principal,
            data.host,
            data.operation,
            data.permission_type,
        )
        self.by_id[data.id] = acl
        self.ids[acl] = data.id
        self._by_resource.setdefault(acl.resource_type, _ResourceAcls()).add(acl)

    def _remove(self, acl_id: str) -> None:
        acl = self.by_id.pop(acl_id, None)
        if acl is not None and self.ids.get(acl) == acl_id:
            del self.ids[acl]
            self._by_resource[acl.resource_type].remove(acl)

    def clear(self) -> None:
        self.by_id.clear()
        self.ids.clear()
        self._by_resource.clear()
        self.decisions.clear()

    def records(self) -> TopicsRecords:
        return tuple([creation(acl_id, acl) for acl_id, acl in self.by_id.items()])


def creation(acl_id: str, acl: Acl) -> AccessControlEntryRecord:
    """The record of a new ACL."""
    return AccessControlEntryRecord(data=AccessControlEntryData(id=acl_id, **acl._asdict()))


def removal(acl_id: str) -> RemoveAccessControlEntryRecord:
    """The record that removes an ACL."""
    return RemoveAccessControlEntryRecord(data=RemoveAccessControlEntryData(id=acl_id))
