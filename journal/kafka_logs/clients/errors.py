"""Names of the coordinator's errors in logs of client libraries."""

from __future__ import annotations

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
