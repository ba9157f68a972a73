"""AlterShareGroupOffsets and DeleteShareGroupOffsets, and the deletion of a group, as far as the group is concerned.

All need a group without members. What they change is written down first, then the coordinators of the share-partitions
are asked, and their answer is written down again.

Kafka: GroupCoordinatorService.alterShareGroupOffsets, deleteShareGroupOffsets, deleteShareGroups; GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from rejoin.coordinator.core.groups.group import Group, OnChecked
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.share.initializing import NO_STATE, Initializing, PartitionErrors
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.records import state_record
from rejoin.coordinator.core.groups.share.model.replay import ShareReplay
from rejoin.coordinator.core.groups.share.model.state_partitions import PartitionsInState
from rejoin.coordinator.core.groups.share.persister import SharePersister
from rejoin.journal.events.share_groups import SharePartitionsDeleted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_state import (
    DeletedPartition,
    DeletedTopic,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
)

AlterResults: TypeAlias = dict[str, dict[int, ErrorCode]]
"""By topic, by partition."""

OnAltered: TypeAlias = Callable[[AlterResults | ErrorCode], None]
OnDeleted: TypeAlias = Callable[[Mapping[str, ErrorCode] | ErrorCode], None]
"""Called with the result of each topic, or with one error for all."""


class StateDeletion(NamedTuple):
    """Topics of a group whose state is being deleted."""

    group_id: str
    topics: Mapping[str, str]
    """Names by ids."""
    request: DeleteShareGroupStateRequest


class ShareGroupOffsets:
    """Changes where share groups begin, and deletes what is kept of them."""

    def __init__(
        self,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        replay: ShareReplay,
        writes: Writes[RecordChanges],
        initializing: Initializing,
        persister: SharePersister,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._replay = replay
        self._writes = writes
        self._initializing = initializing
        self._persister = persister

    def _check(self, group_id: str) -> ShareGroup | ErrorCode | None:
        """The group if it has no members, or the error of one that has, or is of another kind; none without one."""
        group = self._groups.get(group_id)
        if group is None:
            return None
        if not isinstance(group, ShareGroup):
            return ErrorCode.GROUP_ID_NOT_FOUND
        return group if group.is_empty else ErrorCode.NON_EMPTY_GROUP

    # --- alter

    def alter(self, group_id: str, offsets: Mapping[str, Mapping[int, int]], on_altered: OnAltered) -> None:
        """Begin elsewhere: start offsets by topic, by partition. The group is made where there is none."""
        group = self._check(group_id)
        if isinstance(group, ErrorCode):
            on_altered(group)
            return
        results: AlterResults = {}
        topics: dict[str, PartitionsInState] = {}
        starts: dict[str, dict[int, int]] = {}
        for name, wanted in offsets.items():
            count = self._topics.partition_count(name)
            results[name] = {
                index: ErrorCode.NONE if 0 <= index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                for index in wanted
            }
            if count:
                # Kafka: also a topic of which no partition is there.
                known = {index: offset for index, offset in wanted.items() if 0 <= index < count}
                topic_id = self._topics.id_of(name)
                topics[topic_id], starts[topic_id] = PartitionsInState(name, frozenset(known)), known
        if not topics:
            on_altered(results)
            return
        changes = self._writes.begin()
        request = self._initializing.write(group or self._replay.new_group(group_id), topics, starts, changes)
        self._writes.commit(group_id, changes, partial(self._altered, results, request, on_altered))

    def _altered(
        self,
        results: AlterResults,
        request: InitializeShareGroupStateRequest | None,
        on_altered: OnAltered,
        error: ErrorCode,
    ) -> None:
        if error is not ErrorCode.NONE:
            on_altered(error)
        elif request is None:
            on_altered(results)
        else:
            self._initializing.send(request, partial(self._begun, results, on_altered))

    def _begun(self, results: AlterResults, on_altered: OnAltered, errors: PartitionErrors) -> None:
        for topic_id, partitions in errors.items():
            name = self._topics.named(topic_id)
            if name in results:
                results[name].update(partitions)
        on_altered(results)

    # --- delete

    def delete(self, group_id: str, names: list[str], on_deleted: OnDeleted) -> None:
        """Delete the state of topics; a later member has them initialised anew."""
        group = self._check(group_id)
        if not isinstance(group, ShareGroup):
            on_deleted(group or ErrorCode.GROUP_ID_NOT_FOUND)
            return
        states = group.state_partitions
        if states is None:
            on_deleted({})
            return
        results: dict[str, ErrorCode] = {}
        topics: dict[str, str] = {}
        for name in names:
            topic_id = self._topics.id_of(name) if name in self._topics else ""
            if topic_id in states.initialized or topic_id in states.deleting:
                topics[topic_id] = name
            else:
                results[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        changes = self._writes.begin()
        deletion = self._begin(group, topics, changes)
        self._writes.commit(group_id, changes, partial(self._deleting, deletion, results, on_deleted))

    def _begin(self, group: ShareGroup, topics: Mapping[str, str], changes: RecordChanges) -> StateDeletion:
        """Write that the state of topics is being deleted."""
        states = group.state_partitions or NO_STATE
        partitions: dict[str, frozenset[int]] = {}
        for topic_id, name in topics.items():
            found = [of[topic_id].partitions for of in (states.initializing, states.initialized) if topic_id in of]
            if topic_id in states.deleting:
                # Kafka: nothing says which partitions are left, so all of them are deleted again.
                found.append(frozenset(range(self._topics.partition_count(name))))
            partitions[topic_id] = frozenset[int]().union(*found)
        changes.write(state_record(group.group_id, states.begin_deletion(topics)))
        request = DeleteShareGroupStateRequest(
            group_id=group.group_id,
            topics=tuple(
                DeletedTopic(
                    topic_id=topic_id,
                    partitions=tuple(DeletedPartition(partition=index) for index in sorted(indexes)),
                )
                for topic_id, indexes in partitions.items()
                if indexes
            ),
        )
        return StateDeletion(group.group_id, topics, request)

    def _deleting(
        self, deletion: StateDeletion, results: dict[str, ErrorCode], on_deleted: OnDeleted, error: ErrorCode
    ) -> None:
        if error is not ErrorCode.NONE:
            on_deleted(error)
        elif not deletion.request.topics:
            on_deleted(results)
        else:
            self._persister.delete(deletion.request, partial(self._deleted, deletion, results, on_deleted))

    def _deleted(
        self,
        deletion: StateDeletion,
        results: dict[str, ErrorCode],
        on_deleted: OnDeleted,
        response: DeleteShareGroupStateResponse,
    ) -> None:
        """The state of topics is gone as far as all of their partitions are."""
        errors = topic_errors(response)
        results.update({name: errors.get(topic_id, ErrorCode.NONE) for topic_id, name in deletion.topics.items()})
        gone = [topic_id for topic_id in deletion.topics if errors.get(topic_id, ErrorCode.NONE) is ErrorCode.NONE]
        group = self._groups.get(deletion.group_id)
        if self._initializing.is_closed:
            on_deleted(ErrorCode.NOT_COORDINATOR)
        elif not gone or not isinstance(group, ShareGroup) or group.state_partitions is None:
            on_deleted(results)
        else:
            changes = self._writes.begin()
            changes.write(state_record(group.group_id, group.state_partitions.end_deletion(gone)))
            changes.events.append(_deletion_event(deletion, errors))
            self._writes.commit(group.group_id, changes, partial(_finish_deletion, results, on_deleted))

    # --- the whole group

    def prepare_deletion(self, group: ShareGroup, then: OnChecked) -> None:
        """Delete the state of all topics of a group that is to be deleted. After an error the group stays."""
        states = group.state_partitions
        if states is None:
            then(ErrorCode.NONE)
            return
        topics = {
            **{
                topic_id: state.name
                for of in (states.initializing, states.initialized)
                for topic_id, state in of.items()
            },
            **{
                topic_id: name for topic_id, name in states.deleting.items() if self._topics.named(topic_id) is not None
            },
        }
        changes = self._writes.begin()
        deletion = self._begin(group, topics, changes)
        self._writes.commit(group.group_id, changes, partial(self._preparing, deletion, then))

    def _preparing(self, deletion: StateDeletion, then: OnChecked, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE or not deletion.request.topics:
            then(error)
        else:
            self._persister.delete(deletion.request, partial(self._prepared, then))

    def _prepared(self, then: OnChecked, response: DeleteShareGroupStateResponse) -> None:
        if self._initializing.is_closed:
            then(ErrorCode.NOT_COORDINATOR)
        else:
            then(
                next(
                    (error for error in topic_errors(response).values() if error is not ErrorCode.NONE), ErrorCode.NONE
                )
            )


def topic_errors(response: DeleteShareGroupStateResponse) -> dict[str, ErrorCode]:
    """The first error of each topic, by its id."""
    return {
        topic.topic_id: next(
            (each.error_code for each in topic.partitions if each.error_code is not ErrorCode.NONE), ErrorCode.NONE
        )
        for topic in response.results
    }


def _deletion_event(deletion: StateDeletion, errors: Mapping[str, ErrorCode]) -> SharePartitionsDeleted:
    failed = [error for error in errors.values() if error is not ErrorCode.NONE]
    return SharePartitionsDeleted(
        group_id=deletion.group_id,
        topics=sorted(deletion.topics.values()),
        error=failed[0].name if failed else None,
    )


def _finish_deletion(results: dict[str, ErrorCode], on_deleted: OnDeleted, error: ErrorCode) -> None:
    on_deleted(results if error is ErrorCode.NONE else error)
