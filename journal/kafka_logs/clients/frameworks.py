"""Kafka Streams and Spring for Apache Kafka: what they log of the group beside the lines of Java's consumer.

Texts of Streams are those of StreamThread, TaskManager, StreamsPartitionAssignor and KafkaStreams from 2.0 to 4.0,
behind the name of the thread or client; those of Spring are of its KafkaMessageListenerContainer from 2.1 to 4.0.
"""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.template import Template


def _line(kind: str, text: str, variant: str = "") -> Template:
    return Template(kind, text, variant=variant)


_MISSED: Final = "This implies that {reason?}"
_ASSIGNED: Final = (
    "~\\s+~New active tasks: [{active?}]~\\s+~New standby tasks: [{standby?}]"
    "~\\s+~Existing active tasks: [{active_before?}]~\\s+~Existing standby tasks: [{standby_before?}]"
)
_CURRENT: Final = (
    "~\\s+~current active tasks: [{active?}]~\\s+~current standby tasks: [{standby?}]"
    "~\\s+~previous active tasks: [{active_before?}]~\\s*~"
)

STREAMS_LINES: Final[tuple[Template, ...]] = (
    _line("streams_state", "State transition from {state_before} to {state}"),
    _line("rejoin_requested", f"Detected that the thread is being fenced. {_MISSED}. {{rest}}", "fenced"),
    _line(
        "rejoin_requested", f"Detected task {{task?}} that got migrated to another thread. {_MISSED}. {{rest}}", "old"
    ),
    _line("rejoin_requested", "Triggering the {reason?}~(?: scheduled for .*| immediately.*)~", "followup"),
    _line("rejoin_requested", "~(?=Version probing detected)~{reason?}~\\. (?:Triggering|Rejoining).*~", "probing"),
    _line("rejoin_requested", "~(?=Active task\\(s\\) got corrupted)~{reason?}. Triggering a rebalance.", "corrupted"),
    _line(
        "rejoin_requested",
        "Requested to schedule ~(?=(?:next probing|probing|immediate) rebalance)~{reason?}~(?: (?:at|for) .*)?\\.~",
        "scheduled",
    ),
    _line("join_failed", "Received error code {problem}"),
    _line("join_failed", "~(?=.*(?:INCOMPLETE_SOURCE_TOPIC_METADATA|MissingSourceTopic))~{problem}", "topics"),
    _line("rejoin_requested", "~(?:.*[ .])?(?=TaskMigratedException)~{reason?}: {rest}", "migrated"),
    _line("tasks_assigned", f"Handle new assignment with:{_ASSIGNED}"),
    _line("tasks_assigned", f"partition assignment took {{took_ms}} ms.{_CURRENT}", "took"),
    _line("tasks_ready", "Restoration took {waited_ms} ms for all ~(?:active )?~tasks [{tasks?}]"),
    _line("tasks_corrupted", "Detected the states of tasks ~[\\[{]~{tasks?}~[\\]}]~ are corrupted. {rest}"),
    _line(
        "tasks_corrupted",
        "~(?:.*[ .])?~TaskCorruptedException: Tasks ~[\\[{]~{tasks?}~[\\]}]~ are corrupted{rest?}",
        "exception",
    ),
    _line("task_restored", "task [{task?}] Restored and ready to run"),
    _line("remark", "Kafka Streams version: {version}", "version"),
    _line("remark", "~(?:stream-|standby-)?task \\[~{task?}] {rest}", "task"),
)
"""In the order in which a reader tries them. Streams has a consumer for each thread; states of a client are its own."""

SPRING_LINES: Final[tuple[Template, ...]] = (
    _line("container_assigned", "{group_id?}: partitions assigned: {partitions}"),
    _line("container_revoked", "{group_id?}: partitions revoked: {partitions}"),
    _line("container_lost", "{group_id?}: partitions lost: {partitions}"),
    _line("consumer_closed", "{group_id?}: Consumer stopped", "group"),
    _line("consumer_closed", "Consumer stopped"),
    _line("topic_unavailable", "Topic(s) [{topics}] {problem}"),
    _line("fenced", "~.*~'group.instance.id' ~(?:has been )?fenced~{rest}"),
    _line("fenced", "Stopping container due to fencing{rest}", "stopping"),
    _line(
        "join_failed",
        "~Auth(?:entication/Auth)?orization Exception ?(?:and|, retrying).*?(?=[\\w.]*Auth\\w+Exception: )~{problem}",
        "authorization",
    ),
    _line("join_failed", "~(?=Auth(?:entication/Auth)?orization Exception)~{problem}", "authorization-alone"),
    _line("commit_failed", "~(?=.*\\w*CommitFailedException)~{problem}", "exception"),
    _line("commit_failed", "Commit retries exhausted{problem}", "retries"),
    _line(
        "commit_failed",
        "These offsets could not be committed; partition(s) lost during rebalance: {problem}",
        "rebalance",
    ),
)
"""In the order in which a reader tries them. The lines below an error, its exception, are part of the text."""
