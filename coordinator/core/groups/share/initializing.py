"""Which share-partitions are initialised: what a group lacks, what its coordinators answer, and topics that go.

A leader serves a share-partition only when its state is initialised, and the assignor hands out none before.
Kafka: GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest and its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeAlias

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import OnWritten, RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.share.group_settings import ShareSettings
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.records import state_record
from rejoin.coordinator.core.groups.share.model.state_partitions import (
    UNKNOWN_TOPIC,
    PartitionsInState,
    StatePartitions,
    StateTopics,
)
from rejoin.coordinator.core.groups.share.persister import SharePersister
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.share_groups import SharePartitionsInitialized, SharePartitionsInitializing
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_state import (
    InitializedPartition,
    InitializedTopic,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

BY_LEADER: Final = -1
"""The start offset of a share-partition whose leader looks for it by the group's ``share.auto.offset.reset``."""

StartOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Start offsets by topic id, by partition."""

PartitionErrors: TypeAlias = Mapping[str, dict[int, ErrorCode]]
"""By topic id, by partition."""

OnInitialized: TypeAlias = Callable[[PartitionErrors], None]

NO_STATE: Final = StatePartitions()


class Initializing:
    """Initialises the share-partitions of one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        writes: Writes[RecordChanges],
        persister: SharePersister,
        settings: ShareSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._writes = writes
        self._persister = persister
        self._settings = settings
        self.is_closed = False
        """Whether another node has the groups, so that answers come too late."""

    # --- what is missing

    def begin(self, group: ShareGroup, changes: RecordChanges) -> InitializeShareGroupStateRequest | None:
        """Write down what is to be initialised of the subscribed topics; returns what to send when it is stored."""
        missing = self._missing(group)
        if not missing:
            return None
        states = group.state_partitions or NO_STATE
        known = {**states.initialized, **states.initializing}
        # Kafka: new partitions of a topic that the group knows are read from their beginning.
        offsets = {
            topic_id: dict.fromkeys(sorted(state.partitions), 0 if topic_id in known else BY_LEADER)
            for topic_id, state in missing.items()
        }
        return self.write(group, missing, offsets, changes)

    def _missing(self, group: ShareGroup) -> StateTopics:
        """Partitions of subscribed topics that are neither initialised nor on the way there for a short time."""
        states = group.state_partitions or NO_STATE
        overdue = self._ctx.now - self._settings.initialize_retry_ms
        nothing = frozenset[int]()
        missing = {}
        for name in group.topics:
            count = self._topics.partition_count(name)
            if not count:
                continue
            topic_id = self._topics.id_of(name)
            initialized, initializing = states.initialized.get(topic_id), states.initializing.get(topic_id)
            known = nothing if initialized is None else initialized.partitions
            if initializing is not None and initializing.since > overdue:
                known |= initializing.partitions
            # Kafka: only their number is compared.
            if len(known) < count:
                missing[topic_id] = PartitionsInState(name, frozenset(range(count)) - known)
        return missing

    def write(
        self, group: ShareGroup, topics: StateTopics, offsets: StartOffsets, changes: RecordChanges
    ) -> InitializeShareGroupStateRequest | None:
        """Write that partitions are being initialised, with the group epoch as their state epoch."""
        states = (group.state_partitions or NO_STATE).begin(topics)
        changes.write(state_record(group.group_id, states))
        changes.events.append(
            SharePartitionsInitializing(
                group_id=group.group_id,
                generation=group.epoch,
                partitions={state.name: sorted(state.partitions) for state in topics.values()},
            )
        )
        asked = tuple(
            InitializedTopic(
                topic_id=topic_id,
                partitions=tuple(
                    InitializedPartition(partition=index, state_epoch=group.epoch, start_offset=offset)
                    for index, offset in starts.items()
                ),
            )
            for topic_id, starts in offsets.items()
            if starts
        )
        return InitializeShareGroupStateRequest(group_id=group.group_id, topics=asked) if asked else None

    def send(self, request: InitializeShareGroupStateRequest, then: OnInitialized | None = None) -> None:
        """Ask the coordinators of the share-partitions; ``then`` is called with the errors that they answer."""
        self._persister.initialize(request, partial(self._answered, request, then))

    # --- what comes back

    def _answered(
        self,
        request: InitializeShareGroupStateRequest,
        then: OnInitialized | None,
        response: InitializeShareGroupStateResponse,
    ) -> None:
        errors = {
            result.topic_id: {each.partition: each.error_code for each in result.partitions}
            for result in response.results
        }
        on_written = _ignore if then is None else partial(_pass_on, then, errors)
        group = self._groups.get(request.group_id)
        if self.is_closed or not isinstance(group, ShareGroup):
            on_written(ErrorCode.NOT_COORDINATOR if self.is_closed else ErrorCode.NONE)
        else:
            self._write_answer(group, request, errors, on_written)

    def _write_answer(
        self,
        group: ShareGroup,
        request: InitializeShareGroupStateRequest,
        errors: PartitionErrors,
        on_written: OnWritten,
    ) -> None:
        """All partitions of the request are initialised, or none of them counts as such."""
        topics = {
            topic.topic_id: PartitionsInState(
                self._topics.named(topic.topic_id) or UNKNOWN_TOPIC,
                frozenset(each.partition for each in topic.partitions),
            )
            for topic in request.topics
        }
        failed = [each for partitions in errors.values() for each in partitions.values() if each is not ErrorCode.NONE]
        error = failed[0] if failed else ErrorCode.NONE
        before = group.state_partitions or NO_STATE
        after = before.give_up(topics) if failed else before.end(topics)
        if failed and after == before:
            on_written(ErrorCode.NONE)
            return
        changes = self._writes.begin()
        changes.write(state_record(group.group_id, after))
        changes.events.append(
            SharePartitionsInitialized(
                group_id=group.group_id,
                partitions={state.name: sorted(state.partitions) for state in topics.values()},
                error=error.name if failed else None,
            )
        )
        self._writes.commit(group.group_id, changes, on_written)

    # --- topics that go

    def topics_deleted(self, topic_ids: Collection[str]) -> None:
        """Forget the share-partitions of topics that are gone; the share coordinators do likewise."""
        for group in list(self._groups.values()):
            if not isinstance(group, ShareGroup) or group.state_partitions is None:
                continue
            if group.state_partitions.names(topic_ids):
                changes = self._writes.begin()
                changes.write(state_record(group.group_id, group.state_partitions.without(topic_ids)))
                self._writes.commit(group.group_id, changes, _ignore)


def _ignore(_: ErrorCode) -> None:
    """Kafka: a record of share-partitions that cannot be written is missed by the next heartbeat, which asks again."""


def _pass_on(then: OnInitialized, errors: PartitionErrors, error: ErrorCode) -> None:
    """The answer is written down; where it could not be, that is every partition's error."""
    if error is not ErrorCode.NONE:
        errors = {topic_id: dict.fromkeys(partitions, error) for topic_id, partitions in errors.items()}
    then(errors)
