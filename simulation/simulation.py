"""One run of a scenario: its world, all actors, and the listeners."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from rejoin.client.config import ConsumerConfig
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.coordinator.config import Settings
from rejoin.journal.events.base import Event
from rejoin.journal.events.simulation import ConsumerStarted, ScenarioAction, TopicWritten
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.consumer_process import ConsumerProcess, UserCode
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.leased_cluster import LeasedCluster
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.actors.producers import Load, ProducerActor
from rejoin.simulation.actors.readers import ReaderActor
from rejoin.simulation.actors.share.consumer import ShareConsumerActor
from rejoin.simulation.actors.share.poison import poison_of
from rejoin.simulation.actors.streams.application import Application
from rejoin.simulation.actors.transactional_transformers import TransactionalTransformActor
from rejoin.simulation.actors.transformers import TransformActor, TransformCode
from rejoin.simulation.disk import Disk
from rejoin.simulation.explore.canonical.symmetry import symmetric_groups
from rejoin.simulation.explore.choosing import played
from rejoin.simulation.explore.following import FollowingWorld
from rejoin.simulation.idle import IdleSkipper
from rejoin.simulation.kernel import Actor, Listener, Millis, SelectiveListener, World, merged
from rejoin.simulation.network import Latency, Network
from rejoin.simulation.output.accounting import Accounting
from rejoin.simulation.output.log_ends import LogEnds
from rejoin.simulation.output.ownership import Ownership
from rejoin.simulation.output.share_records import ShareAccounting
from rejoin.simulation.output.streams_tasks import TaskAccounting
from rejoin.simulation.scenario.fields import settings_as_text
from rejoin.simulation.scenario.model import CoordinatorSpec, GroupSpec, Scenario
from rejoin.simulation.scenario.protocols import Protocol, protocols_of, settings_of_group
from rejoin.simulation.scenario.runner import ActionRunner
from rejoin.simulation.scenario.share_groups import is_share_group, share_groups
from rejoin.simulation.scenario.share_processes import share_code_of, share_config_of, shared_topics
from rejoin.simulation.scenario.streams.groups import applications
from rejoin.simulation.scenario.streams.processes import application_code, instance_of
from rejoin.simulation.scenario.writers import ProducerSpec, ReaderSpec

_COLLECT_EVERY: Final = 100_000
"""How many objects may be allocated before Python looks for reference cycles."""

DEFAULTS: Final[Mapping[str, Any]] = {"auto.create.topics.enable": False}
"""Settings of nodes that differ from Kafka's defaults: no consumer makes a topic that is not there yet, or is gone."""


class Operator(Actor):
    """Deploys, scales and breaks things, and emits what it does to the others."""


class Simulation:
    """One run of a scenario. With ``skip`` idle intervals are not played; the events are the same."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int | None = None,
        *,
        skip: bool = True,
        keep: bool = False,
        listeners: Iterable[Listener | SelectiveListener] = (),
        world: World | None = None,
    ) -> None:
        original = scenario
        if world is None and scenario.explore is not None and scenario.explore.path is not None:
            scenario, world, skip = played(scenario), FollowingWorld(), False
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.world = world = World(self.seed) if world is None else world
        self.begins = world.now
        """The instant from which the scenario counts its times."""
        self.operator = Operator(world, "outside")
        settings = Settings.model_validate({**DEFAULTS, **scenario.coordinator.settings})
        network, coordinator = scenario.network, scenario.coordinator
        self.network = Network(world, Latency(world.random, _draw(network.latency), network.longest))
        self.network.lost_requests = network.lost_requests
        self.network.lost_answers = network.lost_answers
        self.disk = Disk(world, _draw(coordinator.log_latency))
        self.cluster = _cluster(world, self.disk, coordinator, settings)
        self.consumers: dict[str, ConsumerProcess] = {}
        self.accounting = Accounting(self._written_by, scenario.late)
        self.log_ends = LogEnds(self.cluster, scenario.written_topics)
        self.shares = ShareAccounting(self.log_ends.end, scenario.late)
        self.ownership = Ownership(keep=keep)
        self.tasks = TaskAccounting()
        self._handlers = merged(
            self.accounting.handlers, self.shares.handlers, self.ownership.handlers, self.tasks.handlers
        )
        self.protocols: dict[str, Protocol] = {name: group.protocol for name, group in scenario.groups.items()}
        """By group: the protocol that consumers start with by now."""
        self.applications = {
            name: Application(application_code(name, group)) for name, group in applications(scenario).items()
        }
        self.producers: dict[str, list[ProducerActor]] = {}
        self.readers: dict[str, ReaderActor] = {}
        self.is_poison = poison_of(self.seed, {name: topic.poison for name, topic in scenario.topics.items()})
        self.idle = IdleSkipper(self) if skip and _has_idle_time(scenario) else None
        self._begun: dict[str, None] = {}
        world.listen(self._on_start, [ConsumerStarted])
        world.listen(self._on_counted, self._handlers)
        for listener in listeners:
            if isinstance(listener, SelectiveListener):
                world.listen(*listener)
            else:
                world.listen(listener)
        self.actions = ActionRunner(self)
        if isinstance(world, FollowingWorld):
            world.follow(original, self)

    # -- running

    def begin(self) -> None:
        """Start the cluster and schedule the consumers and all actions."""
        topics = self.scenario.topics
        written = {name: topics[name].partitions for name in self.scenario.written_topics}
        # Members of consumer groups name topics by their ids.
        if any(protocols_of(self.scenario, group_id).keys() - {"classic"} for group_id in self.scenario.groups):
            self.cluster.same_topic_ids = True
        shares = shared_topics(self.scenario)
        self.cluster.start(list(self.scenario.groups), written, self.scenario.transactional_ids(), shares)
        for name, topic in topics.items():
            if topic.created:
                self.world.control(self.begins + topic.created, self._create_topic, name)
            else:
                self._create_topic(name)
        for group_id, group in self.scenario.groups.items():
            settings = settings_of_group(group)
            if settings:
                self.cluster.configure_group(group_id, settings_as_text(settings))
        for group_id, group in self.scenario.groups.items():
            for number in range(1, group.consumers + 1):
                consumer = self.consumer(f"{group_id}-{number}")
                consumer.wanted = True
                at = self.begins + group.start.after + (number - 1) * group.start.every
                self.world.control(at, self._first_start, consumer)
        for name, spec in self.scenario.producers.items():
            for number in range(1, spec.producers + 1):
                producer = self._producer(name, spec, number)
                at = self.begins + spec.start.after + (number - 1) * spec.start.every
                self.world.control(at, partial(_start, producer))
        for name, reader_spec in self.scenario.readers.items():
            at = self.begins + reader_spec.start.after
            self.world.control(at, partial(_start, self._reader(name, reader_spec)))
        self.actions.prepare()

    def _create_topic(self, name: str) -> None:
        topic = self.scenario.topics[name]
        if topic.created:
            for consumer in self.consumers.values():
                consumer.catch_up()
            self.announce(f"topic {name} is created, with {topic.partitions} partitions")
        until = None if topic.until is None else self.begins + topic.until
        self.cluster.create_topic(name, topic.partitions, topic.records_per_second, until)
        self.grown(name)

    def run(self, on_progress: Callable[[Millis], None] | None = None) -> None:
        """Play to the horizon."""
        before = gc.get_threshold()
        # Hardly anything here is part of a reference cycle; looking for cycles took a fifth of the time.
        gc.set_threshold(_COLLECT_EVERY, *before[1:])
        try:
            self._run(on_progress)
        finally:
            gc.set_threshold(*before)

    def _run(self, on_progress: Callable[[Millis], None] | None) -> None:
        self.begin()
        horizon = self.scenario.horizon
        if on_progress is None:
            self.world.run(horizon)
        else:
            step = max(1, horizon // 200)
            for until in range(step, horizon + step, step):
                self.world.run(min(until, horizon))
                on_progress(self.world.now)
        self.finish()

    def finish(self) -> None:
        """End the run: close what is open in the accounts."""
        if self.idle is not None:
            self.idle.resume_all()
        for consumer in self.consumers.values():
            # What is in hand at the horizon is neither processed nor lost.
            for taken in consumer.in_hand():
                ledger = self.accounting.ledgers.get((consumer.config.group_id or "", taken.topic, taken.partition))
                if ledger is not None:
                    before = ledger.processed, ledger.twice
                    ledger.process(taken.start, taken.end)
                    ledger.processed, ledger.twice = before
        self.ownership.finish(self.world.now)

    # -- actors

    def consumer(self, name: str, like: str | None = None) -> ConsumerProcess:
        """A consumer's process by its name, made on first use. ``like``: the consumer whose instance id it takes."""
        found = self.consumers.get(name)
        if found is None:
            original = name if like is None else like
            group_id = original.rpartition("-")[0]
            group = self.scenario.groups[group_id]
            found = self._process(group_id, group, name, original)
            if self.idle is not None and isinstance(found, ConsumerActor):
                found.on_step = self.idle.consider
                found.on_resume = self.idle.resume
            found.is_duplicate = like is not None
            if group_id in symmetric_groups(self.scenario):
                found.client_id = group_id
            self.consumers[name] = found
        return found

    def config_of(self, consumer: ConsumerProcess, protocol: Protocol) -> ConsumerConfig:
        """The settings of a consumer that uses a protocol from now on."""
        group_id = consumer.config.group_id or ""
        original = consumer.config.group_instance_id or consumer.name
        return config_of(group_id, self.scenario.groups[group_id], consumer.name, original, protocol)

    def _process(self, group_id: str, group: GroupSpec, name: str, original: str) -> ConsumerProcess:
        if group.streams is not None:
            config = config_of(group_id, group, name, original, self.protocols[group_id])
            return instance_of(self, self.applications[group_id], config, user_code_of(group), name)
        if not is_share_group(group):
            config = config_of(group_id, group, name, original, self.protocols[group_id])
            return self._consumer(config, group, name, original)
        return ShareConsumerActor(
            self.world,
            self.network,
            self.cluster,
            share_config_of(group_id, group, name),
            user_code_of(group),
            share_code_of(group),
            self.is_poison,
            name,
        )

    def _consumer(self, config: ConsumerConfig, group: GroupSpec, name: str, original: str) -> ConsumerActor:
        user_code, spec = user_code_of(group), group.transform
        if spec is None:
            return ConsumerActor(self.world, self.network, self.cluster, config, user_code, name)
        transform = TransformCode(
            spec.to,
            spec.config,
            keys=spec.keys,
            records=spec.records,
            aborts=spec.aborts,
            commit_interval_ms=spec.commit_interval,
            id_per_partition=spec.transactional_id == "partition",
            fences_by_group=spec.group_metadata,
            outputs=spec.outputs,
            partitions=self.scenario.topics[spec.to].partitions,
        )
        if group.commit != "transaction":
            return TransformActor(self.world, self.network, self.cluster, config, user_code, transform, name)
        made = TransactionalTransformActor(self.world, self.network, self.cluster, config, user_code, transform, name)
        made.transactional_id = original
        return made

    def _reader(self, name: str, spec: ReaderSpec) -> ReaderActor:
        topics = self.scenario.topics
        partitions = [
            TopicPartition(topic, index) for topic in spec.topics for index in range(topics[topic].partitions)
        ]
        made = ReaderActor(
            self.world,
            self.network,
            self.cluster,
            _config_of_reader(name, spec),
            tuple(partitions),
            name,
            spec.end_offsets,
        )
        self.readers[name] = made
        return made

    def _producer(self, name: str, spec: ProducerSpec, number: int) -> ProducerActor:
        client_id = f"{name}-{number}"
        until = self.begins + (self.scenario.horizon if spec.until is None else spec.until)
        load = Load(spec.topics, spec.records_per_second, spec.keys, until)
        made = ProducerActor(self.world, self.network, self.cluster, spec.config(client_id), load, client_id)
        self.producers.setdefault(name, []).append(made)
        return made

    def node(self, name: str) -> NodeActor | None:
        """A node by its name; ``node-of-GROUP`` is the one that leads the group's offsets partition, if any does."""
        if name.startswith("node-of-"):
            return self.cluster.leader_of(name.removeprefix("node-of-"))
        return self.cluster.nodes[int(name.removeprefix("node-")) - 1]

    def members_of(self, group_id: str) -> list[ConsumerProcess]:
        """The consumers of a group that should run, in the order in which they were made; duplicates do not count."""
        return [
            each
            for each in self.consumers.values()
            if each.config.group_id == group_id and each.wanted and not each.is_duplicate
        ]

    def _first_start(self, consumer: ConsumerProcess) -> None:
        if consumer.wanted:
            consumer.start()

    # -- events

    def announce(self, what: str) -> None:
        """Emit what is being done from outside."""
        self.operator.emit(ScenarioAction(action=what))

    def _on_start(self, _: Actor, event: Event, now: Millis) -> None:
        assert isinstance(event, ConsumerStarted)
        if event.group_id not in self._begun:
            self._begun[event.group_id] = None
            for topic in self.scenario.topics_of(event.group_id):
                if topic in self.cluster.topics:
                    self.ownership.expect(event.group_id, topic, len(self.cluster.topics[topic].partitions), now)

    def _on_counted(self, _: Actor, event: Event, now: Millis) -> None:
        self._handlers[type(event)](event, now)

    def grown(self, topic: str) -> None:
        """A topic is there, or has grown: its new partitions should be owned, too."""
        self._written(topic)
        for group_id in self._begun:
            if topic in self.scenario.topics_of(group_id):
                count = len(self.cluster.topics[topic].partitions)
                self.ownership.expect(group_id, topic, count, self.world.now)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic: its partitions should have no owners any more."""
        self.announce(f"topic {topic} is deleted")
        self.cluster.delete_topic(topic)
        self.ownership.end(topic, self.world.now)
        for consumer in self.consumers.values():
            if isinstance(consumer, ConsumerActor):
                consumer.topic_deleted(topic)

    def _written(self, topic: str) -> None:
        log = self.cluster.topics[topic]
        partitions, rate = len(log.partitions), log.records_per_second
        self.operator.emit(TopicWritten(topic=topic, partition_count=partitions, records_per_second=rate))

    def _written_by(self, topic: str, partition: int, at: Millis) -> int:
        return self.cluster.topics[topic].end(partition, at)

    def lag(self, group_id: str) -> int:
        """How many records are written and not committed, or in a share group not accepted or archived."""
        behind, now = 0, self.world.now
        shares = is_share_group(self.scenario.groups[group_id])
        for topic in self.scenario.topics_of(group_id):
            if self.cluster.topics[topic].is_gone:
                continue
            for index in range(len(self.cluster.topics[topic].partitions)):
                if shares:
                    behind += max(0, self.log_ends.end(topic, index, now) - self.shares.settled(group_id, topic, index))
                    continue
                ledger = self.accounting.ledgers.get((group_id, topic, index))
                committed = 0 if ledger is None else (ledger.committed or 0)
                behind += max(0, self.cluster.topics[topic].end(index, now) - committed)
        return behind


def _cluster(world: World, disk: Disk, how: CoordinatorSpec, settings: Settings) -> Cluster:
    if how.lease:
        return LeasedCluster(world, disk, how.nodes, settings, how.gossip, how.lease)
    return Cluster(world, disk, how.nodes, settings, how.notice, how.gossip)


def config_of(group_id: str, group: GroupSpec, name: str, original: str, protocol: Protocol) -> ConsumerConfig:
    """The settings of one consumer of a group. In a consumer group some are the coordinator's."""
    if protocol == "classic":
        its_own: dict[str, Any] = {
            "session_timeout_ms": group.session_timeout,
            "heartbeat_interval_ms": group.heartbeat_interval,
            "partition_assignment_strategy": group.assignor,
        }
    else:
        its_own = {"group_protocol": "consumer", "group_remote_assignor": group.remote_assignor}
    if group.streams is not None:
        # Kafka: StreamsConfig. Threads commit themselves, and internal topics are made for them.
        its_own |= {"allow_auto_create_topics": False}
    # Kafka: in the classic protocol threads do not leave the group when they are closed.
    leaves = group.leave and not (group.streams is not None and protocol == "classic")
    return ConsumerConfig(
        **its_own,
        group_id=group_id,
        client_id=name,
        group_instance_id=original if group.static else None,
        max_poll_interval_ms=group.max_poll_interval,
        max_poll_records=group.max_poll_records,
        enable_auto_commit=group.commit == "auto" and group.streams is None,
        auto_commit_interval_ms=group.auto_commit_interval,
        metadata_max_age_ms=group.metadata_max_age,
        fetch_max_wait_ms=group.fetch_max_wait,
        request_timeout_ms=group.request_timeout,
        auto_offset_reset=group.reset,
        internal_leave_group_on_close=leaves,
    )


def _config_of_reader(name: str, spec: ReaderSpec) -> ConsumerConfig:
    return ConsumerConfig(
        client_id=name,
        isolation_level=spec.isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        request_timeout_ms=spec.request_timeout,
        metadata_max_age_ms=spec.metadata_max_age,
        fetch_max_wait_ms=spec.fetch_max_wait,
    )


def user_code_of(group: GroupSpec) -> UserCode:
    """The user's code of a group."""
    return UserCode(
        topics=group.topics,
        commit="none" if group.streams is not None else group.commit,
        processing=parse_processing_time(group.processing),
        poll_ms=group.poll,
        revoke_ms=group.revoke,
        assign_ms=group.assign,
        revive_ms=group.revive,
        regex=group.regex,
    )


def _start(process: ProducerActor | ReaderActor, _: object) -> None:
    process.start()


def _has_idle_time(scenario: Scenario) -> bool:
    """Whether nothing happens for long in this scenario: where records are written, something is always under way."""
    if scenario.written_topics or share_groups(scenario) or applications(scenario):
        return False
    if any(event.delete_topic is not None for event in scenario.events):
        return False
    return not any(topic.until is not None for topic in scenario.topics.values())


def _draw(text: str) -> Callable[[Random], float]:
    return parse_processing_time(text).draw
