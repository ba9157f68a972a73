"""A scenario: one YAML file that says who is there, what happens when, and for how long to look.

Lengths of time are written with a unit, ``250ms``, ``30s``, ``5m``, ``1h``, ``2d``, or with several: ``1m30s``.
Consumers are named for their group and counted from 1: ``orders-app-1``. Nodes are ``node-1``, ``node-2``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from rejoin.client.assignors.registry import assignor_named
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.coordinator.config import Settings

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")

LONGEST_MS: Final = 3_653 * _UNITS["d"]
"""Ten years, the two or three leap days among them."""


class ScenarioMistake(ValueError):
    """What is wrong in a scenario as a whole; ``path``: the key at which it stands."""

    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        super().__init__(problem)
        self.path = path


def parse_duration(text: object) -> int:
    """A length of time in ms. Raises ValueError saying what was expected."""
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return 0
    if not isinstance(text, str) or not _WHOLE.fullmatch(text.strip()):
        raise ValueError("expected a length of time with its unit, such as 250ms, 30s, 5m or 1h30m")
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if length > LONGEST_MS:
        raise ValueError("expected a length of time of at most ten years")
    return round(length)


def show_duration(ms: int) -> str:
    """A length of time as people write it: ``1h30m``, ``2.5s``, ``250ms``."""
    if ms < 1_000:
        return f"{ms}ms"
    parts = []
    for unit in ("d", "h", "m"):
        count, ms = divmod(ms, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if ms:
        parts.append(f"{ms / 1000:g}s")
    return "".join(parts)


def _processing(text: object) -> str:
    shown = str(text)
    parse_processing_time(shown)
    return shown


def _assignors(value: object) -> object:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise ValueError("expected the name of an assignor, or a list of them")
    for name in names:
        assignor_named(str(name))
    return names


def _names(value: object) -> Sequence[Any]:
    if not isinstance(value, (str, list, tuple)):
        raise ValueError("expected a name, or a list of names")
    return (value,) if isinstance(value, str) else value


def _something(ms: int) -> int:
    if ms < 1:
        raise ValueError("expected a length of time of at least 1ms")
    return ms


Duration = Annotated[int, BeforeValidator(parse_duration), PlainSerializer(show_duration), Field(ge=0)]
Length = Annotated[Duration, AfterValidator(_something)]
"""A duration that is not nothing."""
Processing = Annotated[str, BeforeValidator(_processing)]
Assignors = Annotated[tuple[str, ...], BeforeValidator(_assignors), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names), Field(min_length=1)]


class Part(BaseModel):
    """A part of a scenario. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Topic(Part):
    """A topic. ``records_per_second`` is for each partition."""

    partitions: int = Field(ge=1, le=100_000)
    records_per_second: float = Field(default=0.0, ge=0.0, le=1e6)


class Start(Part):
    """When a group's consumers start: the first ``after``, then one ``every``."""

    after: Duration = 0
    every: Duration = 0


class Group(Part):
    """A group: how many consumers, what they read and how they are set up. Kafka's defaults."""

    topics: Names
    consumers: int = Field(ge=0, le=10_000)
    assignor: Assignors = ("range", "cooperative-sticky")
    static: bool = False
    commit: Literal["auto", "after", "after-async", "before", "none"] = "auto"
    processing: Processing = "1ms"
    session_timeout: Duration = 45_000
    heartbeat_interval: Duration = 3_000
    max_poll_interval: Duration = 300_000
    max_poll_records: int = Field(default=500, ge=1)
    auto_commit_interval: Duration = 5_000
    metadata_max_age: Duration = 300_000
    request_timeout: Duration = 30_000
    poll: Length = 500
    revoke: Duration = 0
    """How long the listener takes to give partitions up."""
    leave: bool = True
    """Whether a consumer that is stopped tells the group; static members never do."""
    revive: Duration = 30_000
    """When a process that died of an error is started again."""
    start: Start = Start()
    reset: Literal["earliest", "latest"] = "earliest"


class Deploy(Part):
    """Restart every consumer of a group, some at a time. A batch goes ``every``; each is ``down`` for so long."""

    group: str
    batch: int = Field(default=1, ge=1)
    every: Duration
    down: Duration
    repeat: Duration = 0
    """Do it again after so long, to the horizon; 0: once."""
    crash: bool = False
    """Kill instead of stopping in good order."""


class Scale(Part):
    """Have a group run this many consumers."""

    group: str
    to: int = Field(ge=0, le=10_000)
    every: Duration = 0


class Autoscaler(Part):
    """Look at a group's lag now and then: one consumer for each so many records behind, within bounds.

    After a change nothing is changed for ``cooldown``.
    """

    group: str
    min: int = Field(default=1, ge=0)
    max: int = Field(ge=1)
    lag_per_consumer: int = Field(ge=1)
    every: Length = 15_000
    cooldown: Duration = 0


class Crash(Part):
    """Kill consumers, and start them again after a while, or never."""

    consumer: Names
    restart: Duration | None = None


class Stop(Part):
    """Stop consumers in good order, and start them again after a while, or never."""

    consumer: Names
    restart: Duration | None = None


class Pause(Part):
    """Consumers or nodes stand still, as in a long garbage collection."""

    who: Names
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Stuck(Part):
    """The user's code hangs; heartbeats go on."""

    consumer: Names
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Cut(Part):
    """Consumers cannot reach nodes. ``nodes`` empty: none of them."""

    consumer: Names
    nodes: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Reset(Part):
    """Every connection of these consumers breaks, once; they may connect again at once."""

    consumer: Names


class Loss(Part):
    """Connections break: chances for each message, before the request arrived and before the answer did."""

    requests: float = Field(default=0.0, ge=0.0, le=1.0)
    answers: float = Field(default=0.0, ge=0.0, le=1.0)
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class SlowLog(Part):
    """The offsets log takes longer, or refuses appends with an error."""

    slower: Duration = 0
    error: Literal["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR", "MESSAGE_TOO_LARGE"] | None = None
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Failover(Part):
    """A group's coordinator moves: its node crashes and comes back after ``down``, or, without, just gives it up.

    ``zombie``: the old one goes on believing in itself for so long; not with leases, where it knows by its own clock.
    ``when``: wait until the group is in this state.
    """

    group: str
    down: Duration = 0
    zombie: Duration = 0
    when: Literal["PreparingRebalance", "CompletingRebalance", "Stable"] | None = None


class Restart(Part):
    """Nodes are killed at one instant and come back after ``down``. ``nodes`` empty: all of them."""

    nodes: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    down: Duration


class Outage(Part):
    """Nodes cannot reach the store of leases and logs. ``nodes`` empty: none of them, as if it were down."""

    nodes: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    length: Duration = Field(alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Grow(Part):
    """A topic gets more partitions."""

    topic: str
    to: int = Field(ge=1, le=100_000)


class Subscribe(Part):
    """Consumers read other topics from now on."""

    consumer: Names
    topics: Names


class Flap(Part):
    """A consumer is killed and started again, over and over."""

    consumer: str
    every: Length
    down: Duration
    times: int = Field(ge=1)


class Twin(Part):
    """A second process starts with the group instance id of a consumer that runs."""

    consumer: str
    length: Duration = Field(default=0, alias="for")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Happening(Part):
    """One event of the scenario: when, and exactly one thing that happens."""

    at: Duration
    deploy: Deploy | None = None
    scale: Scale | None = None
    autoscaler: Autoscaler | None = None
    crash: Crash | None = None
    stop: Stop | None = None
    pause: Pause | None = None
    stuck: Stuck | None = None
    cut: Cut | None = None
    reset: Reset | None = None
    loss: Loss | None = None
    slow_log: SlowLog | None = None
    failover: Failover | None = None
    restart: Restart | None = None
    outage: Outage | None = None
    grow: Grow | None = None
    subscribe: Subscribe | None = None
    flap: Flap | None = None
    twin: Twin | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            what = "nothing" if not given else " and ".join(given)
            raise ValueError(f"says {what}; expected exactly one of {', '.join(KINDS)} beside 'at'")
        return self

    @property
    def kind(self) -> str:
        """The name of what happens."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def what(self) -> Any:
        """What happens."""
        return getattr(self, self.kind)


KINDS: Final = tuple(name for name in Happening.model_fields if name != "at")


class Network(Part):
    """Delays of each message one way, and chances that a connection breaks."""

    latency: Processing = "exp(2ms)"
    longest: Length = 500
    lost_requests: float = Field(default=0.0, ge=0.0, le=1.0)
    lost_answers: float = Field(default=0.0, ge=0.0, le=1.0)


def _settings(value: object) -> object:
    if isinstance(value, dict):
        Settings.model_validate(value)
    return value


class Coordinator(Part):
    """The nodes: how many, their settings under Kafka's names, and how fast their offsets log is."""

    nodes: int = Field(default=1, ge=1, le=16)
    settings: Annotated[dict[str, Any], BeforeValidator(_settings)] = {}
    log_latency: Processing = "exp(3ms)"
    notice: Duration = 2_000
    """How long it takes until a crashed node is replaced."""
    gossip: Duration = 500
    """How long it takes at the most until every node has heard of that."""
    lease: Duration = 0
    """Leadership comes from leases of this length, as with ``--store``: who does not renew one in time gives up, and
    another takes over. 0: there are none, a crashed node is replaced after ``notice``."""


class Scenario(Part):
    """The whole."""

    question: str = ""
    answer: str = ""
    horizon: Length
    seed: int = 1
    late: Duration = 10_000
    """A record that is processed later than so long after it was written counts as late."""
    topics: dict[str, Topic]
    groups: dict[str, Group]
    coordinator: Coordinator = Coordinator()
    network: Network = Network()
    events: tuple[Happening, ...] = ()

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
        for number, event in enumerate(self.events):
            self._check(number, event)
        return self

    def _check(self, number: int, event: Happening) -> None:
        what = event.what

        def mistake(key: str, problem: str) -> ScenarioMistake:
            return ScenarioMistake(("events", number, event.kind, key), f"events[{number}]: {problem}")

        group = getattr(what, "group", None)
        if group is not None and group not in self.groups:
            raise mistake("group", f"there is no group {group!r}; there are {', '.join(self.groups)}")
        key = "topic" if hasattr(what, "topic") else "topics"
        for topic in _names(getattr(what, key, ())):
            if topic not in self.topics:
                raise mistake(key, f"there is no topic {topic!r}; there are {', '.join(self.topics)}")
        key = "who" if hasattr(what, "who") else "consumer"
        for name in _names(getattr(what, key, ())):
            if not self.knows(name):
                raise mistake(key, f"there is no consumer {name!r}; they are named GROUP-NUMBER, counted from 1")
        for name in getattr(what, "nodes", ()):
            if not name.startswith("node-") or not self.knows(name):
                problem = f"there is no node {name!r}; there are node-1 to node-{self.coordinator.nodes}, "
                raise mistake("nodes", problem + "and node-of-GROUP")
        if isinstance(what, Outage) and not self.coordinator.lease:
            raise mistake("nodes", "without leases nodes need no store; say 'lease: 9s' under coordinator")
        if isinstance(what, Failover) and what.zombie and self.coordinator.lease:
            raise mistake("zombie", "a node with leases gives up by its own clock; let it pause for longer instead")
        if isinstance(what, Twin) and not self.groups[what.consumer.rpartition("-")[0]].static:
            problem = f"{what.consumer} has no group.instance.id; say 'static: true' in its group"
            raise mistake("consumer", problem)

    def check_as_written(self) -> None:
        """Refuse what can be played but says something that never happens. Raises :class:`ScenarioMistake`.

        For what people write. A sweep may well try settings with which an event comes to nothing.
        """
        for number, event in enumerate(self.events):
            if event.at > self.horizon:
                problem = f"at {show_duration(event.at)} the horizon is over, which is {show_duration(self.horizon)}"
                raise ScenarioMistake(("events", number, "at"), f"events[{number}]: {problem}")
            key = "who" if hasattr(event.what, "who") else "consumer"
            for name in _names(getattr(event.what, key, ())):
                head, _, count = name.rpartition("-")
                if head == "node" or name.startswith("node-of-"):
                    continue
                most = self._most(head)
                if int(count) > most or count != str(int(count)):
                    problem = f"there is never a consumer {name!r}; {head} has {most} of them at the most"
                    raise ScenarioMistake(("events", number, event.kind, key), f"events[{number}]: {problem}")
        self._check_growth()

    def _most(self, group_id: str) -> int:
        """How many consumers a group ever has, at the most."""
        changes = [event.what for event in self.events if getattr(event.what, "group", None) == group_id]
        scaled = [what.to for what in changes if isinstance(what, Scale)]
        scaled += [max(what.min, what.max) for what in changes if isinstance(what, Autoscaler)]
        return max([self.groups[group_id].consumers, *scaled])

    def _check_growth(self) -> None:
        partitions = {name: topic.partitions for name, topic in self.topics.items()}
        for number, event in sorted(enumerate(self.events), key=lambda each: each[1].at):
            grow = event.grow
            if grow is None:
                continue
            has = partitions[grow.topic]
            if grow.to <= has:
                problem = f"topic {grow.topic} has {has} partitions by then; expected more than that, not {grow.to}"
                raise ScenarioMistake(("events", number, "grow", "to"), f"events[{number}]: {problem}")
            partitions[grow.topic] = grow.to

    def knows(self, name: str) -> bool:
        """Whether a consumer, a node or ``node-of-GROUP`` can have this name."""
        head, _, number = name.rpartition("-")
        if head == "node":
            return number.isdecimal() and 1 <= int(number) <= self.coordinator.nodes
        if name.startswith("node-of-"):
            return name.removeprefix("node-of-") in self.groups
        return head in self.groups and number.isdecimal() and int(number) >= 1
