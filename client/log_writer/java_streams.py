"""The consumer and the thread of a Kafka Streams application, at INFO, with the streams protocol (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rejoin.client.log_writer.java_share import JavaShareLog, member_states
from rejoin.client.log_writer.writer import Line
from rejoin.journal.events import client as events
from rejoin.journal.events.streams_groups import TasksBySubtopology
from rejoin.journal.events.streams_members import StreamsTargetReceived, StreamsTaskRestored
from rejoin.journal.kafka_logs.clients.frameworks import STREAMS_LINES
from rejoin.journal.kafka_logs.clients.java import JAVA_LINES
from rejoin.journal.kafka_logs.template import Template

_PACKAGE: Final = "org.apache.kafka.clients.consumer.internals"
_TASK: Final = "org.apache.kafka.streams.processor.internals.StreamTask"
_OF_THREADS: Final = ("task_restored",)


class JavaStreamsLog(JavaShareLog):
    """The layout of :class:`JavaShareLog`, with tasks in place of partitions. Lines of a task name its thread."""

    lines_of_library = (*JAVA_LINES, *(each for each in STREAMS_LINES if each.kind in _OF_THREADS))

    def framed(self, template: Template, text: str, values: Mapping[str, Any], at_ms: int) -> str:
        if template.kind in _OF_THREADS:
            return f"[{self._stamp(at_ms)}] INFO stream-thread [{self.client_id}] {text} ({_TASK})"
        prefix = f"[Consumer clientId={self.client_id}-consumer, groupId={self.group_id}] "
        named = f"{_PACKAGE}.StreamsMembershipManager"
        return f"[{self._stamp(at_ms)}] {template.level} {prefix}{text} ({named})"

    def on_event(self, event: events.ConsumerEvent) -> Iterator[Line]:
        match event:
            case events.PartitionsAssigned() | events.PartitionsRevoked() | events.PartitionsLost():
                return
            case events.Subscribing():
                yield "subscribing", "", {"topics": ", ".join(event.topics)}
            case StreamsTargetReceived():
                yield from member_states(event.member_id, event.generation, "STABLE", "RECONCILING")
                named = {"active": _listed(event.active), "standby": _listed(event.standby)}
                yield "streams_given", "", {**named, "warmup": _listed(event.warmup)}
                yield from member_states(event.member_id, event.generation, "RECONCILING", "ACKNOWLEDGING", "STABLE")
            case StreamsTaskRestored():
                yield "task_restored", "", {"task": f"{event.subtopology_id}_{event.partition}"}
            case _:
                yield from super().on_event(event)


def _listed(tasks: TasksBySubtopology) -> str:
    return ", ".join(f"{subtopology}_{task}" for subtopology, numbers in tasks.items() for task in numbers)
