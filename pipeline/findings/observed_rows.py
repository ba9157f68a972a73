"""The rows that the rules look at, as the tables have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from rejoin.pipeline.vocabulary import EXACT

POLL_TIMEOUT: Final = "consumer poll timeout has expired"
"""Prefix of a consumer's reason for leaving: it did not poll within max.poll.interval.ms (KIP-800)."""
METADATA_CHANGED: Final = "cached metadata has changed"
"""Prefix of a leader's reason for rejoining: the group's topics changed."""
SUBSCRIPTION_CHANGED: Final = "subscription has changed"
"""Prefix of a consumer's reason for rejoining: the application subscribed to other topics."""
ENFORCED: Final = "rebalance enforced by user"
"""Prefix of a consumer's reason for rejoining: the application called enforceRebalance without a reason of its own."""
EAGER: Final = ("range", "roundrobin", "sticky")
"""Kafka's assignors that speak the eager protocol only (KIP-429)."""
COOPERATIVE: Final = "cooperative-sticky"
ANOTHER_PROCESS: Final = ""
"""Of ``same_process_as``: the process is a new one."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Context that all groups of a run share."""

    run_id: str
    end_ms: int
    """The last instant of the run."""
    brokers: int = 0
    """How many coordinators it has events of."""
    joins_reported: bool = False
    """Whether brokers' logs or requests report each join; brokers log them all since 2.5."""
    requests_read: bool = False
    """Whether a request log was read."""


@dataclass(frozen=True, slots=True)
class ObservedRebalance:
    """Of the table ``rebalances``."""

    rebalance_id: str
    source: str | None
    prepared_at_ms: int
    joined_at_ms: int | None
    ended_at_ms: int | None
    generation_from: int | None
    generation_to: int | None
    outcome: str
    cause: str
    cause_member_id: str | None
    client_reason: str | None
    initial: bool | None
    members_before: list[str] | None
    members_after: list[str] | None
    joined: list[str] | None
    left: list[str] | None
    evicted: list[str] | None
    protocol: str | None
    owned_before: int | None
    moved: int | None
    regained: int | None
    join_ms: int | None
    unavailable_ms: int | None
    members_waiting_ms: int | None
    slowest_member_id: str | None
    slowest_ms: int | None
    chain: int | None
    chain_length: int | None
    confidence: str | None
    group_type: str | None = None
    assigned_at_ms: int | None = None
    leader: str | None = None

    @property
    def until_ms(self) -> int:
        """Its end, or its beginning if the end is not known."""
        return self.prepared_at_ms if self.ended_at_ms is None else self.ended_at_ms


@dataclass(frozen=True, slots=True)
class MemberSession:
    """Of the table ``member_sessions``."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    joined_at_ms: int | None
    ended_at_ms: int | None
    end: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    protocols: list[str] | None
    topics: list[str] | None
    leave_reason: str | None
    group_protocol: str | None
    software: str | None
    same_process_as: str | None
    confidence: str | None

    @property
    def left_by_poll_timeout(self) -> bool:
        return (self.leave_reason or "").startswith(POLL_TIMEOUT)


@dataclass(frozen=True, slots=True)
class GenerationPauses:
    """Of the table ``pauses``: those that one generation ended, summed up."""

    generation_to: int
    kind: str
    pauses: int
    stopped_ms: int
    """Over all consumers that owned nothing."""
    ended_at_ms: int
    guessed: bool | None
    """Whether the row is concluded from the coordinator's events alone."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Of the table ``balance``."""

    at_ms: int
    until_ms: int | None
    generation: int | None
    protocol: str | None
    members: int | None
    partitions: int | None
    least: int | None
    most: int | None
    idle_members: int | None
    most_member_id: str | None
    uneven_topic: str | None = None
    topic_least: int | None = None
    topic_most: int | None = None
    topic_most_member_id: str | None = None


@dataclass(frozen=True, slots=True)
class FirstOwnership:
    """Of the table ``ownership``: when a partition first had an owner."""

    topic: str
    partition: int
    first_ms: int


@dataclass(frozen=True, slots=True)
class ObservedLoss:
    """Of the table ``records``: the records of one partition that were never processed."""

    topic: str
    partition: int
    records: int
    ranges: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class MinuteOfCommits:
    """Of the table ``events``: commits that were stored within one minute."""

    minute: int
    """Minutes since 1970."""
    commits: int
    offsets: int | None
    """Partitions of these commits; none where the source does not say them."""
    committers: int
    """Members, or clients where members are not known."""


@dataclass(frozen=True, slots=True)
class ObservedEvent:
    """Of the table ``events``: one that a rule declares with :func:`rejoin.pipeline.findings.reads.reads`."""

    source: str
    node: str | None
    seq: int | None
    at_ms: int
    event: str
    file: str | None
    line: int | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    other_member_id: str | None
    topic: str | None
    partition_count: int | None
    previous_partition_count: int | None
    timeout_ms: int | None
    confidence: str | None
    group_type: str | None = None
    reason: str | None = None
    culprit: str | None = None
    member_epoch: int | None = None
    current_epoch: int | None = None
    rebalance_timeout_ms: int | None = None
    partitions: list[dict[str, Any]] | None = None
    error: str | None = None
    partition: int | None = None
    offsets_partition: int | None = None
    load_ms: int | None = None
    api: str | None = None
    generation: int | None = None
    offset_count: int | None = None
    more: dict[str, Any] | None = None
    """Further columns that rules declare."""

    def as_evidence(self) -> dict[str, Any]:
        """Where to find the event."""
        return {name: getattr(self, name) for name in ("source", "node", "seq", "at_ms", "event", "file", "line")}


@dataclass(frozen=True, slots=True)
class OwnedPartition:
    """From snapshots of a group: since when a partition's committed offset stands, with the same owner."""

    topic: str
    partition: int
    member_id: str
    owner: str
    since_ms: int
    at_ms: int
    snapshots: int
    """Snapshots since then."""
    committed: int | None
    lag: int | None
    lag_then: int | None
    written: int | None
    """Records that were written since then."""
    moves: int
    longest_move_ms: int
    """The longest time between two moves of the offset."""


MINUTE_MS: Final = 60_000
COMMIT_APIS: Final = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")

ROWS: Final[dict[str, type[Any]]] = {
    "rebalance": ObservedRebalance,
    "session": MemberSession,
    "pauses": GenerationPauses,
    "balance": Balance,
    "owned": FirstOwnership,
    "loss": ObservedLoss,
    "commits": MinuteOfCommits,
    "event": ObservedEvent,
}
"""Kind of row of a table to its class; the names of the fields are the columns."""

ALL_ROWS: Final = {**ROWS, "progress": OwnedPartition}
"""All kinds: rows of tables, and snapshots of a cluster's offsets, which are in no table."""


def short(member_id: str | None) -> str:
    """A member id without its UUID."""
    if not member_id:
        return "a member"
    return member_id[:-37] if len(member_id) > 37 and member_id[-37] == "-" else member_id


def name_of_client(client_id: str | None) -> str | None:
    """A client.id for people: of a consumer of Kafka Streams the thread, with the beginning of the process's UUID."""
    found = _STREAM_THREAD.fullmatch(client_id or "")
    if found is None:
        return client_id
    return f"{found['thread']} of {found['process'] or found['client']}"


_STREAM_THREAD: Final = re.compile(
    r"(?P<client>.+?)(?:-(?P<process>[0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?-(?P<thread>StreamThread-\d+)-consumer"
)


def all_exact(rows: Iterable[ObservedRebalance | MemberSession | ObservedEvent]) -> bool:
    """Whether the sources reported all of it."""
    return all(row.confidence in (None, EXACT) for row in rows)
