"""Keys of Kafka Streams applications (KIP-1071), and mistakes in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.simulation.scenario.durations import Length
from rejoin.simulation.scenario.fields import NamesOrNone, Part, Processing
from rejoin.simulation.scenario.mistakes import Mistake

if TYPE_CHECKING:
    from rejoin.simulation.scenario.model import GroupSpec, Scenario

STREAMS: Final = "streams"
STANDBY_REPLICAS: Final = "streams.num.standby.replicas"

_AT_LEAST_ONCE_INTERVAL_MS: Final = 30_000
_EXACTLY_ONCE_INTERVAL_MS: Final = 100

_NOT_OF_APPLICATIONS: Final = {
    "assignor": "tasks are assigned, not partitions",
    "remote_assignor": "there is one assignor",
    "regex": "topics have names",
    "transform": "say what the topology writes",
    "auto_commit_interval": "say commit_interval under streams",
    "commit": "say processing_guarantee under streams",
    "revoke": "tasks are closed at once",
    "assign": "say how long a store is restored",
}
"""Keys that an application refuses, with what is there in their place."""

_NOT_FOR_THREADS: Final = ("enforce", "duplicate", "stale_heartbeats", "outside_commits", "subscribe", "release")
"""Actions on members of other groups."""


class StoreSpec(Part):
    """A state store of each task of a subtopology, with its changelog."""

    restore: Processing = "20us"
    """Time to restore one record of the changelog."""
    keys: int = Field(default=0, ge=0)
    """Keys of each task, which bound its changelog after compaction; 0: each update has a key of its own."""
    records: int = Field(default=0, ge=0)
    """Records in each task's changelog at the start of the run."""

    @property
    def restore_ms(self) -> float:
        """The mean of a record, in ms."""
        return _mean_ms(self.restore)


class SubtopologySpec(Part):
    """A part of the topology. Without sources and repartition topics to read it reads the group's topics."""

    sources: NamesOrNone = ()
    """Topics that it reads."""
    reads: NamesOrNone = ()
    """Repartition topics that it reads, by the names under which others write them."""
    writes: NamesOrNone = ()
    """Repartition topics that it writes: a record for each that it reads."""
    stores: dict[str, StoreSpec] = Field(default={})


class StreamsSpec(Part):
    """A Kafka Streams application: its topology and its settings."""

    subtopologies: tuple[SubtopologySpec, ...] = Field(min_length=1, max_length=100)
    threads: int = Field(default=1, ge=1, le=100)
    """``num.stream.threads`` of each instance; the group's ``consumers`` are instances."""
    standby_replicas: int = Field(default=0, ge=0, le=2)
    """``num.standby.replicas``, of the group or of the client, as the protocol has it."""
    processing_guarantee: Literal["at_least_once", "exactly_once_v2"] = "at_least_once"
    commit_interval: Length | None = None
    """``commit.interval.ms``. None: 30s, or 100ms with exactly_once_v2."""
    keep_state: bool = True
    """Whether an instance that starts again finds its state directory of before."""
    probing_interval: Length = 600_000
    """``probing.rebalance.interval.ms``: how often the classic protocol looks whether warm-up tasks have caught up."""

    @property
    def is_exactly_once(self) -> bool:
        return self.processing_guarantee == "exactly_once_v2"

    @property
    def commit_interval_ms(self) -> int:
        if self.commit_interval is not None:
            return self.commit_interval
        return _EXACTLY_ONCE_INTERVAL_MS if self.is_exactly_once else _AT_LEAST_ONCE_INTERVAL_MS


def _mean_ms(text: str) -> float:
    """A constant time in ms."""
    from random import Random  # noqa: PLC0415

    return parse_processing_time(text).draw(Random(0))


def streams_settings(group: GroupSpec) -> dict[str, bool | int | str]:
    """Settings that the coordinator has for an application which leaves its tasks to it."""
    if group.streams is None or group.protocol != STREAMS or not group.streams.standby_replicas:
        return {}
    return {STANDBY_REPLICAS: group.streams.standby_replicas}


def applications(scenario: Scenario) -> dict[str, GroupSpec]:
    """The groups that are Kafka Streams applications, of either protocol, by id."""
    return {name: group for name, group in scenario.groups.items() if group.streams is not None}


def streams_transactional_ids(scenario: Scenario, name: str, most: int) -> list[str]:
    """Transactional ids of an application's threads."""
    spec = scenario.groups[name].streams
    if spec is None or not spec.is_exactly_once:
        return []
    return [thread_name(f"{name}-{number}", each) for number in range(1, most + 1) for each in range(spec.threads)]


def thread_name(instance: str, index: int) -> str:
    """The client id of a thread: the first one has the name of its instance."""
    return instance if not index else f"{instance}-thread-{index + 1}"


def streams_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Combinations of applications that cannot be played."""
    for name, group in scenario.groups.items():
        if group.protocol == STREAMS and group.streams is None:
            problem = f"group {name} has no topology; say which subtopologies it has under streams"
            yield Mistake(("groups", name, STREAMS), problem)
        if group.streams is not None:
            yield from _mistakes_of_group(scenario, name, group, group.streams)
    for number, event in enumerate(scenario.events):
        deploy = event.deploy
        if deploy is not None and deploy.protocol is not None and deploy.group in scenario.groups:
            before = scenario.groups[deploy.group].protocol
            if before != deploy.protocol and (deploy.group in applications(scenario) or deploy.protocol == STREAMS):
                problem = f"events[{number}]: {deploy.group} cannot change from {before} to {deploy.protocol}"
                yield Mistake(("events", number, "deploy", "protocol"), f"{problem} while members are there")
        if event.kind in _NOT_FOR_THREADS:
            yield from _mistakes_of_action(scenario, number, event.kind, event.action)


def _mistakes_of_group(scenario: Scenario, name: str, group: GroupSpec, spec: StreamsSpec) -> Iterator[Mistake]:
    if group.protocol not in (STREAMS, "classic"):
        problem = f"group {name} is an application and cannot use the protocol {group.protocol}"
        yield Mistake(("groups", name, "protocol"), f"{problem}; expected streams or classic")
    for key, instead in _NOT_OF_APPLICATIONS.items():
        if key in group.model_fields_set and getattr(group, key):
            yield Mistake(("groups", name, key), f"group {name} is an application, which has no {key}: {instead}")
    written = {topic for part in spec.subtopologies for topic in part.writes}
    read = {topic for part in spec.subtopologies for topic in part.reads}
    for index, part in enumerate(spec.subtopologies):
        path = ("groups", name, STREAMS, "subtopologies", index)
        for topic in part.sources:
            if topic not in group.topics:
                problem = f"group {name}: subtopology {index} reads topic {topic!r}, which is not among the topics"
                yield Mistake((*path, "sources"), problem)
        for topic in part.reads:
            if topic not in written:
                problem = f"group {name}: subtopology {index} reads {topic!r}, which no subtopology writes"
                yield Mistake((*path, "reads"), problem)
        for topic in part.writes:
            if topic not in read:
                problem = f"group {name}: subtopology {index} writes {topic!r}, which no subtopology reads"
                yield Mistake((*path, "writes"), problem)
    stores = [store for part in spec.subtopologies for store in part.stores]
    if len(stores) != len(set(stores)):
        yield Mistake(("groups", name, STREAMS, "subtopologies"), f"group {name}: two stores have the same name")
    for topic in group.topics:
        if topic in scenario.written_topics:
            problem = f"group {name} reads topic {topic!r}, whose records are written by others"
            yield Mistake(("groups", name, "topics"), f"{problem}; expected one with records_per_second")


def _mistakes_of_action(scenario: Scenario, number: int, kind: str, action: object) -> Iterator[Mistake]:
    who = getattr(action, "who", getattr(action, "group", ()))
    for name in (who,) if isinstance(who, str) else who:
        for group_id in (name.removeprefix("any-of-"), name.rpartition("-")[0]):
            if group_id in applications(scenario):
                problem = f"events[{number}]: {kind} has no effect on the application {group_id}"
                yield Mistake(("events", number, kind), problem)
                return
