"""Topologies are configured as Kafka's coordinator does it: by recordings, and whatever a client sends."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from time import process_time
from typing import Any, Final

import pytest

from rejoin.coordinator.core.groups.streams.topology.configured import ConfiguredTopology
from rejoin.coordinator.core.groups.streams.topology.configuring import MOST_NAMED, configure
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from rejoin.protocol.records.groups.streams_groups import StreamsGroupTopologyValue
from rejoin.protocol.streams.topology import CopartitionGroup, StreamsTopicInfo, Subtopology
from tests.paths import ROOT

SEQUENCES: Final = ROOT / "tests/golden/streams-groups/streams-groups.jsonl.gz"
TOPIC_STATUSES: Final = {1, 2, 3}
INVALID: Final = ErrorCode.STREAMS_INVALID_TOPOLOGY


class Topics:
    """Topics by their numbers of partitions."""

    version = 0
    group_configs: Mapping[str, Mapping[str, str]] = {}

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = dict(counts)

    def named(self, topic_id: str) -> str | None:
        return topic_id

    def id_of(self, topic: str) -> str:
        return topic

    def partition_count(self, topic: str) -> int:
        return self.counts.get(topic, 0)

    def names(self) -> Collection[str]:
        return self.counts

    def __contains__(self, name: str) -> bool:
        return name in self.counts


def info(name: str, partitions: int = 0) -> StreamsTopicInfo:
    return StreamsTopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=())


def subtopology(
    name: str,
    sources: Sequence[str] = (),
    reads: Sequence[StreamsTopicInfo] = (),
    writes: Sequence[str] = (),
    changelogs: Sequence[str] = (),
    groups: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> Subtopology:
    """``groups`` are co-partition groups: places of sources, and of repartition topics."""
    return Subtopology(
        subtopology_id=name,
        source_topics=tuple(sources),
        source_topic_regex=(),
        state_changelog_topics=tuple(map(info, changelogs)),
        repartition_sink_topics=tuple(writes),
        repartition_source_topics=tuple(reads),
        copartition_groups=tuple(
            CopartitionGroup(
                source_topics=tuple(ones), source_topic_regex=(), repartition_source_topics=tuple(repartitions)
            )
            for ones, repartitions in groups
        ),
    )


def configured(topics: Mapping[str, int], *subtopologies: Subtopology) -> ConfiguredTopology:
    answer = configure(StreamsGroupTopologyValue(epoch=0, subtopologies=subtopologies), Topics(topics))
    assert isinstance(answer, ConfiguredTopology), answer
    return answer


def refused(topics: Mapping[str, int], *subtopologies: Subtopology) -> ErrorCode:
    answer = configure(StreamsGroupTopologyValue(epoch=0, subtopologies=subtopologies), Topics(topics))
    assert isinstance(answer, ErrorCode), answer
    return answer


# --- recordings


def of_json(value: Any) -> Any:
    """A part of a recorded topology with the names of fields that structures here have."""
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in key): of_json(each) for key, each in value.items()
        }
    return tuple(map(of_json, value)) if isinstance(value, list) else value


def topology_of(recorded: dict[str, Any]) -> StreamsGroupTopologyValue:
    subtopologies = tuple(Subtopology.model_validate(of_json(each)) for each in recorded["subtopologies"])
    return StreamsGroupTopologyValue(epoch=recorded["epoch"], subtopologies=subtopologies)


def heartbeats() -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None, Topics, StreamsGroupTopologyValue]]:
    """Each accepted or refused heartbeat: its name, reply, group, and the topics and topology it was answered with."""
    with gzip.open(SEQUENCES, "rt") as lines:
        sequences = list(map(json.loads, lines))
    for sequence in sequences:
        topics = Topics({name: each["partitions"] for name, each in sequence["topics"].items()})
        stored: dict[str, Any] | None = None
        for number, step in enumerate(sequence["steps"]):
            do = step["do"]
            for name, each in do.get("topics", {}).items():
                if each is None:
                    topics.counts.pop(name, None)
                else:
                    topics.counts[name] = each["partitions"]
            for record in step["records"]:
                if record["type"] == 23:
                    stored = record["value"]
            for reply in step["out"]:
                topology = stored or do.get("body", {}).get("topology")
                if reply.get("api") == "StreamsGroupHeartbeat" and topology is not None:
                    group = step["group"]
                    yield f"{sequence['id']} {number}", reply, group, topics, topology_of(topology)


def named_in(detail: str) -> list[str]:
    """The topics that a detail names. In the recordings their names are a letter and a number."""
    return sorted(set(re.findall(r"\b[a-z]\d\b", detail)))


def test_every_recorded_heartbeat_finds_the_topology_as_kafka_does() -> None:
    wrong, statuses, created, ready = [], 0, 0, 0
    for name, reply, group, topics, topology in heartbeats():
        body = reply["body"]
        if body["errorCode"] or body["memberEpoch"] < 0:
            continue
        answer = configure(topology, topics)
        if isinstance(answer, ErrorCode):
            wrong.append((name, "refused"))
            continue
        seen = [each for each in body["status"] if each["statusCode"] in TOPIC_STATUSES]
        if [each["statusCode"] for each in seen] != ([] if answer.status is None else [answer.status.value]):
            wrong.append((name, "status"))
        for each in seen:
            statuses += 1
            names = [text for text in each["statusDetail"].split(",") if text]
            if named_in(answer.detail) != sorted(names):
                wrong.append((name, f"{names} in {answer.detail}"))
        to_create = [
            {
                "name": topic,
                "numPartitions": each.partitions,
                "replicationFactor": each.info.replication_factor or -1,
                "assignments": [],
                "configs": [{"name": config.key, "value": config.value} for config in each.info.topic_configs],
            }
            for topic, each in sorted(answer.to_create.items())
        ]
        created += len(to_create)
        if (reply.get("to_create") or []) != to_create:
            wrong.append((name, f"to create {to_create}"))
        known = None if group is None else group["configured"]
        if known is not None:
            ready += answer.is_ready
            status = None if answer.status is None else answer.status.value
            mine = (answer.topology_epoch, status, sorted(answer.to_create), answer.tasks)
            if mine != (known["topology_epoch"], known["status"], sorted(known["to_create"]), known["tasks"]):
                wrong.append((name, f"configured {mine}"))
    assert (len(wrong), wrong[:5]) == (0, [])
    assert min(statuses, created, ready) > 100


# --- partitions and tasks


def test_a_repartition_topic_has_as_many_partitions_as_the_largest_topic_that_flows_into_it() -> None:
    answer = configured(
        {"small": 2, "large": 6},
        subtopology("0", ["small", "large"], writes=["r"]),
        subtopology("1", reads=[info("r")], changelogs=["c"]),
    )
    assert (answer.partitions, answer.tasks) == ({"r": 6, "c": 6}, {"0": 6, "1": 6})


def test_a_topic_that_an_application_sizes_itself_keeps_its_number() -> None:
    answer = configured({"t": 6}, subtopology("0", ["t"], writes=["r"]), subtopology("1", reads=[info("r", 4)]))
    assert (answer.partitions, answer.tasks) == ({"r": 4}, {"0": 6, "1": 4})


def test_a_co_partitioned_repartition_topic_follows_the_source_topic() -> None:
    answer = configured(
        {"t": 6, "other": 3},
        subtopology("0", ["t"], writes=["r"]),
        subtopology("1", ["other"], reads=[info("r")], groups=[((0,), (0,))]),
    )
    assert (answer.partitions, answer.tasks) == ({"r": 3}, {"0": 6, "1": 3})


def test_numbers_given_elsewhere_decide_about_a_group_of_repartition_topics() -> None:
    """Kafka's own: the group has nothing to do with the topic whose number is given."""
    answer = configured(
        {"t": 6},
        subtopology("0", ["t"], writes=["a", "b", "own"]),
        subtopology("1", reads=[info("a"), info("b")], groups=[((), (0, 1))]),
        subtopology("2", reads=[info("own", 4)]),
    )
    assert answer.partitions == {"a": 4, "b": 4, "own": 4}


def test_what_exists_with_another_number_of_partitions_is_named() -> None:
    answer = configured({"t": 6, "c": 5}, subtopology("0", ["t"], changelogs=["c"]))
    assert (answer.status, answer.tasks, answer.to_create) == (StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, None, {})
    assert answer.detail == "Topic c has 5 partitions and needs 6."


def test_a_changelog_fits_what_the_repartition_topic_has_and_not_what_it_should_have() -> None:
    answer = configured(
        {"t": 5, "r": 4, "c": 4},
        subtopology("0", ["t"], writes=["r"]),
        subtopology("1", reads=[info("r")], changelogs=["c"]),
    )
    assert answer.detail == "Topic r has 4 partitions and needs 5."


def test_a_topology_without_subtopologies_is_ready_and_has_no_tasks() -> None:
    answer = configured({})
    assert (answer.is_ready, answer.tasks) == (True, {})


def test_only_a_few_missing_topics_are_named() -> None:
    answer = configured({}, subtopology("0", [f"t{number}" for number in range(9)]))
    assert answer.detail == f"Source topics are missing: t0, t1, t2 and {9 - MOST_NAMED} more."


# --- bad input


def test_loops_topics_without_a_writer_and_subtopologies_without_sources_are_refused() -> None:
    loop = (subtopology("0", reads=[info("b")], writes=["a"]), subtopology("1", reads=[info("a")], writes=["b"]))
    assert refused({}, *loop) is INVALID
    assert refused({"t": 1}, subtopology("0", ["t"], reads=[info("unwritten")])) is INVALID
    assert refused({"t": 1}, subtopology("0", ["t"]), subtopology("1")) is INVALID


def test_a_loop_that_a_source_topic_flows_into_has_partitions() -> None:
    answer = configured({"t": 3}, subtopology("0", ["t"], reads=[info("r")], writes=["r"]))
    assert answer.tasks == {"0": 3}


@pytest.mark.parametrize("place", [-1, 1, 32767])
def test_places_that_do_not_exist_meet_the_internal_error_of_kafka(place: int) -> None:
    for topics in ({"t": 1}, {}):
        assert refused(topics, subtopology("0", ["t"], groups=[((place,), ())])) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert refused(topics, subtopology("0", ["t"], groups=[((), (place,))])) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_named_twice_in_a_subtopology_meets_the_internal_error_of_kafka() -> None:
    assert refused({"t": 1}, subtopology("0", ["t"], changelogs=["c", "c"])) is ErrorCode.UNKNOWN_SERVER_ERROR


def seconds(count: int) -> float:
    """Processor time of a chain of so many subtopologies, each flowing into the one before it, with large groups."""
    chain = [
        subtopology(f"{number:06}", reads=[info(f"r{number}")], writes=[f"r{number - 1}"] if number else [])
        for number in range(count)
    ]
    names = [f"t{number}" for number in range(count)]
    places = tuple(range(min(count, 100)))
    groups = [(places, ()) for _ in range(count // 10)]
    last = subtopology("source", names, writes=[f"r{count - 1}"], groups=groups)
    topology = StreamsGroupTopologyValue(epoch=0, subtopologies=(*chain, last))
    topics = Topics(dict.fromkeys(names, 3))
    start = process_time()
    answer = configure(topology, topics)
    taken = process_time() - start
    assert isinstance(answer, ConfiguredTopology)
    assert answer.tasks is not None
    assert set(answer.tasks.values()) == {3}
    return taken


def test_the_cost_of_a_long_chain_grows_with_its_length_alone() -> None:
    small = min(seconds(1_000) for _ in range(3))
    assert seconds(10_000) < 10 * small * 6
