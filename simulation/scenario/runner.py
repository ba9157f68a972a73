"""Carries out the actions of a scenario, one method each: deploys, crashes, faults, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.units import format_duration
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.leased_cluster import LeasedCluster
from rejoin.simulation.actors.misbehaving_client import commit_from_outside, send_stale_heartbeat
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.access_actions import change_acls, change_quotas
from rejoin.simulation.scenario.actions import (
    Autoscale,
    ChangeAcls,
    ChangeQuotas,
    ChangeSubscription,
    ConfigureGroup,
    CrashConsumers,
    CutOff,
    DelayRequest,
    DeleteTopic,
    DuplicateInstance,
    EnforceRebalance,
    ExpireLock,
    Failover,
    FlapConsumer,
    GrowTopic,
    HangHandler,
    LoseMessages,
    MoveLeaders,
    OutsideCommits,
    PauseProcesses,
    ReleaseRecord,
    ResetConnections,
    RestartNodes,
    RollingDeploy,
    ScaleGroup,
    ScheduledAction,
    SlowLog,
    StaleHeartbeats,
    StopConsumers,
    StoreOutage,
)
from rejoin.simulation.scenario.fields import settings_as_text
from rejoin.simulation.scenario.model import any_of
from rejoin.simulation.scenario.share_actions import expire_lock, release_record

if TYPE_CHECKING:
    from rejoin.simulation.actors.node import NodeActor
    from rejoin.simulation.simulation import Simulation

_LOOK_EVERY_MS: Final = 5
"""How often a failover that waits for a state of its group checks it."""


class ActionRunner:
    """Schedules the actions of a scenario and carries them out."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self._methods: dict[type, Callable[[Any], None]] = {
            RollingDeploy: self.deploy,
            ScaleGroup: self.scale,
            Autoscale: self.autoscale,
            CrashConsumers: self.crash,
            StopConsumers: self.stop,
            PauseProcesses: self.pause,
            HangHandler: self.stuck,
            CutOff: self.cut,
            ResetConnections: self.reset,
            LoseMessages: self.loss,
            DelayRequest: self.delay,
            SlowLog: self.slow_log,
            Failover: self.failover,
            StoreOutage: self.outage,
            MoveLeaders: self.move,
            RestartNodes: self.restart,
            ConfigureGroup: self.configure,
            ChangeAcls: partial(change_acls, simulation),
            ChangeQuotas: partial(change_quotas, simulation),
            GrowTopic: self.grow,
            DeleteTopic: self.delete_topic,
            ChangeSubscription: self.subscribe,
            EnforceRebalance: self.enforce,
            FlapConsumer: self.flap,
            DuplicateInstance: self.duplicate,
            StaleHeartbeats: self.stale_heartbeats,
            OutsideCommits: self.outside_commits,
            ExpireLock: partial(expire_lock, simulation),
            ReleaseRecord: partial(release_record, simulation),
        }
        self._scaled_at: dict[str, Millis] = {}
        self._random = Random(f"{simulation.seed}/any")

    def prepare(self) -> None:
        """Schedule every action."""
        for number, event in enumerate(self.simulation.scenario.events):
            if event.on_average_every is None:
                self.world.control(event.at, self._methods[type(event.action)], event.action)
            else:
                self._at_random(
                    event, event.on_average_every, Random(f"{self.simulation.seed}/events/{number}"), event.at
                )

    def carry_out(self, action: Any) -> None:
        """Carry out an action now."""
        self._methods[type(action)](action)

    def _at_random(self, event: ScheduledAction, mean_ms: Millis, random: Random, after: Millis) -> None:
        """Schedule the next of an action's random instants."""
        at = after + max(1, round(random.expovariate(1 / mean_ms)))
        until = self.simulation.scenario.horizon if event.until is None else event.until
        if at <= until:
            self.world.control(at, lambda _: self._happen(event, mean_ms, random))

    def _happen(self, event: ScheduledAction, mean_ms: Millis, random: Random) -> None:
        self.carry_out(event.action)
        self._at_random(event, mean_ms, random, self.world.now)

    def _in(self, ms: Millis, act: Callable[[], None]) -> None:
        self.world.control(self.world.now + ms, lambda _: act())

    def _each(self, names: tuple[str, ...]) -> list[ConsumerProcess]:
        return [self.simulation.consumer(name) for name in self._names(names)]

    def _names(self, names: tuple[str, ...]) -> Iterator[str]:
        """The names; for ``any`` that of a consumer that runs, drawn now, if there is one."""
        for name in names:
            group_id = any_of(name)
            if group_id is None:
                yield name
                continue
            running = [
                each.name
                for each in self.simulation.consumers.values()
                if each.is_up and not each.is_duplicate and group_id in ("", each.config.group_id)
            ]
            if running:
                yield running[self._random.randrange(len(running))]

    def _catch_up_all(self) -> None:
        for consumer in self.simulation.consumers.values():
            consumer.catch_up()

    # -- processes

    def deploy(self, what: RollingDeploy) -> None:
        how = "killed" if what.crash else "stopped"
        members = self.simulation.members_of(what.group)[: what.count]
        change = "" if what.protocol is None else f", with group.protocol={what.protocol} from then on"
        self.simulation.announce(
            f"rolling deploy of {what.group}: {len(members)} consumers, {what.batch} at a time every "
            f"{format_duration(what.every)}, {how} and back after {format_duration(what.down)}{change}"
        )
        if what.protocol is not None:
            self.simulation.protocols[what.group] = what.protocol
        for number, consumer in enumerate(members):
            at = number // what.batch * what.every
            self._in(at, partial(self._redeploy, consumer, what))
        if what.repeat:
            self._in(what.repeat, lambda: self.deploy(what))

    def _redeploy(self, consumer: ConsumerProcess, what: RollingDeploy) -> None:
        self._bounce(consumer, what.down, what.crash)
        if what.protocol is not None:
            consumer.next_config = self.simulation.config_of(consumer, what.protocol)
        changes: dict[str, object] = {}
        if what.rename and consumer.config.group_instance_id is not None:
            changes["group_instance_id"] = f"{consumer.name}-{self._random.getrandbits(32):08x}"
        if what.assignor is not None:
            changes["partition_assignment_strategy"] = what.assignor
        if changes:
            consumer.next_config = (consumer.next_config or consumer.config).model_copy(update=changes)

    def _bounce(self, consumer: ConsumerProcess, down: Millis, crash: bool) -> None:
        """Restart a process; ``down`` counts from the moment at which it begins to stop."""
        if crash:
            consumer.crash()
        else:
            consumer.stop()
        consumer.wanted = True
        self._in(down, lambda: self._start(consumer))

    def _start(self, consumer: ConsumerProcess) -> None:
        if not consumer.wanted:
            return
        if consumer.is_up and consumer.stopping:
            # It is slow to stop, and is started when it has.
            self._in(100, lambda: self._start(consumer))
        else:
            consumer.start()

    def _start_again(self, consumer: ConsumerProcess) -> None:
        consumer.wanted = True
        self._start(consumer)

    def scale(self, what: ScaleGroup) -> None:
        members = self.simulation.members_of(what.group)
        self.simulation.announce(f"{what.group} is scaled from {len(members)} to {what.to} consumers")
        self._scale(what.group, what.to, what.every)

    def _scale(self, group_id: str, to: int, every: Millis) -> None:
        members = self.simulation.members_of(group_id)
        for number, consumer in enumerate(reversed(members[to:])):
            consumer.wanted = False
            self._in(number * every, partial(self._stop_unwanted, consumer))
        missing = to - len(members)
        number, started = 1, 0
        while started < missing:
            consumer = self.simulation.consumer(f"{group_id}-{number}")
            number += 1
            if not consumer.wanted:
                consumer.wanted = True
                self._in(started * every, partial(self._start, consumer))
                started += 1

    @staticmethod
    def _stop_unwanted(consumer: ConsumerProcess) -> None:
        if not consumer.wanted:
            consumer.stop()

    def autoscale(self, what: Autoscale) -> None:
        self.simulation.announce(
            f"an autoscaler watches {what.group} every {format_duration(what.every)}: a consumer for each "
            f"{what.lag_per_consumer} records behind, {what.min} to {what.max}"
        )
        self._in(what.every, lambda: self._autoscale(what))

    def _autoscale(self, what: Autoscale) -> None:
        lag = self.simulation.lag(what.group)
        wanted = min(what.max, max(what.min, ceil(lag / what.lag_per_consumer)))
        now = len(self.simulation.members_of(what.group))
        last = self._scaled_at.get(what.group)
        if wanted != now and (last is None or self.world.now >= last + what.cooldown):
            self._scaled_at[what.group] = self.world.now
            self.simulation.announce(
                f"the autoscaler sees {lag} records behind and goes from {now} to {wanted} consumers"
            )
            self._scale(what.group, wanted, 0)
        self._in(what.every, lambda: self._autoscale(what))

    def crash(self, what: CrashConsumers) -> None:
        for consumer in self._each(what.who):
            consumer.crash()
            if what.down is None:
                consumer.wanted = False
            else:
                consumer.wanted = True
                self._in(what.down, partial(self._start, consumer))

    def stop(self, what: StopConsumers) -> None:
        for consumer in self._each(what.who):
            consumer.stop()
            if what.down is not None:
                consumer.wanted = True
                self._in(what.down, partial(self._start, consumer))

    def flap(self, what: FlapConsumer) -> None:
        for consumer in self._each((what.who,)):
            self.simulation.announce(f"{consumer.name} flaps {what.times} times, every {format_duration(what.every)}")
            for number in range(what.times):
                self._in(number * what.every, partial(self._bounce, consumer, what.down, True))

    def duplicate(self, what: DuplicateInstance) -> None:
        duplicate = self.simulation.consumer(f"{what.who}-duplicate", like=what.who)
        self.simulation.announce(f"{duplicate.name} starts with the group.instance.id of {what.who}")
        self._start_again(duplicate)
        if what.length:
            self._in(what.length, duplicate.stop)

    def stale_heartbeats(self, what: StaleHeartbeats) -> None:
        for consumer in self._each(what.who):
            self.simulation.announce(
                f"another process heartbeats {what.times} times with the member id of {consumer.name}"
            )
            for number in range(what.times):
                self._in(number * what.every, partial(send_stale_heartbeat, self.simulation, consumer))

    def outside_commits(self, what: OutsideCommits) -> None:
        self.simulation.announce(f"a process that uses assign() commits {what.times} times under {what.group}")
        for number in range(what.times):
            self._in(number * what.every, partial(commit_from_outside, self.simulation, what.group))

    def pause(self, what: PauseProcesses) -> None:
        until = self.world.now + what.length
        for name in self._names(what.who):
            if not name.startswith("node-"):
                self.simulation.announce(f"{name} is paused for {format_duration(what.length)}")
                self.simulation.consumer(name).pause(until)
                continue
            node = self.simulation.node(name)
            if node is not None and node.is_up:
                self._catch_up_all()
                self.simulation.announce(f"{node.name} is paused for {format_duration(what.length)}")
                node.paused_until = max(node.paused_until, until)

    def stuck(self, what: HangHandler) -> None:
        for consumer in self._each(what.who):
            self.simulation.announce(f"the user's code of {consumer.name} hangs for {format_duration(what.length)}")
            consumer.get_stuck(self.world.now + what.length)

    def subscribe(self, what: ChangeSubscription) -> None:
        for consumer in self._each(what.who):
            self.simulation.announce(f"{consumer.name} subscribes to {what.regex or ', '.join(what.topics)}")
            consumer.subscribe(what.topics, what.regex)

    def enforce(self, what: EnforceRebalance) -> None:
        for consumer in self._each(what.who):
            self.simulation.announce(f"the application of {consumer.name} enforces {what.times} rebalances")
            for number in range(what.times):
                assert isinstance(consumer, ConsumerActor), "members of share groups have no rebalances"
                self._in(number * what.every, partial(consumer.enforce_rebalance, what.reason))

    # -- the network and the cluster

    def cut(self, what: CutOff) -> None:
        self._catch_up_all()
        names = list(self._names(what.who))
        pairs = [(name, node.name) for name in names for node in self._nodes(what.nodes)]
        named = ", ".join(names)
        self.simulation.announce(
            f"{named} cut off from {', '.join(what.nodes) or 'all nodes'} for {format_duration(what.length)}"
        )
        self.simulation.network.block(pairs)
        self._in(what.length, lambda: self._heal(named, pairs))

    def _heal(self, named: str, pairs: list[tuple[str, str]]) -> None:
        self.simulation.announce(f"{named} can reach the nodes again")
        self.simulation.network.heal(pairs)

    def reset(self, what: ResetConnections) -> None:
        for consumer in self._each(what.who):
            self.simulation.announce(f"every connection of {consumer.name} breaks")
            consumer.catch_up()
            consumer.reset_connections()

    def loss(self, what: LoseMessages) -> None:
        self._catch_up_all()
        network = self.simulation.network
        self.simulation.announce(
            f"connections break for {format_duration(what.length)}: before {what.requests:.0%} of the requests "
            f"and {what.answers:.0%} of the answers"
        )
        network.lost_requests += what.requests
        network.lost_answers += what.answers

        def over() -> None:
            network.lost_requests -= what.requests
            network.lost_answers -= what.answers
            # Sums of floats may leave a remainder; nothing may be lost when nothing should be.
            network.lost_requests = round(network.lost_requests, 9)
            network.lost_answers = round(network.lost_answers, 9)

        self._in(what.length, over)

    def delay(self, what: DelayRequest) -> None:
        for name in self._names(what.who):
            self.simulation.announce(f"the next {what.request} of {name} takes {format_duration(what.length)}")
            self.simulation.network.delays[name, what.request] = what.length

    def slow_log(self, what: SlowLog) -> None:
        self._catch_up_all()
        disk = self.simulation.disk
        how = f"takes {format_duration(what.slower)} longer" if what.slower else f"fails with {what.error}"
        self.simulation.announce(f"the offsets log {how} for {format_duration(what.length)}")
        disk.slower_ms += what.slower
        disk.error = ErrorCode[what.error] if what.error else disk.error

        def over() -> None:
            disk.slower_ms -= what.slower
            if what.error:
                disk.error = None

        self._in(what.length, over)

    def failover(self, what: Failover) -> None:
        node = self.simulation.cluster.leader_of(what.group)
        if what.when is not None and node is not None:
            state = node.state_of(what.group)
            if state != what.when:
                self._in(_LOOK_EVERY_MS, lambda: self.failover(what))
                return
        self._catch_up_all()
        if node is None or not node.is_up:
            return
        if what.down:
            self.simulation.announce(
                f"{node.name}, the coordinator of {what.group}, crashes and is back in {format_duration(what.down)}"
            )
            self._bounce_node(node, what.down)
        else:
            late = f", which {node.name} does not know for {format_duration(what.zombie)}" if what.zombie else ""
            self.simulation.announce(f"{what.group} gets another coordinator{late}")
            self.simulation.cluster.move(self.simulation.cluster.partition_of(what.group), what.zombie)

    def _bounce_node(self, node: NodeActor, down: Millis) -> None:
        self.simulation.network.node_down(node)
        self.simulation.cluster.crash(node)
        self._in(down, lambda: self.simulation.cluster.restart(node))

    def move(self, what: MoveLeaders) -> None:
        late = f", which the old ones do not know for {format_duration(what.zombie)}" if what.zombie else ""
        self.simulation.announce(f"{what.topic} gets other leaders{late}")
        cluster = self.simulation.cluster
        if what.topic == TRANSACTION_STATE_TOPIC:
            logs = cluster.transaction_logs
        elif what.topic == SHARE_GROUP_STATE_TOPIC:
            logs = cluster.share_state_logs()
        else:
            count = len(cluster.topics[what.topic].partitions)
            logs = [cluster.log_of(TopicPartition(what.topic, index)) for index in range(count)]
        for partition in logs:
            cluster.move(cluster.leads(partition), what.zombie)

    def restart(self, what: RestartNodes) -> None:
        self._catch_up_all()
        nodes = [node for node in self._nodes(what.nodes) if node.is_up]
        named = ", ".join(f"{name}={value}" for name, value in what.settings.items())
        self.simulation.announce(
            f"{', '.join(node.name for node in nodes) or 'no node'} killed, back in {format_duration(what.down)}"
            + (f", with {named}" if named else "")
        )
        for node in nodes:
            node.configure(what.settings)
            self._bounce_node(node, what.down)

    def outage(self, what: StoreOutage) -> None:
        cluster = self.simulation.cluster
        assert isinstance(cluster, LeasedCluster), "a scenario without leases has no outages"
        self._catch_up_all()
        nodes = self._nodes(what.nodes)
        named = ", ".join(node.name for node in nodes)
        self.simulation.announce(f"{named} cannot reach the store for {format_duration(what.length)}")
        cluster.cut_off(nodes)

        def over() -> None:
            self.simulation.announce(f"{named} can reach the store again")
            cluster.heal(nodes)

        self._in(what.length, over)

    def _nodes(self, names: tuple[str, ...]) -> list[NodeActor]:
        """The nodes of these names, once each; without names all nodes."""
        found = [self.simulation.node(name) for name in names] if names else list(self.simulation.cluster.nodes)
        return list(dict.fromkeys(node for node in found if node is not None))

    def configure(self, what: ConfigureGroup) -> None:
        self._catch_up_all()
        settings = settings_as_text(what.settings)
        named = ", ".join(f"{name}={value}" for name, value in settings.items())
        self.simulation.announce(f"{what.group} gets {named}")
        self.simulation.cluster.configure_group(what.group, settings)

    def grow(self, what: GrowTopic) -> None:
        self._catch_up_all()
        self.simulation.cluster.grow_topic(what.topic, what.to)
        self.simulation.grown(what.topic)

    def delete_topic(self, what: DeleteTopic) -> None:
        self._catch_up_all()
        self.simulation.delete_topic(what.topic)
