"""The log files that the consumers of a run would write with another client library, for ``rejoin report`` to read.

Each consumer has one file, ``GROUP/CLIENT.log``. A run begins at midnight of 1 January 2026, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rejoin.client.log_writer.libraries import COOPERATIVE, LIBRARIES, SHARE, STATIC, STREAMS
from rejoin.client.log_writer.writer import ClientLog
from rejoin.journal.events import client as client_events
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CommitSucceeded, ConsumerEvent, RecordsProcessed
from rejoin.journal.events.simulation import ConsumerStarted, TopicWritten
from rejoin.journal.events.streams_members import StreamsTargetReceived, StreamsTaskRestored
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.share.consumer import ShareConsumerActor
from rejoin.simulation.actors.streams.classic_thread import ClassicThread
from rejoin.simulation.actors.streams.thread import StreamsThread
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.protocols import protocols_of
from rejoin.simulation.scenario.share_groups import is_share_group

FIRST_MS: Final = 1_767_225_600_000
COOPERATIVE_ASSIGNOR: Final = "cooperative-sticky"
_LOGGED: Final = ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms")
LOGGED_EVENTS: Final[tuple[type, ...]] = (
    ConsumerStarted,
    TopicWritten,
    StreamsTargetReceived,
    StreamsTaskRestored,
    *(
        each
        for each in vars(client_events).values()
        if isinstance(each, type)
        and issubclass(each, ConsumerEvent)
        and each not in (RecordsProcessed, CommitSucceeded)
    ),
)
"""Events that a library may log. No library logs single records or commits that succeed."""


def not_logged(library: str, scenario: Scenario) -> str | None:
    """Why a library cannot log a scenario's consumers, or none."""
    if library not in LIBRARIES:
        return f"no such library; expected one of {', '.join(LIBRARIES)}"
    for name, group in scenario.groups.items():
        if is_share_group(group):
            if library not in SHARE:
                known = ", ".join(SHARE)
                return f"group {name} is a share group, whose consumers {library} does not log; expected one of {known}"
            continue
        if group.streams is not None and "classic" not in protocols_of(scenario, name):
            if library not in STREAMS:
                return f"group {name} is a streams group, whose members {library} does not log; expected java"
            continue
        if "consumer" in protocols_of(scenario, name):
            return (
                f"group {name} uses the consumer protocol, and only log lines of the classic protocol are known; "
                "choose a scenario whose groups are classic"
            )
        if group.static and library not in STATIC:
            return f"group {name} is static, which {library} does not log; expected one of {', '.join(sorted(STATIC))}"
        if COOPERATIVE_ASSIGNOR in _first_assignors(scenario, name) and library not in COOPERATIVE:
            return (
                f"group {name} uses {COOPERATIVE_ASSIGNOR}, which {library} does not have; expected one of "
                f"{', '.join(sorted(COOPERATIVE))}"
            )
    return None


def _first_assignors(scenario: Scenario, group_id: str) -> Iterator[str]:
    """The assignor that members of a group prefer, at first and after each deploy."""
    yield from scenario.groups[group_id].assignor[:1]
    for event in scenario.events:
        if event.deploy is not None and event.deploy.group == group_id and event.deploy.assignor:
            yield event.deploy.assignor[0]


class ClientLogs:
    """Listens to a run, and keeps the lines of every consumer until :meth:`write`."""

    def __init__(self, library: str) -> None:
        self._library = LIBRARIES[library][0]
        self._share_library = SHARE.get(library)
        self._streams_library = STREAMS.get(library, LIBRARIES[library][0])
        self._logs: dict[ConsumerProcess, ClientLog] = {}
        self._lines: dict[ConsumerProcess, list[str]] = {}
        self._partitions: dict[str, int] = {}

    def on_event(self, actor: Actor, event: Event, now: Millis) -> None:
        """Take an event."""
        at_ms = FIRST_MS + now
        if isinstance(event, TopicWritten):
            before = self._partitions.get(event.topic, event.partition_count)
            self._partitions[event.topic] = event.partition_count
            if before < event.partition_count:
                for consumer, log in self._logs.items():
                    if isinstance(consumer, ConsumerActor) and consumer.is_up and consumer.reads(event.topic):
                        resized = log.topic_resized(event.topic, before, event.partition_count, at_ms)
                        self._lines[consumer] += resized
            return
        if not isinstance(actor, ConsumerProcess):
            return
        log = self._log(actor)
        if isinstance(event, ConsumerStarted):
            self._lines[actor] += log.started(at_ms)
        elif isinstance(event, ConsumerEvent):
            self._lines[actor] += log.lines(event, at_ms)

    def _log(self, consumer: ConsumerProcess) -> ClientLog:
        log = self._logs.get(consumer)
        if log is None:
            log = self._logs[consumer] = self._new_log(consumer)
            self._lines[consumer] = []
        return log

    def _new_log(self, consumer: ConsumerProcess) -> ClientLog:
        config = consumer.config
        if isinstance(consumer, ShareConsumerActor):
            assert self._share_library is not None, "the scenario was checked"
            return self._share_library(consumer.name, config.group_id or "")
        if isinstance(consumer, StreamsThread) and not isinstance(consumer, ClassicThread):
            number = consumer.instance.threads.index(consumer) + 1
            return self._streams_library(f"{consumer.instance.name}-StreamThread-{number}", config.group_id or "")
        return self._library(
            consumer.name,
            config.group_id or "",
            instance_id=config.group_instance_id,
            settings={name.replace("_", "."): f"{getattr(config, name)}" for name in _LOGGED},
        )

    def write(self, folder: Path) -> None:
        """Write a file for each consumer."""
        for consumer, lines in self._lines.items():
            path = folder / _file_name(consumer.config.group_id or "") / f"{_file_name(consumer.name)}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _file_name(name: str) -> str:
    """A name as one part of a path."""
    return "".join(each if each.isalnum() or each in "-_." else "_" for each in name).strip(".") or "_"
