"""Where the emulator departs from the recorded broker, and why. Everything else must be equal.

A difference that no entry explains fails the replay; an entry that explains nothing fails, too. What only some scripts
bring about is explained in these alone, so that the same difference anywhere else is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rejoin.conform.comparison.compare import CLOSED, NO_ANSWER, REFUSED, Difference
from rejoin.protocol.errors import ErrorCode


@dataclass(frozen=True)
class KnownDifference:
    """One way of being different: which differences it is about, the reason, and in which scripts; none: in any."""

    name: str
    why: str
    concerns: Callable[[Difference], bool]
    scripts: tuple[str, ...] = ()

    def explains(self, one: Difference) -> bool:
        """Whether this is why the two answers differ."""
        return (not self.scripts or one.script in self.scripts) and self.concerns(one)


_GROUP = 32


def _error(answer: Any) -> Any:
    return answer.get("errorCode") if isinstance(answer, dict) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _superseded(one: Difference) -> bool:
    waits = one.api in {"JoinGroup", "SyncGroup"} and one.kafka == NO_ANSWER
    return waits and bool(_error(one.other) == ErrorCode.REBALANCE_IN_PROGRESS)


def _listed_twice(one: Difference) -> bool:
    if one.api != "JoinGroup" or one.kafka != NO_ANSWER:
        return False
    names = [protocol["name"] for protocol in one.request["protocols"]]
    return len(set(names)) < len(names)


def _removed_while_it_waited(one: Difference) -> bool:
    return one.api == "SyncGroup" and one.kafka == NO_ANSWER and _error(one.other) == ErrorCode.UNKNOWN_MEMBER_ID


def _words(one: Difference) -> bool:
    if not one.path.endswith("errorMessage") or not _is_text(one.other):
        return False
    # CreatePartitions of a topic that is not there is the one error that Kafka has no sentence for.
    return _is_text(one.kafka) or (one.api == "CreatePartitions" and one.kafka is None)


def _refused(one: Difference) -> bool:
    unavailable = one.kafka == CLOSED or _error(one.kafka) == ErrorCode.UNSUPPORTED_VERSION
    return bool(unavailable and one.other == REFUSED)


def _versions(one: Difference) -> bool:
    features = {"supportedFeatures", "finalizedFeatures", "finalizedFeaturesEpoch"}
    return one.api == "ApiVersions" and one.path in {"apiKeys", *features}


def _unsettable(one: Difference) -> bool:
    """Settings of share and streams groups, which there are none of here."""
    if one.api not in {"DescribeConfigs", "IncrementalAlterConfigs"}:
        return False
    types = {resource["resourceType"] for resource in one.request["resources"]}
    return types <= {_GROUP} and one.path.startswith(("results.", "responses."))


def _unknown_operation(one: Difference) -> bool:
    return one.path == "responses.errorMessage" and one.kafka is None and _is_text(one.other)


def _illegal_name(one: Difference) -> bool:
    if one.path == "topics.topicAuthorizedOperations":
        return True
    return (one.path, one.kafka, one.other) == (
        "topics.errorCode",
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )


def _behind_a_write(one: Difference) -> bool:
    if one.api != "Heartbeat":
        return False
    failed = (one.path, one.kafka, one.other) == ("errorCode", ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE)
    return failed or (one.path == "at" and one.kafka > one.other)


def _coordinated_here(one: Difference) -> bool:
    return one.api == "InitProducerId" and one.other != one.kafka


KNOWN_DIFFERENCES: Final = (
    KnownDifference(
        "coordinated-here",
        "In a replay one broker leads everything; in Kafka another one coordinated this transactional id.",
        _coordinated_here,
        ("three-nodes/moving/an-open-transaction-moves-along",),
    ),
    KnownDifference(
        "superseded",
        "A parked JoinGroup or SyncGroup that the member's next one replaces is answered REBALANCE_IN_PROGRESS; Kafka "
        "never answers it. A request must not leak.",
        _superseded,
        (
            "plain/joining/a-second-join-replaces-the-one-that-waits",
            "plain/syncing/a-second-sync-replaces-the-one-that-waits",
        ),
    ),
    KnownDifference(
        "removed-while-it-waited",
        "A parked SyncGroup of a member that is removed is answered UNKNOWN_MEMBER_ID; Kafka never answers it.",
        _removed_while_it_waited,
        ("plain/leaving/while-waiting-to-sync",),
    ),
    KnownDifference(
        "listed-twice",
        "A protocol that a member lists twice counts once; Kafka counts it twice, finds that not all members have it, "
        "and the join phase fails without an answer.",
        _listed_twice,
        ("plain/bad-requests/a-protocol-listed-twice",),
    ),
    KnownDifference("words", "The text of an error is ours; Kafka's sentences are its own.", _words),
    KnownDifference(
        "refused",
        "What is no request of its version is refused with what is wrong; Kafka closes the connection, "
        "but for ApiVersions, which it answers in the oldest version.",
        _refused,
        (
            "plain/bad-requests/a-version-of-api-versions-that-is-not-there-yet",
            "plain/bad-requests/a-version-that-is-not-there-yet",
            "plain/bad-requests/versions-that-were-given-up",
        ),
    ),
    KnownDifference(
        "versions",
        "ApiVersions lists the versions that are offered here, and of the features transaction.version.",
        _versions,
    ),
    KnownDifference(
        "unsettable",
        "Groups have the settings of consumer groups only; in Kafka also those of share and streams groups.",
        _unsettable,
        ("admin/configs/settings-of-groups",),
    ),
    KnownDifference(
        "unknown-operation",
        "An IncrementalAlterConfigs operation that is unknown is answered with words; Kafka fails itself.",
        _unknown_operation,
        ("admin/configs/an-operation-that-is-unknown",),
    ),
    KnownDifference(
        "illegal-name",
        "DescribeTopicPartitions of a name that no topic can have is answered INVALID_TOPIC_EXCEPTION; Kafka fails "
        "itself.",
        _illegal_name,
        ("admin/describing/names-that-topics-cannot-have",),
    ),
    KnownDifference(
        "cluster-id",
        "The id of the cluster is fixed.",
        lambda one: one.api in {"Metadata", "DescribeCluster"} and one.path == "clusterId",
    ),
    KnownDifference(
        "behind-a-write",
        "A Heartbeat is answered at once; Kafka lets it wait for what is being written, and fail with it.",
        _behind_a_write,
        ("three-in-sync/writing/nothing-can-be-written",),
    ),
)


def known_difference(one: Difference) -> KnownDifference | None:
    """The entry that explains a difference, if one does."""
    return next((known for known in KNOWN_DIFFERENCES if known.explains(one)), None)
