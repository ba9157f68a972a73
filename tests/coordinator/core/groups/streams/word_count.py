"""An application that counts words: a repartition topic between two subtopologies, a store with its changelog."""

from __future__ import annotations

from typing import Any

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsTopology
from rejoin.protocol.streams.topology import StreamsKeyValue, StreamsTopicInfo, Subtopology

LINES, COUNTS, WORDS = "lines", "app-counts-changelog", "app-words-repartition"


def info(name: str, replicas: int = 0, **configs: str) -> StreamsTopicInfo:
    settings = tuple(StreamsKeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items())
    return StreamsTopicInfo(name=name, partitions=0, replication_factor=replicas, topic_configs=settings)


def subtopology(number: int, **given: Any) -> Subtopology:
    empty: dict[str, Any] = dict.fromkeys(Subtopology.model_fields, ())
    return Subtopology(**empty | {"subtopology_id": str(number)} | given)


def word_count(changelog: StreamsTopicInfo) -> StreamsTopology:
    return StreamsTopology(
        epoch=0,
        subtopologies=(
            subtopology(0, source_topics=(LINES,), repartition_sink_topics=(WORDS,)),
            subtopology(1, repartition_source_topics=(info(WORDS),), state_changelog_topics=(changelog,)),
        ),
    )
