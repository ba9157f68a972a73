"""Each client library's names for the settings that advice mentions; Java's are those of Kafka's documentation.

Sources: librdkafka's CONFIGURATION.md; the keyword arguments of kafka-python's KafkaConsumer and of aiokafka's
AIOKafkaConsumer; KafkaJS's consumer options; franz-go's package kgo; sarama's Config.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.vocabulary import CLIENT_LOG

LIBRARIES: Final = ("librdkafka", "kafka-python", "aiokafka", "KafkaJS", "franz-go", "sarama")
_SAME: Final = ""
NAMES: Final[Mapping[str, tuple[str | None, ...]]] = {
    "session.timeout.ms": (
        *(_SAME, "session_timeout_ms", "session_timeout_ms", "sessionTimeout"),
        *("kgo.SessionTimeout", "Consumer.Group.Session.Timeout"),
    ),
    "heartbeat.interval.ms": (
        *(_SAME, "heartbeat_interval_ms", "heartbeat_interval_ms", "heartbeatInterval"),
        *("kgo.HeartbeatInterval", "Consumer.Group.Heartbeat.Interval"),
    ),
    "max.poll.interval.ms": (
        *(_SAME, "max_poll_interval_ms", "max_poll_interval_ms", "rebalanceTimeout"),
        *("kgo.RebalanceTimeout", "Consumer.Group.Rebalance.Timeout"),
    ),
    "max.poll.records": (None, "max_poll_records", "max_poll_records", None, "PollRecords", None),
    "group.instance.id": (
        *(_SAME, "group_instance_id", "group_instance_id", None),
        *("kgo.InstanceID", "Consumer.Group.InstanceId"),
    ),
    "partition.assignment.strategy": (
        *(_SAME, "partition_assignment_strategy", "partition_assignment_strategy", "partitionAssigners"),
        *("kgo.Balancers", "Consumer.Group.Rebalance.GroupStrategies"),
    ),
    "auto.commit.interval.ms": (
        *(_SAME, "auto_commit_interval_ms", "auto_commit_interval_ms", "autoCommitInterval"),
        *("kgo.AutoCommitInterval", "Consumer.Offsets.AutoCommit.Interval"),
    ),
    "auto.offset.reset": (
        *(_SAME, "auto_offset_reset", "auto_offset_reset", "fromBeginning"),
        *("kgo.ConsumeResetOffset", "Consumer.Offsets.Initial"),
    ),
    "group.protocol": (_SAME, None, None, None, None, None),
}
"""Setting of Java to its name in each of :data:`LIBRARIES`; None where a library has no such setting."""

_INSTEAD: Final = {
    "max.poll.records": "batch",
    "group.instance.id": "name for each member",
    "group.protocol": "client with the consumer protocol",
}
"""Words for a setting that a library does not have."""
# A name with a prefix, such as group.min.session.timeout.ms, is a broker's.
_SETTING: Final = re.compile(
    rf"(?<![\w.])(?:{'|'.join(re.escape(name) for name in sorted(NAMES, key=len, reverse=True))})(?![\w.]*\w)"
)


def name_for(setting: str, library: str) -> str | None:
    """A library's name for a setting, unchanged where none is known; None where the library has no such setting."""
    if setting not in NAMES or library not in LIBRARIES:
        return setting
    name = NAMES[setting][LIBRARIES.index(library)]
    return setting if name == _SAME else name


def in_words_of(text: str, library: str) -> str:
    """A text with each setting as the library calls it."""

    def named(found: re.Match[str]) -> str:
        name = name_for(found[0], library)
        if name is not None:
            return name
        return f"{_INSTEAD.get(found[0], 'setting')} ({library} has no {found[0]})"

    return _SETTING.sub(named, text)


def library_of(history: GroupHistory) -> str | None:
    """The library whose logs all members of a group have; None for Java, for several, and where it is not known."""
    said = {
        str((event.more or {}).get("software"))
        for event in history.events
        if event.source == CLIENT_LOG and (event.more or {}).get("software")
    }
    return said.pop() if len(said) == 1 else None


def for_clients_of(history: GroupHistory, findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose settings are those of the group's clients, where all of them use one library that is known."""
    library = library_of(history)
    if library is None:
        return list(findings)
    return [
        replace(
            each,
            text=in_words_of(each.text, library),
            advice=in_words_of(each.advice, library) if each.advice else each.advice,
            setting=name_for(each.setting, library) if each.setting else each.setting,
        )
        for each in findings
    ]
