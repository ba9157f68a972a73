"""Kafka's errors in the words of client libraries: those that are written, and all by which a reader knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple


class ErrorWords(NamedTuple):
    """One error in the words of each library. ``sentence`` is Kafka's message, which Java, KafkaJS and franz-go log."""

    sentence: str
    python: str
    rdkafka: str


WORDS: Final = {
    "UNKNOWN_MEMBER_ID": ErrorWords(
        "The coordinator is not aware of this member.", "[Error 25] UnknownMemberIdError", "Broker: Unknown member"
    ),
    "ILLEGAL_GENERATION": ErrorWords(
        "Specified group generation id is not valid.",
        "[Error 22] IllegalGenerationError",
        "Broker: Specified group generation id is not valid",
    ),
    "REBALANCE_IN_PROGRESS": ErrorWords(
        "The group is rebalancing, so a rejoin is needed.",
        "[Error 27] RebalanceInProgressError",
        "Broker: Group rebalance in progress",
    ),
    "FENCED_INSTANCE_ID": ErrorWords(
        "The broker rejected this static consumer since another consumer with the same group.instance.id has "
        "registered with a different member.id.",
        "[Error 82] FencedInstanceIdError",
        "Broker: Static consumer fenced by other consumer with same group.instance.id",
    ),
}
"""Errors of members, by Kafka's names."""


def _camel(name: str) -> str:
    """The exception that Java, Python and Ruby name after an error, without its ending."""
    return "".join(part.capitalize() for part in name.split("_"))


def _known_by(name: str, *sentences: str) -> re.Pattern[str]:
    return re.compile("|".join((name, name.lower(), _camel(name), *sentences)))


_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    name: _known_by(name, *sentences)
    for name, sentences in {
        "MEMBER_ID_REQUIRED": (r"needs (?:to have )?a valid member id",),
        "INCONSISTENT_GROUP_PROTOCOL": (
            r"[Ii]nconsistent group protocol",
            r"incompatible with (?:those of existing|the other) members",
        ),
        "GROUP_MAX_SIZE_REACHED": (r"reached (?:its |the )?max(?:imum)? size", r"configured maximum number of members"),
        "INVALID_SESSION_TIMEOUT": (
            r"[Ii]nvalid session timeout",
            r"session timeout is (?:not within the|outside the allowed) range",
        ),
        "FENCED_MEMBER_EPOCH": (r"because epoch \S+ is fenced", r"member epoch is fenced"),
        "STALE_MEMBER_EPOCH": (r"stale member epoch",),
        "UNKNOWN_MEMBER_ID": (
            r"not aware of this member",
            r"was not recognized",
            r"member id .* is not valid",
            r"because member \S+ is unknown",
            r": Unknown member",
            r"member is not known in the current generation",
            r"not part of an active group",
        ),
        "ILLEGAL_GENERATION": (
            r"generation id is not (?:valid|the current)",
            r"group has already rebalanced",
        ),
        "REBALANCE_IN_PROGRESS": (
            r"[Rr]ebalance in progress",
            r"is rebalancing",
            r"rebalance for the group is in progress",
            r"undergoing a rebalance",
        ),
        "GROUP_AUTHORIZATION_FAILED": (
            r"[Gg]roup authorization (?:failed|error)",
            r"[Nn]ot authorized to access (?:this )?group",
            r"GroupAuthorization",
        ),
        "TOPIC_AUTHORIZATION_FAILED": (
            r"[Tt]opic authorization failed",
            r"[Nn]ot authorized to (?:access (?:this )?topic|read from|commit to topic)",
            r"is not authorized for this client",
            r"TopicAuthorization",
        ),
        "FENCED_INSTANCE_ID": (r"(?<!Producer)[Ff]enced",),
        "COORDINATOR_LOAD_IN_PROGRESS": (
            r"GROUP_LOAD_IN_PROGRESS",
            r"CoordinatorLoad",
            r"[Cc]oordinator load in progress",
            r"coordinator is (?:still )?loading",
        ),
        "NOT_COORDINATOR": (
            r"NotCoordinator",
            r"(?:Broker: Not|not the correct) coordinator",
            r"not coordinated by this broker",
        ),
        "COORDINATOR_NOT_AVAILABLE": (
            r"coordinator is not available",
            r"[Cc]oordinator not available",
            r"[Ff]ailed to find group coordinator",
        ),
        "UNKNOWN_TOPIC_OR_PARTITION": (
            r"unknown_topic_or_part",
            r"UNKNOWN_TOPIC_ID",
            r"[Uu]nknown topic or partition",
            r"does not host this topic-partition",
            r"topic or partition that does not exist",
            r"not found in cluster metadata",
            r"[Nn]o partition metadata for topic",
            r"no (?:matching topics|topics in metadata matched)",
            r"are not present and missingTopicsFatal|is/are not present",
        ),
        "INVALID_TOPIC_EXCEPTION": (
            r"InvalidTopic",
            r"invalid topic",
            r"Invalid topic",
            r"is not a valid topic name",
        ),
        "LEADER_NOT_AVAILABLE": (
            r"[Ll]eader not available",
            r"middle of a leadership election",
            r"no leader for this",
            r"is not available during auto-create",
        ),
        "INCOMPLETE_SOURCE_TOPIC_METADATA": (r"MissingSourceTopic", r"source topics"),
    }.items()
}
OF_TOPICS: Final = (
    *("UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION", "LEADER_NOT_AVAILABLE"),
)
"""Errors that are about a topic, and not about the group."""

JAVA_EXCEPTIONS: Final = (
    *("missingTopicsFatal is true", "AuthorizationException: Not authorized to access "),
    *("InconsistentGroupProtocolException: ", "GroupMaxSizeReachedException: ", "InvalidSessionTimeoutException: "),
    *("FencedInstanceIdException: ", "CommitFailedException", "ommit cannot be completed since the "),
)
"""Words of exceptions that Java's consumer throws, which applications log in words of their own and with a trace."""


def error_in(text: str) -> str | None:
    """Kafka's name of the error that a text of some client is about; None where it is about none of a group's."""
    return next((name for name, words in _PATTERNS.items() if words.search(text) is not None), None)
