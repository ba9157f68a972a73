"""Known bugs of Java's clients: the consumer, Kafka Streams and Kafka Connect."""

from __future__ import annotations

from typing import Final

from rejoin.journal.kafka_logs.bug_signs import JAVA
from rejoin.pipeline.findings.known_bugs.bug import KnownBug

_JIRA: Final = "https://issues.apache.org/jira/browse/"

JAVA_BUGS: Final[tuple[KnownBug, ...]] = (
    KnownBug(
        "KAFKA-13406",
        JAVA,
        "the cooperative assignor of the leader stops on its own assignment",
        since="2.4.0",
        fixed=("2.8.2", "3.0.1", "3.1.0"),
        sign="cooperative-assignor-violates",
        shows="the leader refused the assignment as partitions are still owned by other members",
        does="two members claimed the same partition, one from an earlier generation, and the check took that for a "
        "fault of CooperativeStickyAssignor; the leader's poll fails, and it joins again",
        link=f"{_JIRA}KAFKA-13406",
    ),
)
