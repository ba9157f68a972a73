"""Topologies of streams groups as words: ``0:source=lines``, ``1:changelog=counts/3/1/cleanup.policy=compact``.

Each word adds one topic to a list of a subtopology. A repartition source or changelog may have partitions, replication
factor and settings behind it; zeros at the end are left out. ``1:copartition=s0+r1`` names places in the lists of
sources, regular expressions (x) and repartition sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsTopology
from rejoin.protocol.streams.topology import CopartitionGroup, StreamsKeyValue, StreamsTopicInfo, Subtopology
from rejoin.transcript.grammar.words import BadWord, NotExpressible, read_number, write_word

NAMES: Final[Mapping[str, str]] = {
    "source": "source_topics",
    "regex": "source_topic_regex",
    "sink": "repartition_sink_topics",
}
INFOS: Final[Mapping[str, str]] = {
    "repartition": "repartition_source_topics",
    "changelog": "state_changelog_topics",
}
COPARTITION: Final = "copartition"
PLACES: Final[Mapping[str, str]] = {
    "s": "source_topics",
    "x": "source_topic_regex",
    "r": "repartition_source_topics",
}
EXPECTED: Final = f"SUBTOPOLOGY:{'|'.join((*NAMES, *INFOS, COPARTITION))}=TOPIC"


def is_topology_word(word: str) -> bool:
    """Whether a word is a part of a topology."""
    kind = word.partition("=")[0].rpartition(":")[2]
    return ":" in word.partition("=")[0] and kind in (*NAMES, *INFOS, COPARTITION, "")


def read_topology(words: Iterable[str], epoch: int) -> StreamsTopology:
    """The topology of some words. Raises :class:`BadWord`."""
    parts: dict[str, dict[str, list[Any]]] = {}
    for word in words:
        where, equals, value = word.partition("=")
        subtopology, _, kind = where.rpartition(":")
        lists = parts.setdefault(subtopology, {})
        if not kind and not equals:
            continue
        if not value:
            raise BadWord(f"expected {EXPECTED}, not {word!r}")
        if kind in NAMES:
            lists.setdefault(NAMES[kind], []).append(value)
        elif kind in INFOS:
            lists.setdefault(INFOS[kind], []).append(_read_info(value))
        elif kind == COPARTITION:
            lists.setdefault("copartition_groups", []).append(_read_places(value))
        else:
            raise BadWord(f"expected {EXPECTED}, not {word!r}")
    empty: dict[str, list[Any]] = {name: [] for name in Subtopology.model_fields if name != "subtopology_id"}
    subtopologies = tuple(
        Subtopology(subtopology_id=each, **{name: tuple(some) for name, some in (empty | lists).items()})
        for each, lists in parts.items()
    )
    return StreamsTopology(epoch=epoch, subtopologies=subtopologies)


def _read_info(text: str) -> StreamsTopicInfo:
    name, *rest = text.split("/")
    numbers = [each for each in rest if "=" not in each]
    if len(numbers) > 2:
        raise BadWord(f"expected TOPIC/PARTITIONS/REPLICAS/NAME=VALUE, not {text!r}")
    partitions, replicas = (*map(read_number, numbers), 0, 0)[:2]
    configs = (each.partition("=") for each in rest if "=" in each)
    return StreamsTopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replicas,
        topic_configs=tuple(StreamsKeyValue(key=key, value=value) for key, _, value in configs),
    )


def _read_places(text: str) -> CopartitionGroup:
    places: dict[str, list[int]] = {name: [] for name in PLACES.values()}
    for place in text.split("+"):
        if place[:1] not in PLACES:
            raise BadWord(f"expected places as s0+r1, not {text!r}")
        places[PLACES[place[:1]]].append(read_number(place[1:]))
    return CopartitionGroup(**{name: tuple(some) for name, some in places.items()})


def written_topology(topology: StreamsTopology) -> list[str]:
    """The words of a topology. Raises :class:`NotExpressible`."""
    ids = [each.subtopology_id for each in topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise NotExpressible("two subtopologies with one id")
    return [word for each in topology.subtopologies for word in _written(each)]


def _written(part: Subtopology) -> list[str]:
    words = [f"{kind}={_plain(name)}" for kind, field in NAMES.items() for name in getattr(part, field)]
    words += [f"{kind}={_written_info(info)}" for kind, field in INFOS.items() for info in getattr(part, field)]
    words += [f"{COPARTITION}={_written_places(group)}" for group in part.copartition_groups]
    return [f"{_plain(part.subtopology_id)}:{word}" for word in words or [""]]


def _plain(text: str) -> str:
    if "/" in text or not text:
        raise NotExpressible(f"{text[:60]!r} cannot be a word")
    return write_word(text)


def _written_info(info: StreamsTopicInfo) -> str:
    numbers = [str(info.partitions), str(info.replication_factor)]
    while numbers and numbers[-1] == "0":
        numbers.pop()
    configs = [f"{_plain(each.key)}={write_word(each.value, also=',+:')}" for each in info.topic_configs]
    if any("/" in each for each in configs):
        raise NotExpressible("a setting with a slash")
    return "/".join([_plain(info.name), *numbers, *configs])


def _written_places(group: CopartitionGroup) -> str:
    places = [f"{sign}{place}" for sign, field in PLACES.items() for place in getattr(group, field)]
    if not places:
        raise NotExpressible("an empty group of topics to be partitioned alike")
    return "+".join(places)
