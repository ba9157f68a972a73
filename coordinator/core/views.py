"""Views of a node: pages, scrapers and tests read these, never the core's own objects."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, SerializeAsAny

from rejoin.coordinator.core.inputs import Broker
from rejoin.protocol.message import CAMEL_CASE


class View(BaseModel):
    """Something as it is at one instant; camelCase in JSON."""

    model_config = CAMEL_CASE


class MemberView(View):
    """A member. ``assignment`` is topic to partitions, none when it cannot be read; instants are ms since 1970."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: list[str]
    topics: list[str] | None
    assignment: dict[str, list[int]] | None
    is_leader: bool
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool
    session_expires_at: int | None


class ConsumerMemberView(MemberView):
    """A member of a consumer group. ``assignment`` is the current one, without partitions it has to revoke."""

    member_epoch: int
    previous_member_epoch: int
    member_state: str
    pending_revocation: dict[str, list[int]]
    target: dict[str, list[int]]
    subscribed_regex: str | None
    is_classic: bool


class StreamsMemberView(MemberView):
    """A member of a streams group. ``assignment`` are its active tasks; tasks are partitions by subtopology."""

    member_epoch: int
    previous_member_epoch: int
    member_state: str
    process_id: str
    standby_tasks: dict[str, list[int]]
    warmup_tasks: dict[str, list[int]]
    pending_revocation: dict[str, list[int]]
    pending_standby_revocation: dict[str, list[int]]
    target: dict[str, list[int]]
    target_standby: dict[str, list[int]]


class OffsetView(View):
    """A committed offset; ``log_end_offset`` and ``lag`` are none when the partition does not exist.

    ``lag_ms`` is the age of the next record to read, 0 without lag; none where the log does not say it.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    log_end_offset: int | None
    lag: int | None
    lag_ms: int | None
    transactional_pending: bool


class GroupView(View):
    """A group with all that Kafka's own admin requests hide: generation, leader, pending ids, timers."""

    group_id: str
    partition: int
    state: str
    previous_state: str
    state_since: int
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: list[SerializeAsAny[MemberView]]
    pending_members: list[str]
    pending_sync: list[str]
    subscribed_topics: list[str] | None
    new_member_added: bool
    rebalance_cause: str | None
    rebalances: int
    deadlines: dict[str, int]


class ConsumerGroupView(GroupView):
    """A consumer group. Its generation is its group epoch, its protocol the server-side assignor; it has no leader."""

    group_epoch: int
    assignment_epoch: int


class TaskView(View):
    """A task of a streams group, with the ids of its members. ``active`` runs it, unless ``revoking`` still does.

    ``target`` is the member that is to run it, ``standby`` and ``warmup`` those that keep a copy of its state.
    """

    subtopology_id: str
    partition: int
    active: str | None
    revoking: str | None
    target: str | None
    standby: list[str]
    target_standby: list[str]
    warmup: list[str]


class SubtopologyView(View):
    """A part of an application's topology; ``tasks`` is none while numbers of partitions are unknown."""

    subtopology_id: str
    source_topics: list[str]
    repartition_source_topics: list[str]
    repartition_sink_topics: list[str]
    changelog_topics: list[str]
    tasks: int | None


class InternalTopicView(View):
    """A repartition or changelog topic of an application. ``partitions`` is none while the topic does not exist."""

    topic: str
    kind: str
    subtopology_id: str
    partitions: int | None


class StreamsGroupView(ConsumerGroupView):
    """A streams group. Its protocol is the assignor of tasks.

    ``not_ready`` says why the topology cannot run, none where it can; ``shutdown_requested_by`` is the first member
    that asked for the end of the application.
    """

    topology_epoch: int | None
    not_ready: str | None
    shutdown_requested_by: str | None
    subtopologies: list[SubtopologyView]
    internal_topics: list[InternalTopicView]
    tasks: list[TaskView]


class TimerView(NamedTuple):
    """A timer: its kind (``session``, ``join``, ``sync``, ``append``, ``expiry``), its owner, and when it fires.

    Others belong to no group: the ``fetch`` of a consumer that waits, say.
    """

    timer: str
    partition: int
    group_id: str
    member_id: str
    at: int


class PartitionView(View):
    """A partition that this node leads."""

    topic: str
    partition: int
    epoch: int
    state: str
    groups: int
    offsets: int
    pending_appends: int


class TopicView(View):
    """A topic; its end offsets now, one for each partition, none where only another node knows it.

    Without records per second its logs are real.
    """

    topic: str
    topic_id: str
    partitions: int
    records_per_second: float | None
    end_offsets: list[int | None]


class RecordRunView(View):
    """Neighbouring records of a share-partition in one state: AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING or ARCHIVED.

    ``member_id`` is that of the holder, none where there is no holder. ``lock_ms`` is the rest of the lock in ms, none
    without a lock.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None
    lock_ms: int | None


class ShareStateView(View):
    """A share-partition: the window of records that are in flight in a share group.

    All below ``start_offset`` is done with, though records of a batch stay here until the whole batch is.
    ``end_offset`` is the last offset of the window, or the next one to be fetched while ``records`` is empty; records
    behind it were not fetched yet.
    """

    group_id: str
    topic: str
    partition: int
    state: str
    start_offset: int
    end_offset: int
    state_epoch: int
    leader_epoch: int
    delivery_complete_count: int
    records: list[RecordRunView]


class LogSlice(NamedTuple):
    """Batches of a log from that of an offset on, and where its records begin and end. The last batch may be cut."""

    batches: bytes
    log_start_offset: int
    high_watermark: int


class NodeView(View):
    """A node in short: groups by state and how much of everything there is."""

    node_id: int
    partitions: list[PartitionView]
    groups_by_state: dict[str, int]
    groups_by_type: dict[str, int]
    groups: int
    members: int
    offsets: int
    parked_joins: int
    parked_syncs: int
    brokers: list[Broker]
