"""Reactions of a consumer to each error of each request: one table per request, and the code runs on the tables.

Source: the response handlers of Kafka's AbstractCoordinator and ConsumerCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from rejoin.protocol.errors import ErrorCode as E


class Reaction(Enum):
    """One way to react. Which of them a request knows is in its table."""

    BACK_OFF = auto()
    """The membership is intact: wait ``retry.backoff.ms`` and try again."""

    FORGET_COORDINATOR = auto()
    """Look the coordinator up again, then go on as with BACK_OFF. The member id is kept."""

    LOOP = auto()
    """Go round the join loop at once."""

    TAKE_MEMBER_ID = auto()
    """The answer carries the member id to join with; go round at once."""

    TAKE_EPOCH = auto()
    """The member epoch has moved on: try again with the one that the next heartbeat brings."""

    FORGET_MEMBERSHIP = auto()
    """Not a member any more: forget generation and member id if they are still those of the request."""

    FORGET_GENERATION = auto()
    """As FORGET_MEMBERSHIP, but the member id is kept: it may still be good."""

    REJOIN = auto()
    """The group rebalances: join again."""

    FENCED = auto()
    """Another process has taken our instance id."""

    RAISE = auto()
    """Hand the error to the user unchanged."""

    RAISE_TOPICS = auto()
    """Hand the error to the user, with all the topics that have it."""

    RAISE_UNEXPECTED = auto()
    """Hand it to the user as an error that this request should never get."""

    REFRESH_METADATA = auto()
    """The partition may have moved: ask for the metadata again, and repeat the request."""

    RESET_POSITION = auto()
    """The position is outside of the log: reset it, or raise where there is no policy."""

    ACCEPT = auto()
    """Not an error."""

    IGNORE = auto()
    """It counts as a failed attempt and nothing else; the next one comes after a backoff."""


ON_FIND_COORDINATOR: Final[Mapping[E, Reaction]] = {
    # Kafka: FindCoordinatorResponseHandler. What is retriable is tried again, the rest is raised from poll.
    E.COORDINATOR_NOT_AVAILABLE: Reaction.BACK_OFF,
    E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    E.NOT_COORDINATOR: Reaction.BACK_OFF,
    E.NETWORK_EXCEPTION: Reaction.BACK_OFF,
    E.REQUEST_TIMED_OUT: Reaction.BACK_OFF,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
    E.INVALID_GROUP_ID: Reaction.RAISE,
    E.INVALID_REQUEST: Reaction.RAISE,
}

ON_JOIN_GROUP: Final[Mapping[E, Reaction]] = {
    E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.NETWORK_EXCEPTION: Reaction.FORGET_COORDINATOR,
    E.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBERSHIP,
    E.REBALANCE_IN_PROGRESS: Reaction.LOOP,
    E.MEMBER_ID_REQUIRED: Reaction.TAKE_MEMBER_ID,
    E.FENCED_INSTANCE_ID: Reaction.RAISE,
    E.GROUP_MAX_SIZE_REACHED: Reaction.RAISE,
    E.INCONSISTENT_GROUP_PROTOCOL: Reaction.RAISE,
    E.INVALID_SESSION_TIMEOUT: Reaction.RAISE,
    E.INVALID_GROUP_ID: Reaction.RAISE,
    E.UNSUPPORTED_VERSION: Reaction.RAISE,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
}

ON_SYNC_GROUP: Final[Mapping[E, Reaction]] = {
    # Kafka: COORDINATOR_LOAD_IN_PROGRESS is not expected here, so it is fatal.
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.NETWORK_EXCEPTION: Reaction.FORGET_COORDINATOR,
    E.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBERSHIP,
    E.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
    E.REBALANCE_IN_PROGRESS: Reaction.LOOP,
    E.FENCED_INSTANCE_ID: Reaction.RAISE,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
}

ON_HEARTBEAT: Final[Mapping[E, Reaction]] = {
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.NETWORK_EXCEPTION: Reaction.FORGET_COORDINATOR,
    E.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBERSHIP,
    E.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
    E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    E.FENCED_INSTANCE_ID: Reaction.FENCED,
}

ON_CONSUMER_GROUP_HEARTBEAT: Final[Mapping[E, Reaction]] = {
    # Kafka: AbstractHeartbeatRequestManager.onErrorResponse. What is not here ends the membership for good.
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    E.FENCED_MEMBER_EPOCH: Reaction.FORGET_MEMBERSHIP,
    E.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBERSHIP,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
    E.INVALID_REQUEST: Reaction.RAISE,
    E.GROUP_MAX_SIZE_REACHED: Reaction.RAISE,
    E.UNRELEASED_INSTANCE_ID: Reaction.RAISE,
    E.FENCED_INSTANCE_ID: Reaction.RAISE,
    E.UNSUPPORTED_ASSIGNOR: Reaction.RAISE,
    E.UNSUPPORTED_VERSION: Reaction.RAISE,
    E.INVALID_REGULAR_EXPRESSION: Reaction.RAISE,
    E.GROUP_ID_NOT_FOUND: Reaction.RAISE,
}

ON_OFFSET_COMMIT: Final[Mapping[E, Reaction]] = {
    E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.BACK_OFF,
    E.STALE_MEMBER_EPOCH: Reaction.TAKE_EPOCH,
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.REQUEST_TIMED_OUT: Reaction.FORGET_COORDINATOR,
    E.NETWORK_EXCEPTION: Reaction.FORGET_COORDINATOR,
    E.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBERSHIP,
    E.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
    E.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    E.FENCED_INSTANCE_ID: Reaction.FENCED,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
    E.OFFSET_METADATA_TOO_LARGE: Reaction.RAISE,
    E.INVALID_COMMIT_OFFSET_SIZE: Reaction.RAISE,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
}

ON_OFFSET_FETCH: Final[Mapping[E, Reaction]] = {
    E.COORDINATOR_LOAD_IN_PROGRESS: Reaction.BACK_OFF,
    E.UNSTABLE_OFFSET_COMMIT: Reaction.BACK_OFF,
    E.STALE_MEMBER_EPOCH: Reaction.TAKE_EPOCH,
    E.COORDINATOR_NOT_AVAILABLE: Reaction.FORGET_COORDINATOR,
    E.NOT_COORDINATOR: Reaction.FORGET_COORDINATOR,
    E.NETWORK_EXCEPTION: Reaction.FORGET_COORDINATOR,
    E.REQUEST_TIMED_OUT: Reaction.BACK_OFF,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
    E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RAISE_UNEXPECTED,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
}

ON_FETCH: Final[Mapping[E, Reaction]] = {
    # Kafka: FetchCollector.handleInitializeErrors.
    E.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH_METADATA,
    E.REPLICA_NOT_AVAILABLE: Reaction.REFRESH_METADATA,
    E.KAFKA_STORAGE_ERROR: Reaction.REFRESH_METADATA,
    E.FENCED_LEADER_EPOCH: Reaction.REFRESH_METADATA,
    E.OFFSET_NOT_AVAILABLE: Reaction.REFRESH_METADATA,
    E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH_METADATA,
    E.UNKNOWN_TOPIC_ID: Reaction.REFRESH_METADATA,
    E.INCONSISTENT_TOPIC_ID: Reaction.REFRESH_METADATA,
    E.OFFSET_OUT_OF_RANGE: Reaction.RESET_POSITION,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
    E.UNKNOWN_LEADER_EPOCH: Reaction.IGNORE,
    E.UNKNOWN_SERVER_ERROR: Reaction.IGNORE,
    E.CORRUPT_MESSAGE: Reaction.RAISE,
}

ON_SHARE_FETCH: Final[Mapping[E, Reaction]] = {
    # Kafka: ShareFetchCollector.handleInitializeErrors, ShareConsumeRequestManager.
    E.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH_METADATA,
    E.REPLICA_NOT_AVAILABLE: Reaction.REFRESH_METADATA,
    E.KAFKA_STORAGE_ERROR: Reaction.REFRESH_METADATA,
    E.FENCED_LEADER_EPOCH: Reaction.REFRESH_METADATA,
    E.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH_METADATA,
    E.UNKNOWN_TOPIC_ID: Reaction.REFRESH_METADATA,
    E.INCONSISTENT_TOPIC_ID: Reaction.REFRESH_METADATA,
    E.COORDINATOR_NOT_AVAILABLE: Reaction.IGNORE,
    E.OFFSET_NOT_AVAILABLE: Reaction.IGNORE,
    E.UNKNOWN_LEADER_EPOCH: Reaction.IGNORE,
    E.UNKNOWN_SERVER_ERROR: Reaction.IGNORE,
    E.GROUP_ID_NOT_FOUND: Reaction.IGNORE,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
    E.GROUP_AUTHORIZATION_FAILED: Reaction.RAISE,
    E.UNSUPPORTED_VERSION: Reaction.RAISE,
    E.CORRUPT_MESSAGE: Reaction.RAISE,
}
"""Errors of a partition, and of the whole response unless they concern the session."""

ON_OFFSET_FOR_LEADER_EPOCH: Final[Mapping[E, Reaction]] = {
    # Kafka: OffsetsForLeaderEpochClient. Whatever else goes wrong is tried again.
    E.NONE: Reaction.ACCEPT,
    E.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_TOPICS,
}

TABLES: Final[Mapping[str, Mapping[E, Reaction]]] = {
    "FindCoordinator": ON_FIND_COORDINATOR,
    "JoinGroup": ON_JOIN_GROUP,
    "SyncGroup": ON_SYNC_GROUP,
    "Heartbeat": ON_HEARTBEAT,
    "ConsumerGroupHeartbeat": ON_CONSUMER_GROUP_HEARTBEAT,
    "OffsetCommit": ON_OFFSET_COMMIT,
    "OffsetFetch": ON_OFFSET_FETCH,
    "Fetch": ON_FETCH,
    "ShareFetch": ON_SHARE_FETCH,
    "OffsetForLeaderEpoch": ON_OFFSET_FOR_LEADER_EPOCH,
}

OTHERWISE: Final[Mapping[str, Reaction]] = {
    # What is not in a request's table.
    "FindCoordinator": Reaction.RAISE_UNEXPECTED,
    "JoinGroup": Reaction.RAISE_UNEXPECTED,
    "SyncGroup": Reaction.RAISE_UNEXPECTED,
    "Heartbeat": Reaction.IGNORE,
    "ConsumerGroupHeartbeat": Reaction.RAISE_UNEXPECTED,
    "OffsetCommit": Reaction.RAISE_UNEXPECTED,
    "OffsetFetch": Reaction.RAISE_UNEXPECTED,
    "Fetch": Reaction.RAISE_UNEXPECTED,
    "ShareFetch": Reaction.RAISE_UNEXPECTED,
    "OffsetForLeaderEpoch": Reaction.REFRESH_METADATA,
}


def reaction(api: str, error: E) -> Reaction:
    """The reaction to an error in this API's response; a lost connection or a timeout is NETWORK_EXCEPTION."""
    return TABLES[api].get(error, OTHERWISE[api])
