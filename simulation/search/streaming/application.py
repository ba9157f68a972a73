"""An application of several processes: its threads, what they do when, and its topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.streams.tasks import TaskIds
from rejoin.protocol.streams.topology import StreamsKeyValue
from rejoin.simulation.search.streaming.scenarios import FAULTS_MS
from rejoin.simulation.search.streaming.thread import LEAVE, LEAVE_FOR_A_MOMENT, FreeThread, Task
from rejoin.simulation.search.streaming.topologies import (
    OTHER_SOURCE,
    SHAPES,
    SOURCE,
    internal_topics,
    stateful,
    topology_of,
)

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation

GROUP: Final = "app"
_MENDED_AFTER_MS: Final = 2_000
_CALM_MS: Final = FAULTS_MS + 12_000
"""The end of everything that a move has begun."""


class FreeApplication:
    """The threads of a group, and the topics that its coordinator makes."""

    group_id: Final = GROUP

    def __init__(self, simulation: Simulation, spec: Mapping[str, Any]) -> None:
        self.simulation = simulation
        self.shape: str = spec["shape"]
        self.has_endpoints: bool = spec["endpoint"]
        self.stateful = stateful(self.shape)
        self.internal = internal_topics(self.shape)
        world = simulation.world
        simulation.cluster.same_topic_ids = True
        self.threads: list[FreeThread] = []
        for process in range(1, spec["processes"] + 1):
            for number in range(1, spec["threads"] + 1):
                name = f"thread-{process}-{number}"
                thread = FreeThread(
                    world,
                    simulation.network,
                    simulation.cluster,
                    name,
                    group_id=GROUP,
                    process_id=f"process-{process}",
                    topology=topology_of(self.shape),
                    rebalance_timeout_ms=spec["rebalance_timeout_ms"],
                    instance_id=name if spec["static"] else None,
                    has_endpoint=spec["endpoint"],
                )
                world.control(len(self.threads) * spec["start_every_ms"] + 1, partial(_start, thread))
                self.threads.append(thread)
        for move in spec["moves"]:
            world.control(move["at_ms"], self._move, move)
        world.control(_CALM_MS, self._calm)

    def tasks(self) -> frozenset[Task]:
        """All tasks, where every topic is as it should be."""
        partitions = len(self.simulation.cluster.topics[SOURCE].partitions)
        return frozenset((each.subtopology_id, index) for each in SHAPES[self.shape] for index in range(partitions))

    def when_taken(self, call: Callable[[str, str, frozenset[Task]], None]) -> None:
        """Call this with the name and the member id of a thread, and active tasks that begin to run."""
        for thread in self.threads:
            thread.on_taken.append(lambda taker, tasks: call(taker.name, taker.member_id, tasks))

    # --- topics

    def topic_made(self, name: str, partitions: int) -> None:
        """A coordinator has made a topic; the others learn of it later."""
        if name in self.internal and name not in self.simulation.cluster.topics:
            self.simulation.world.control(self.simulation.world.now + 50, self._spread, (name, partitions))

    def _spread(self, topic: tuple[str, int]) -> None:
        name, partitions = topic
        if name not in self.simulation.cluster.topics:
            self.simulation.cluster.create_topic(name, partitions, 0.0)

    def _grow(self, _: FreeThread, __: Mapping[str, Any]) -> None:
        """Give both sources one partition more, and internal topics a while later: until then they do not fit."""
        cluster = self.simulation.cluster
        for name in (SOURCE, OTHER_SOURCE):
            cluster.grow_topic(name, len(cluster.topics[name].partitions) + 1)
        self.simulation.world.control(self.simulation.world.now + _MENDED_AFTER_MS, self._mend)

    def _mend(self, _: object) -> None:
        cluster = self.simulation.cluster
        for name in sorted(self.internal):
            if name in cluster.topics:
                cluster.grow_topic(name, len(cluster.topics[SOURCE].partitions))

    # --- moves

    def _move(self, move: Mapping[str, Any]) -> None:
        number = move["thread"] - 1
        if number < len(self.threads):
            getattr(self, f"_{move['kind']}")(self.threads[number], move)

    def _crash(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        thread.stop()
        self._start_again(thread, move)

    def _leave(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        is_brief = thread.instance_id is not None and not move["for_good"]
        thread.stop(LEAVE_FOR_A_MOMENT if is_brief else LEAVE)
        self._start_again(thread, move)

    def _start_again(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        world = self.simulation.world

        def start(_: object) -> None:
            if not thread.is_up:
                if move["new_process"]:
                    thread.process_id = f"process of {thread.name} since {world.now}"
                thread.start(keeps_id=move["keeps_id"])

        world.control(world.now + move["down_ms"], start)

    def _rejoin(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        if thread.is_up:
            thread.join()

    def _lie(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        """A heartbeat of an older process: another epoch, and perhaps an id that no member has."""
        everywhere = TaskIds(subtopology_id=SHAPES[self.shape][-1].subtopology_id, partitions=(0,))
        epoch = max(1, thread.epoch + move["by"])
        if epoch != thread.epoch:
            request = StreamsGroupHeartbeatRequest(
                group_id=GROUP,
                member_id="unknown" if move["by"] == 5 else thread.member_id,
                member_epoch=epoch,
                endpoint_information_epoch=0,
                instance_id=thread.instance_id,
                active_tasks=(everywhere,),
                standby_tasks=(everywhere,),
                warmup_tasks=(),
            )
            # With the epoch before, it may pass for a repeated request, which hides tasks.
            thread.is_honest = False
            thread.send_aside(request)

    def _own_less(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        lists = thread.owned_less_one()
        if lists is not None and thread.is_up:
            thread.is_honest = False
            thread.say(**lists)

    def _hold(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        thread.holds_until = self.simulation.world.now + move["for_ms"]

    def _change(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        tag = StreamsKeyValue(key="zone", value=str(self.simulation.world.now))
        thread.say(**thread.random.choice(({"rack_id": f"r{self.simulation.world.now}"}, {"client_tags": (tag,)})))

    def _offsets(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        offsets = thread.offsets_of_tasks()
        thread.say(task_offsets=offsets, task_end_offsets=offsets)

    def _shutdown(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        thread.say(shutdown_application=True)

    def _intrude(self, thread: FreeThread, _: Mapping[str, Any]) -> None:
        """A second application with the instance id of a thread that is there."""
        intruder = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="intruder",
            member_epoch=0,
            endpoint_information_epoch=-1,
            instance_id=thread.instance_id,
            rebalance_timeout_ms=thread.rebalance_timeout_ms,
            topology=thread.topology,
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id="elsewhere",
        )
        if thread.is_up and thread.epoch > 0:
            thread.send_aside(intruder)

    def _cut(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        pairs = [(thread.name, node.name) for node in self.simulation.cluster.nodes]
        network, world = self.simulation.network, self.simulation.world
        network.block(pairs)
        world.control(world.now + move["for_ms"], lambda _: network.heal(pairs))

    def _pause(self, thread: FreeThread, move: Mapping[str, Any]) -> None:
        thread.paused_until = max(thread.paused_until, self.simulation.world.now + move["for_ms"])

    def _standbys(self, _: FreeThread, move: Mapping[str, Any]) -> None:
        self.simulation.cluster.configure_group(GROUP, {"streams.num.standby.replicas": str(move["replicas"])})

    # --- the end

    def _calm(self, _: object) -> None:
        """Everything is there from now on; threads that lied or missed a response begin anew."""
        self._mend(_)
        for thread in self.threads:
            if not thread.is_up:
                thread.start()
            elif thread.missed or not thread.is_honest:
                thread.join()


def _start(thread: FreeThread, _: object) -> None:
    thread.start()
