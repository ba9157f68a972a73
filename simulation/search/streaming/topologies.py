"""Topologies of searched applications, and how their internal topics follow a source topic that grows."""

from __future__ import annotations

from typing import Any, Final

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsTopology
from rejoin.protocol.streams.topology import CopartitionGroup, StreamsTopicInfo, Subtopology

SOURCE: Final = "t"
OTHER_SOURCE: Final = "u"
_REPARTITION: Final = "app-words-repartition"
_COUNTS: Final = "app-counts-changelog"
_TABLE: Final = "app-table-changelog"


def _info(name: str) -> StreamsTopicInfo:
    return StreamsTopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=())


def _part(number: int, **given: Any) -> Subtopology:
    empty: dict[str, Any] = dict.fromkeys(Subtopology.model_fields, ())
    return Subtopology(**empty | {"subtopology_id": str(number)} | given)


_BOTH: Final = CopartitionGroup(source_topics=(0, 1), source_topic_regex=(), repartition_source_topics=())

SHAPES: Final[dict[str, tuple[Subtopology, ...]]] = {
    "map": (_part(0, source_topics=(SOURCE,)),),
    "table": (_part(0, source_topics=(SOURCE,), state_changelog_topics=(_info(_TABLE),)),),
    "count": (
        _part(0, source_topics=(SOURCE,), repartition_sink_topics=(_REPARTITION,)),
        _part(1, repartition_source_topics=(_info(_REPARTITION),), state_changelog_topics=(_info(_COUNTS),)),
    ),
    "two": (
        _part(0, source_topics=(SOURCE,), state_changelog_topics=(_info(_TABLE),)),
        _part(1, source_topics=(OTHER_SOURCE,)),
    ),
    "join": (
        _part(
            0,
            source_topics=(SOURCE, OTHER_SOURCE),
            state_changelog_topics=(_info(_TABLE),),
            copartition_groups=(_BOTH,),
        ),
    ),
}
"""By name: subtopologies. ``u`` has as many partitions as ``t`` has."""


def topology_of(shape: str) -> StreamsTopology:
    """The topology that the members of an application send."""
    return StreamsTopology(epoch=0, subtopologies=SHAPES[shape])


def internal_topics(shape: str) -> frozenset[str]:
    """The names of the internal topics, which all have as many partitions as the sources have."""
    infos = (info for each in SHAPES[shape] for info in (*each.repartition_source_topics, *each.state_changelog_topics))
    return frozenset(info.name for info in infos)


def stateful(shape: str) -> frozenset[str]:
    """The ids of subtopologies whose tasks may have standbys."""
    return frozenset(each.subtopology_id for each in SHAPES[shape] if each.state_changelog_topics)
