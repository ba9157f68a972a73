"""A scenario: one YAML file with the consumers and nodes, the actions and their times, and the horizon.

Consumers are named for their group and counted from 1: ``orders-app-1``. Nodes are ``node-1``, ``node-2``. ``any`` is a
consumer at random, ``any-of-GROUP`` one of a group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from rejoin.coordinator.config import Settings
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from rejoin.protocol.units import format_duration
from rejoin.simulation.explore.exploring import Exploring, exploring_mistakes
from rejoin.simulation.scenario.actions import (
    Autoscale,
    ChangeAcls,
    CutOff,
    DeleteTopic,
    DuplicateInstance,
    Failover,
    GrowTopic,
    MoveLeaders,
    ScaleGroup,
    ScheduledAction,
    StoreOutage,
)
from rejoin.simulation.scenario.durations import Duration, Length
from rejoin.simulation.scenario.fields import (
    Assignors,
    GroupSettings,
    NamesOrNone,
    Part,
    Processing,
    SettingsByName,
    names_of,
)
from rejoin.simulation.scenario.protocols import Protocol, idle_keys, protocol_mistakes, topics_of, unread_topics
from rejoin.simulation.scenario.share_groups import ShareSpec, dead_letter_topics, share_groups
from rejoin.simulation.scenario.streams.groups import StreamsSpec, streams_transactional_ids
from rejoin.simulation.scenario.writers import ProducerSpec, ReaderSpec, StartSpec, TransformSpec

_STATIC_GROUP: Final = re.compile(r"[a-zA-Z0-9._-]{1,240}")


def any_of(name: str) -> str | None:
    """The group of which ``any-of-GROUP`` means a consumer at random; ``""`` for ``any``, of all groups."""
    if name == "any":
        return ""
    return name.removeprefix("any-of-") if name.startswith("any-of-") else None


class ScenarioMistake(ValueError):
    """A mistake in a scenario as a whole; ``path`` is the key at which it is reported."""

    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        super().__init__(problem)
        self.path = path


class TopicSpec(Part):
    """A topic. ``records_per_second`` is for each partition."""

    partitions: int = Field(ge=1, le=100_000)
    records_per_second: float = Field(default=0.0, ge=0.0, le=1e6)
    until: Duration | None = None
    """Time at which the topic's records end; none: at the horizon."""
    created: Duration = 0
    """Time at which the topic is created; its records begin then."""
    poison: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of its records that no handler can handle, drawn by the seed."""


class GroupSpec(Part):
    """A group: how many consumers, what they read and how they are set up. Kafka's defaults."""

    topics: NamesOrNone = ()
    regex: str | None = None
    """In place of topics: the coordinator finds those that match."""
    consumers: int = Field(ge=0, le=10_000)
    protocol: Protocol = "classic"
    """``group.protocol`` of the consumers, until a deploy changes it."""
    assignor: Assignors = ("range", "cooperative-sticky")
    remote_assignor: str | None = None
    """``group.remote.assignor``: the coordinator's assignor that they ask for."""
    static: bool = False
    commit: Literal["auto", "after", "after-async", "before", "none", "transaction"] = "auto"
    transform: TransformSpec | None = None
    """Records to write for each record read; none: nothing."""
    share: ShareSpec | None = None
    """The handler of a share group's consumers."""
    streams: StreamsSpec | None = None
    """The topology of a Kafka Streams application, whose instances the consumers are."""
    processing: Processing = "1ms"
    session_timeout: Duration = 45_000
    heartbeat_interval: Length = 3_000
    max_poll_interval: Length = 300_000
    max_poll_records: int = Field(default=500, ge=1)
    auto_commit_interval: Duration = 5_000
    metadata_max_age: Duration = 300_000
    request_timeout: Duration = 30_000
    poll: Length = 500
    fetch_max_wait: Length = 500
    """``fetch.max.wait.ms``: how long a poll waits before it looks for records again."""
    revoke: Duration = 0
    """How long the listener takes to revoke partitions."""
    assign: Duration = 0
    """How long it takes to prepare for partitions that were assigned."""
    leave: bool = True
    """Whether a consumer that is stopped sends LeaveGroup; static members never do."""
    revive: Duration = 30_000
    """How long after a fatal error a process is started again."""
    start: StartSpec = StartSpec()
    reset: Literal["earliest", "latest"] = "earliest"
    settings: GroupSettings = Field(default={})
    """Settings that the coordinator has for this group alone, under Kafka's names."""


class NetworkSpec(Part):
    """The delay of each message one way, and the chances that a connection breaks."""

    latency: Processing = "exp(2ms)"
    longest: Length = 500
    lost_requests: float = Field(default=0.0, ge=0.0, le=1.0)
    lost_answers: float = Field(default=0.0, ge=0.0, le=1.0)


class CoordinatorSpec(Part):
    """The nodes: how many, their settings under Kafka's names, and how fast their offsets log is."""

    nodes: int = Field(default=1, ge=1, le=16)
    settings: SettingsByName = Field(default={})
    log_latency: Processing = "exp(3ms)"
    notice: Duration = 2_000
    """How long after a crash a node is replaced."""
    gossip: Duration = 500
    """The longest time until every node knows of that."""
    lease: Duration = 0
    """Leadership comes from leases of this length, as with ``--store``: who does not renew one in time gives up, and
    another takes over. 0: there are none, a crashed node is replaced after ``notice``."""

    def milliseconds(self, key: str) -> int:
        """A setting that is a time, such as ``group.initial.rebalance.delay.ms``: as given, or its default."""
        return int(getattr(Settings.model_validate(self.settings), key.replace(".", "_")))


class Scenario(Part):
    """The whole."""

    question: str = ""
    answer: str = ""
    horizon: Length
    seed: int = Field(default=1, ge=0, lt=2**63)
    late: Duration = 10_000
    """A record that is processed later than so long after it was written counts as late."""
    topics: dict[str, TopicSpec]
    groups: dict[str, GroupSpec]
    producers: dict[str, ProducerSpec] = Field(default={})
    readers: dict[str, ReaderSpec] = Field(default={})
    coordinator: CoordinatorSpec = CoordinatorSpec()
    network: NetworkSpec = NetworkSpec()
    events: tuple[ScheduledAction, ...] = ()
    explore: Exploring | None = None
    """Openness for an exploration; none: the scenario has one order."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for part in ("topics", "groups"):
            if "" in getattr(self, part):
                raise ScenarioMistake((part, ""), f"{part}: a name is empty; expected at least a letter")
        for name, group in self.groups.items():
            for index, topic in enumerate(group.topics):
                if topic not in self.topics:
                    problem = f"group {name} reads topic {topic!r}, which is not under topics"
                    raise ScenarioMistake(("groups", name, "topics", index), problem)
            if group.static and not _STATIC_GROUP.fullmatch(name):
                expected = "of static members; expected at most 240 of the characters a-z A-Z 0-9 . _ -"
                problem = f"group {name[:80]!r} begins the group.instance.id {expected}"
                raise ScenarioMistake(("groups", name, "static"), problem)
        for mistake in (*protocol_mistakes(self), *exploring_mistakes(self)):
            raise ScenarioMistake(*mistake)
        self._check_writers()
        self._check_readers()
        for number, event in enumerate(self.events):
            self._check(number, event)
        return self

    def _check_writers(self) -> None:
        for name, producer in self.producers.items():
            if name in self.groups:
                raise ScenarioMistake(("producers", name), f"producers {name!r}: a group has this name")
            for index, topic in enumerate(producer.topics):
                self._check_written(topic, ("producers", name, "topics", index), f"producers {name} write", "producers")
        for name, group in self.groups.items():
            if group.transform is not None:
                path = ("groups", name, "transform", "to")
                self._check_written(group.transform.to, path, f"group {name} writes", "writers")
                if group.transform.outputs > (there := self.topics[group.transform.to].partitions):
                    problem = f"group {name} makes {group.transform.outputs} records of one, each in another partition"
                    expected = f"topic {group.transform.to!r} has {there}"
                    raise ScenarioMistake(("groups", name, "transform", "outputs"), f"{problem}; {expected}")
                if group.transform.commit_interval and group.commit != "transaction":
                    problem = f"group {name} has no transactions; say 'commit: transaction', or leave it out"
                    raise ScenarioMistake(("groups", name, "transform", "commit_interval"), problem)
            elif group.commit == "transaction":
                problem = f"group {name} commits in transactions and writes nothing; say 'transform: {{to: TOPIC}}'"
                raise ScenarioMistake(("groups", name, "commit"), problem)
            for index, topic in enumerate(group.topics):
                if group.transform is not None and topic in self.written_topics:
                    problem = f"group {name} transforms topic {topic!r}, whose records are written by others"
                    expected = "expected one with records_per_second"
                    raise ScenarioMistake(("groups", name, "topics", index), f"{problem}; {expected}")

    def _check_written(self, topic: str, path: tuple[str | int, ...], who: str, has: str) -> None:
        if topic not in self.topics:
            raise ScenarioMistake(path, f"{who} to topic {topic!r}, which is not under topics")
        if self.topics[topic].records_per_second:
            problem = f"topic {topic!r} has {has}; its records_per_second must be 0"
            raise ScenarioMistake(("topics", topic, "records_per_second"), problem)

    def _check_readers(self) -> None:
        transformed = {group.transform.to for group in self.groups.values() if group.transform is not None}
        for name, reader in self.readers.items():
            if name in self.groups or name in self.producers:
                raise ScenarioMistake(("readers", name), f"readers {name!r}: a group or producers have this name")
            for index, topic in enumerate(reader.topics):
                if topic not in transformed:
                    there = ", ".join(sorted(transformed)) or "none"
                    problem = f"reader {name} reads topic {topic!r}, to which no group transforms; there are: {there}"
                    raise ScenarioMistake(("readers", name, "topics", index), problem)

    @property
    def written_topics(self) -> tuple[str, ...]:
        """The topics with real logs: of producers, of transforms, and of dead letters."""
        topics = [topic for each in self.producers.values() for topic in each.topics]
        topics += [group.transform.to for group in self.groups.values() if group.transform is not None]
        topics += dead_letter_topics(self)
        return tuple(dict.fromkeys(topics))

    def topics_of(self, group_id: str) -> tuple[str, ...]:
        """The topics that a group reads."""
        return topics_of(self, group_id)

    def transactional_ids(self) -> list[str]:
        """Every transactional id that may be used."""
        ids: list[str] = []
        for name, group in self.groups.items():
            ids += streams_transactional_ids(self, name, self._most(name))
            if group.commit != "transaction" or group.transform is None:
                continue
            if group.transform.transactional_id == "process":
                ids += [f"{name}-{number}" for number in range(1, self._most(name) + 1)]
                continue
            grown = [event.grow for event in self.events if event.grow is not None]
            for topic in group.topics:
                count = max([self.topics[topic].partitions, *(grow.to for grow in grown if grow.topic == topic)])
                ids += [f"{name}-{topic}-{index}" for index in range(count)]
        return ids

    def _state_topics(self) -> tuple[str, ...]:
        """The coordinators' topics with real logs, whose leaders can be moved."""
        has_transforms = any(each.transform is not None for each in self.groups.values())
        topics = (TRANSACTION_STATE_TOPIC,) if has_transforms else ()
        return (*topics, SHARE_GROUP_STATE_TOPIC) if share_groups(self) else topics

    def _check(self, number: int, event: ScheduledAction) -> None:
        action = event.action

        def mistake(key: str, problem: str) -> ScenarioMistake:
            return ScenarioMistake(("events", number, event.kind, key), f"events[{number}]: {problem}")

        group = getattr(action, "group", None)
        if group is not None and group not in self.groups:
            raise mistake("group", f"there is no group {group!r}; there are {', '.join(self.groups)}")
        key = "topic" if hasattr(action, "topic") else "topics"
        for topic in names_of(getattr(action, key, ())):
            if topic not in (*self.topics, *self._state_topics()):
                raise mistake(key, f"there is no topic {topic!r}; there are {', '.join(self.topics)}")
        written = (*self.written_topics, *self._state_topics())
        if isinstance(action, MoveLeaders) and action.topic not in written:
            raise mistake("topic", f"topic {action.topic!r} has no producers; its partitions have no leaders to move")
        if isinstance(action, GrowTopic) and action.topic in self.written_topics:
            raise mistake("topic", f"topic {action.topic!r} has producers; it cannot grow here")
        if isinstance(action, DeleteTopic) and action.topic in written:
            raise mistake("topic", f"topic {action.topic!r} has a real log; it cannot be deleted here")
        for name in names_of(getattr(action, "who", ())):
            if not self.knows(name) and any_of(name) is None:
                raise mistake("who", f"there is no consumer {name!r}; they are named GROUP-NUMBER, counted from 1")
            if self._is_producer(name) and not isinstance(action, CutOff):
                raise mistake("who", f"{name} is a producer: producers can be cut off, and nothing else")
            if any_of(name) not in (None, "", *self.groups):
                raise mistake("who", f"there is no group {any_of(name)!r}; there are {', '.join(self.groups)}")
        for name in getattr(action, "nodes", ()):
            if not name.startswith("node-") or not self.knows(name):
                problem = f"there is no node {name!r}; there are node-1 to node-{self.coordinator.nodes}, "
                raise mistake("nodes", problem + "and node-of-GROUP")
        if isinstance(action, ChangeAcls) and "authorizer.class.name" not in self.coordinator.settings:
            raise mistake("create", "ACLs need an authorizer; say 'authorizer.class.name' under coordinator.settings")
        if isinstance(action, StoreOutage) and not self.coordinator.lease:
            raise mistake("nodes", "without leases nodes need no store; say 'lease: 9s' under coordinator")
        if isinstance(action, Failover) and action.zombie and self.coordinator.lease:
            raise mistake("zombie", "a node with leases gives up by its own clock; let it pause for longer instead")
        if isinstance(action, DuplicateInstance):
            self._check_duplicate(action, mistake)

    def _check_duplicate(self, action: DuplicateInstance, mistake: Callable[[str, str], ScenarioMistake]) -> None:
        if any_of(action.who) is not None:
            raise mistake("who", "name the consumer whose group.instance.id the second process takes")
        group = self.groups[action.who.rpartition("-")[0]]
        if not group.static and group.transform is None:
            raise mistake("who", f"{action.who} has no group.instance.id; say 'static: true' in its group")

    def check_as_written(self) -> None:
        """Refuse a scenario with an action that can never happen. Raises :class:`ScenarioMistake`.

        For scenarios that people write. A sweep may try settings with which an action has no effect.
        """
        for number, event in enumerate(self.events):
            if event.at > self.horizon:
                problem = (
                    f"{format_duration(event.at)} is after the end of the run; expected at most the horizon, "
                    f"{format_duration(self.horizon)}"
                )
                raise ScenarioMistake(("events", number, "at"), f"events[{number}]: {problem}")
            for name in names_of(getattr(event.action, "who", ())):
                head, _, count = name.rpartition("-")
                if head == "node" or name.startswith("node-of-") or any_of(name) is not None:
                    continue
                most = self._most(head)
                if int(count) > most or count != str(int(count)):
                    problem = f"there is never a consumer {name!r}; {head} has at most {most}"
                    raise ScenarioMistake(("events", number, event.kind, "who"), f"events[{number}]: {problem}")
        for mistake in (*idle_keys(self), *unread_topics(self)):
            raise ScenarioMistake(*mistake)
        self._check_topics()

    def _most(self, group_id: str) -> int:
        """How many consumers a group ever has, at the most; or how many producers of a name there are."""
        if group_id in self.producers:
            return self.producers[group_id].producers
        actions = [event.action for event in self.events if getattr(event.action, "group", None) == group_id]
        scaled = [action.to for action in actions if isinstance(action, ScaleGroup)]
        scaled += [max(action.min, action.max) for action in actions if isinstance(action, Autoscale)]
        return max([self.groups[group_id].consumers, *scaled])

    def _check_topics(self) -> None:
        partitions = {name: topic.partitions for name, topic in self.topics.items()}
        for number, event in sorted(enumerate(self.events), key=lambda each: each[1].at):
            grow = event.grow
            for action in (grow, event.delete_topic):
                if action is not None and action.topic not in partitions:
                    path = ("events", number, event.kind, "topic")
                    raise ScenarioMistake(path, f"events[{number}]: topic {action.topic} is deleted by then")
            if event.delete_topic is not None:
                del partitions[event.delete_topic.topic]
            if grow is None:
                continue
            has = partitions[grow.topic]
            if grow.to <= has:
                problem = f"topic {grow.topic} has {has} partitions by then; expected more, not {grow.to}"
                raise ScenarioMistake(("events", number, "grow", "to"), f"events[{number}]: {problem}")
            partitions[grow.topic] = grow.to

    def knows(self, name: str) -> bool:
        """Whether a consumer, a node or ``node-of-GROUP`` can have this name."""
        head, _, number = name.rpartition("-")
        if head == "node":
            return number.isdecimal() and 1 <= int(number) <= self.coordinator.nodes
        if name.startswith("node-of-"):
            return name.removeprefix("node-of-") in self.groups
        return (head in self.groups or self._is_producer(name)) and number.isdecimal() and int(number) >= 1

    def _is_producer(self, name: str) -> bool:
        return name.rpartition("-")[0] in self.producers
