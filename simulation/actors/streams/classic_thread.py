"""A thread of an application that uses the classic protocol: tasks follow from the partitions that it is assigned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import CallListener
from rejoin.client.core.group.streams.tasks import StreamsTasks, TaskId, by_subtopology
from rejoin.client.core.inputs import CallbackDone, RecordRange
from rejoin.journal.events.streams_members import StreamsTasksAssigned, StreamsTasksGivenUp
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.streams.client_assignor import StreamsPartitionAssignor, ThreadClaim
from rejoin.simulation.actors.streams.exactly_once import ExactlyOnceThread
from rejoin.simulation.actors.streams.thread import StreamsThread


class ClassicThread(StreamsThread):
    """A thread whose leader assigns tasks. It reports which it has with each JoinGroup."""

    _is_shutting_down = False

    def start(self) -> None:
        if self.core is None:
            self._is_shutting_down = False
        super().start()

    def _new_core(self) -> ConsumerCore:
        assignor = StreamsPartitionAssignor(self.application, self.application.plan, self._claim, self._make_topics)
        return ConsumerCore(self.config, [assignor], self.random.random, log_end=self._log_end)

    def _claim(self) -> ThreadClaim:
        reached, ends = self.tasks.offsets()
        return ThreadClaim(
            self.name,
            self.instance.process_id,
            tuple(self.tasks.active()),
            tuple(self.tasks.standby()),
            {task: ends[task] - offset for task, offset in reached.items()},
        )

    def _make_topics(self, counts: Mapping[str, int]) -> None:
        for topic in self.application.code.repartition_topics:
            if counts.get(topic) and topic not in self.cluster.topics:
                self.cluster.create_counted_topic(topic, counts[topic])

    def _call_listener(self, effect: CallListener) -> None:
        if effect.kind == "assigned":
            self._take_assignment()
            self.step(CallbackDone())
            return
        given_up = {task for partition in effect.partitions for task in self.application.tasks_reading(partition)}
        tasks = StreamsTasks(tuple(sorted(given_up & set(self.tasks.active()))))
        if effect.kind == "lost":
            tasks = tasks._replace(standby=tuple(self.tasks.standby()))
        if effect.kind == "revoked":
            self._commit(partial(self._give_up, tasks))
        else:
            self._lose(tasks)
            self.step(CallbackDone())

    def _take_assignment(self) -> None:
        assert self.core is not None, "a thread that is down is assigned nothing"
        owned: list[TopicPartition] = self.core.assignment()
        active = {task for partition in owned for task in self.application.tasks_reading(partition)}
        planned = self.application.plan.standby.get(self.name, StreamsTasks())
        standby: list[TaskId] = [task for task in (*planned.standby, *planned.warmup) if task not in active]
        self._take(StreamsTasks(tuple(sorted(active)), tuple(sorted(standby))))
        self.emit(
            StreamsTasksAssigned(
                active=by_subtopology(active),
                standby=by_subtopology(task for task in planned.standby if task not in active),
                warmup=by_subtopology(task for task in planned.warmup if task not in active),
                **self.identity(),
            )
        )
        if self.application.plan.prober == self.name:
            at = self.world.now + self.application.code.probing_interval_ms
            generation = self.core.generation.generation_id
            self.world.at(at, self.user_lane, self._probe, (self.incarnation, generation))

    def _close(self) -> None:
        """Commit and close all tasks, then the consumer, which does not leave the group."""
        # Kafka: StreamThread.completeShutdown. A consumer that does not leave revokes nothing.
        tasks = StreamsTasks(tuple(self.tasks.active()), tuple(self.tasks.standby()))
        if self.closing or self.core is None or not tasks:
            super()._close()
        elif not self._is_shutting_down:
            self._is_shutting_down = True
            self._commit(partial(self._shut_down, tasks))

    def _on_records(self, ranges: tuple[RecordRange, ...]) -> None:
        if not self._is_shutting_down:
            super()._on_records(ranges)

    def _shut_down(self, tasks: StreamsTasks) -> None:
        self._emit_given_up("closed", tasks)
        self.close_tasks(tasks)
        super()._close()

    def _probe(self, what: tuple[int, int]) -> None:
        """Look whether warm-up tasks have caught up, unless there was a rebalance meanwhile."""
        incarnation, generation = what
        if incarnation != self.incarnation or self.core is None or self.stopping:
            return
        if self.core.generation.generation_id == generation:
            self.enforce_rebalance("Scheduled probing rebalance")

    def _give_up(self, tasks: StreamsTasks) -> None:
        self._emit_given_up("revoked", tasks)
        super()._give_up(tasks)

    def _lose(self, tasks: StreamsTasks) -> None:
        self._emit_given_up("lost", tasks)
        super()._lose(tasks)

    def _emit_given_up(self, reason: str, tasks: StreamsTasks) -> None:
        if tasks:
            active, standby = by_subtopology(tasks.active), by_subtopology(tasks.standby)
            self.emit(StreamsTasksGivenUp(reason=reason, active=active, standby=standby, **self.identity()))

    def measure(self) -> None:
        pass  # JoinGroup says how far the state is.


class ClassicExactlyOnceThread(ClassicThread, ExactlyOnceThread):
    """A thread with transactions, in a group of the classic protocol."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
