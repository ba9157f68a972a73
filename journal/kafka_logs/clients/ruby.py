"""ruby-kafka, which racecar used up to 1.x, and what racecar logs since it runs on librdkafka.

Texts are those of ruby-kafka 0.5 to 1.5 and of racecar 2. From 0.7.1 on, lines of ruby-kafka begin with the group and
the partitions that its consumer has.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, text, variant=variant)


RUBY_LINES: Final[tuple[Template, ...]] = (
    _line("join_sent", "Joining group `{group_id}`"),
    _line("generation_joined", "Joined group `{group_id?}` with member id `{member}`"),
    _line("remark", "Chosen as leader of group `{group_id}`", "leader"),
    _line("topic_assigned", "Partitions assigned for `{topic}`: {numbers}"),
    _line("given", "~(?:There are no|No) ~partitions to fetch from, sleeping for {rest}"),
    _line("group_left", "Leaving group `{group_id}`"),
    _line("rejoin_requested", "Group rebalance in progress, re-joining..."),
    _line("rejoin_requested", "Error sending heartbeat: ~Kafka::RebalanceInProgress.*~", "heartbeat"),
    _line("heartbeat_failed", "Error sending heartbeat: {problem}"),
    _line("join_failed", "Failed to join group; resetting member id and retrying in 1s..."),
    _line("coordinator_lost", "Failed to find coordinator for group `{group_id}`; retrying..."),
    _line("coordinator_lost", "Connection error while trying to join group `{group_id}`; retrying...", "join"),
    _line("coordinator_lost", "Group coordinator not available for group `{group_id}`", "available"),
    _line("remark", "Coordinator broker still loading, retrying in 1s...", "loading"),
    _line("commit_failed", "Error committing offsets: {problem}"),
    # --- racecar on librdkafka
    _line(
        "poll_timeout_exceeded",
        "(try {count?}): Error for topic subscription {topics?}: ~(?=.*max_poll_exceeded)~{problem}",
        "racecar",
    ),
    _line("join_failed", "(try {count?}): Error for topic subscription {topics?}: {problem}", "racecar"),
    _line("remark", "Resetting consumer with id: {rest}", "racecar"),
)
"""In the order in which a reader tries them."""
