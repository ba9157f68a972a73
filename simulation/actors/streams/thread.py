"""A thread of an application: it polls for its tasks, processes, commits at intervals, and restores state.

Processing at least once: what is processed and not committed when a process dies, is processed again by the next owner
of the task. Source: Kafka's StreamThread and TaskManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import CallListener
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group.streams.tasks import NO_TASKS, StreamsTasks, TaskId
from rejoin.client.core.inputs import CallbackDone, CommitAsked, Paused, RecordRange, Resumed, Subscribed, TasksMeasured
from rejoin.journal.events.streams_members import StreamsTaskRestored
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.consumer_process import UserCode
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.streams.instance import Instance
from rejoin.simulation.actors.streams.task_manager import TaskManager, TaskRun
from rejoin.simulation.kernel import Millis, World
from rejoin.simulation.network import Network
from rejoin.simulation.topic_log import CountedLog


class StreamsThread(ConsumerActor):
    """One thread. The first thread of an instance stands for its process."""

    def __init__(
        self,
        world: World,
        network: Network,
        cluster: Cluster,
        config: ConsumerConfig,
        user_code: UserCode,
        instance: Instance,
        name: str,
    ) -> None:
        super().__init__(world, network, cluster, config, user_code, name)
        code = instance.application.code
        self.subscribed = Subscribed((*code.source_topics, *code.repartition_topics))
        self.instance = instance
        self.application = instance.application
        instance.threads.append(self)
        self.tasks = TaskManager(self.application, instance.directory, self._wake_restoring, self._on_running)
        self._is_group_ready = False
        self._commit_at: Millis = 0
        self._has_uncommitted = False

    @property
    def _others(self) -> list[StreamsThread]:
        threads = self.instance.threads
        return threads[1:] if self is threads[0] else []

    # -- the process

    def start(self) -> None:
        if self.core is None:
            self.instance.begin(self)
            self._is_group_ready = False
            self._has_uncommitted = False
            self._commit_at = self.world.now + self.application.code.commit_interval_ms
        super().start()
        for each in self._others:
            each.start()

    def _new_core(self) -> ConsumerCore:
        return ConsumerCore(
            self.config,
            [],
            self.random.random,
            log_end=self._log_end,
            member_id=self._own_member_id(),
            application=self.instance.as_member(),
        )

    def crash(self) -> None:
        if self.core is not None:
            self.instance.crash(self)
        super().crash()

    def _die(self, error: Exception) -> None:
        # Kafka: an exception that no handler takes ends the whole client, and leaves its members in the group.
        self.instance.crash(self)
        super()._die(error)
        for each in self._others:
            each.wanted = False

    def stop(self) -> None:
        super().stop()
        for each in self._others:
            each.stop()

    def pause(self, until: Millis) -> None:
        super().pause(until)
        for each in self._others:
            each.pause(until)

    def get_stuck(self, until: Millis) -> None:
        super().get_stuck(until)
        for each in self._others:
            each.get_stuck(until)

    def reset_connections(self) -> None:
        super().reset_connections()
        for each in self._others:
            each.reset_connections()

    def in_hand(self) -> list[RecordRange]:
        return [*super().in_hand(), *(taken for each in self._others for taken in each.in_hand())]

    # -- tasks

    def _call_listener(self, effect: CallListener) -> None:
        tasks = effect.tasks or NO_TASKS
        match effect.kind:
            case "revoked":
                self._commit(lambda: self._give_up(tasks))
            case "lost":
                self._lose(tasks)
                self.step(CallbackDone())
            case _:
                self._take(tasks.running(), is_group_ready=effect.is_group_ready)
                self.step(CallbackDone())

    def _give_up(self, tasks: StreamsTasks) -> None:
        self.close_tasks(tasks)
        self.measure()
        self.step(CallbackDone())

    def close_tasks(self, tasks: StreamsTasks) -> None:
        """Close tasks cleanly, and go on restoring others."""
        self.tasks.close([*tasks.active, *tasks.standby, *tasks.warmup], self.world.now)
        self.tasks.elapsed(self.world.now)

    def _lose(self, tasks: StreamsTasks) -> None:
        """Close tasks of a member that is out of the group: nothing of them can be committed."""
        self.tasks.close([*tasks.active, *tasks.standby, *tasks.warmup], self.world.now, is_clean=False)
        self._has_uncommitted = False

    def _take(self, tasks: StreamsTasks, *, is_group_ready: bool = True) -> None:
        self._is_group_ready = is_group_ready
        self.tasks.take(tasks.active, (*tasks.standby, *tasks.warmup), self.world.now)
        self.pause_what_waits()
        self.measure()

    def pause_what_waits(self) -> None:
        """Read the partitions of tasks that run, and no others."""
        assert self.core is not None, "a thread that is down has no partitions"
        owned = self.core.assignment()
        ready = tuple(partition for partition in owned if self._is_group_ready and self._is_read(partition))
        self.step(Paused(tuple(partition for partition in owned if partition not in ready)))
        self.step(Resumed(ready))

    def _is_read(self, partition: TopicPartition) -> bool:
        return all(self.tasks.is_running(task) for task in self.application.tasks_reading(partition))

    def measure(self) -> None:
        """Let the member know how far the state of its tasks is."""
        if self.core is not None and not self.closing:
            self.step(TasksMeasured(*self.tasks.offsets()))

    def _wake_restoring(self, at: Millis) -> None:
        self.world.at(at, self.user_lane, self._restored, self.incarnation)

    def _restored(self, incarnation: int) -> None:
        """A restoration may have ended. It goes on in a thread of its own while the user's code is busy."""
        if incarnation != self.incarnation or self.later(self._restored, incarnation, self.user_lane):
            return
        self.tasks.elapsed(self.world.now)
        self.pause_what_waits()

    def _on_running(self, run: TaskRun) -> None:
        self.emit(
            StreamsTaskRestored(
                **self.identity(),
                subtopology_id=run.task.subtopology,
                partition=run.task.partition,
                state_from=run.state_from,
                restored_records=run.restored * self.application.changelogs_of(run.task),
                restore_ms=self.world.now - run.since,
            )
        )

    def identity(self) -> dict[str, Any]:
        """The thread as events name it."""
        assert self.core is not None, "a thread that is down emits nothing about tasks"
        generation = self.core.generation
        return {
            "client_id": self.name,
            "group_id": self.config.group_id,
            "group_instance_id": self.config.group_instance_id,
            "member_id": generation.member_id,
            "generation": generation.generation_id,
        }

    # -- records

    def _on_records(self, ranges: tuple[RecordRange, ...]) -> None:
        if self.closing or ranges:
            super()._on_records(ranges)
        else:
            self._finished()

    def _processed(self, taken: RecordRange) -> None:
        if self._hand and self._hand[0] == taken:
            self._has_uncommitted = True
            self.write_results(taken)
        super()._processed(taken)

    def write_results(self, taken: RecordRange) -> None:
        """Update the state of the task that has processed records, and write what it sends on."""
        self.write(*self.results_of([taken]))

    def results_of(self, ranges: Iterable[RecordRange]) -> tuple[Counter[TaskId], Counter[TopicPartition]]:
        """Updates of state by task, and records by repartition partition, that come of records."""
        updates: Counter[TaskId] = Counter()
        written: Counter[TopicPartition] = Counter()
        for taken in ranges:
            for task in self.application.tasks_reading(TopicPartition(taken.topic, taken.partition)):
                part = self.application.code.part(task.subtopology)
                if part.stores:
                    updates[task] += taken.end - taken.start
                for topic in part.writes:
                    count = len(self.cluster.topics[topic].partitions)
                    for offset in range(taken.start, taken.end):
                        written[TopicPartition(topic, (offset + taken.partition) % count)] += 1
        return updates, written

    def write(self, updates: Counter[TaskId], written: Counter[TopicPartition]) -> None:
        """Append to changelogs and repartition topics."""
        for task, count in updates.items():
            self.application.append(task, count)
        for (topic, partition), count in written.items():
            log = self.cluster.topics[topic]
            assert isinstance(log, CountedLog), "applications write to repartition topics only"
            log.append(partition, count, self.world.now)

    # -- committing

    def _finished(self) -> None:
        if self.world.now >= self._commit_at and not self.stopping:
            self._commit(self._poll)
        else:
            self._poll()

    def _commit(self, then: Callable[[], None]) -> None:
        """Commit what is processed, if anything is, and go on."""
        self._commit_at = self.world.now + self.application.code.commit_interval_ms
        if not self._has_uncommitted:
            self.tasks.checkpoint()
            self.measure()
            then()
            return
        incarnation = self.incarnation

        def committed(error: KafkaError | None) -> None:
            if incarnation == self.incarnation and self.core is not None:
                self._after_commit(error)
                then()

        self._has_uncommitted = False
        self.step(CommitAsked(committed))

    def _after_commit(self, error: KafkaError | None) -> None:
        if error is None:
            self.tasks.checkpoint()
            self.measure()
        else:
            # Kafka: TaskMigratedException; the heartbeat brings the rest. What was processed is processed again.
            self._has_uncommitted = True
