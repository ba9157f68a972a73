"""The same coordinator for tests that block: it runs on an event loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.fault_injection.fault_rules import When, WrongValue
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.coordinator.control.topic_records import StoredRecord
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS
from rejoin.coordinator.core.views import GroupView, TopicView
from rejoin.coordinator.testing.arguments import Offsets, Written
from rejoin.coordinator.testing.brokers import BlockingBrokerMethods
from rejoin.coordinator.testing.coordinator import FaultHandle, GroupCoordinator, Listed, Numbers
from rejoin.coordinator.testing.results import MISTAKES, ClockAdvance, hides_traceback
from rejoin.coordinator.testing.starting import running
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import TopicPartition

T = TypeVar("T")

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback


@contextmanager
def running_in_thread(
    *,
    clock: str = "real",
    topics: Mapping[str, int] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    socket: bool = True,
    port: int = 0,
    brokers: int = 1,
) -> Iterator[GroupCoordinator]:
    """A coordinator in a thread of its own. Its methods can be awaited on any event loop.

    For code that blocks, put :class:`BlockingGroupCoordinator` around it.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="group-coordinator", daemon=True)
    thread.start()
    started = running(clock=clock, topics=topics, settings=settings, socket=socket, port=port, brokers=brokers)
    try:
        coordinator = _wait(started.__aenter__(), loop)
        try:
            yield coordinator
        finally:
            _wait(started.__aexit__(None, None, None), loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)


def _wait(what: Any, loop: asyncio.AbstractEventLoop) -> Any:
    async def awaited() -> Any:
        return await what

    try:
        return asyncio.run_coroutine_threadsafe(awaited(), loop).result()
    except MISTAKES as error:
        raise error.with_traceback(None) from None


class BlockingFault:
    """A rule that a test made."""

    def __init__(self, fault: FaultHandle, loop: asyncio.AbstractEventLoop) -> None:
        self._fault = fault
        self._loop = loop

    @property
    def id(self) -> str:
        """Its name in the control API and in transcripts."""
        return self._fault.id

    @property
    def hits(self) -> int:
        """How many requests it was applied to."""
        return self._fault.hits

    @property
    def held(self) -> int:
        """How many requests wait at it now."""
        return self._fault.held

    def __repr__(self) -> str:
        return repr(self._fault)

    def wait(self, hits: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Return when it has so many hits. Raises NotReached."""
        _wait(self._fault.wait(hits, timeout_ms), self._loop)

    def release(self) -> int:
        """Open the barrier of a rule with ``pause``; returns how many requests that let go."""
        return int(_wait(self._fault.release(), self._loop))

    def remove(self) -> None:
        """Remove the rule; what it holds goes on."""
        _wait(self._fault.remove(), self._loop)


class BlockingGroupCoordinator(BlockingBrokerMethods):
    """Every method of :class:`GroupCoordinator`, waiting instead of awaiting."""

    behind: GroupCoordinator

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.behind = coordinator
        self._loop = coordinator.loop

    def _wait(self, what: Coroutine[Any, Any, T]) -> T:
        found: T = _wait(what, self._loop)
        return found

    @property
    def url(self) -> str:
        """Where clients find it over HTTP."""
        return self.behind.url

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT."""
        return self.behind.bootstrap_servers

    @property
    def now_ms(self) -> int:
        """The time on the coordinator's clock, ms since 1970."""
        return self.behind.now_ms

    def call(
        self, request: Request, version: int | None = None, client_id: str = "test", broker: int | None = None
    ) -> Response:
        """One of Kafka's requests, through the fault rules but without HTTP. Raises NoAnswer where it gets none.

        Of several brokers, the one that is named gets it, or else the one that leads what the request is about.
        """
        return self._wait(self.behind.call(request, version, client_id, broker))

    def group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator sees it, or none."""
        return self._wait(self.behind.group(group_id))

    def wait_for_group(
        self,
        group_id: str,
        state: str | None = None,
        members: int | None = None,
        assigned: int | None = None,
        generation: int | None = None,
        waiting: int | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> GroupView | None:
        """Wait for a group in this state, and return it; without conditions, wait until it exists.

        Raises NotReached with the last state of the group. Returns None if state="Dead" is met by a group that does not
        exist; no other condition is.
        """
        return self._wait(
            self.behind.wait_for_group(group_id, state, members, assigned, generation, waiting, timeout_ms)
        )

    def advance(self, millis: int, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass. ``settle_ms`` is real time for clients to react, whenever something fired."""
        return self._wait(self.behind.advance(millis, settle_ms))

    def advance_to_next(self, at_most_ms: int = 86_400_000) -> ClockAdvance:
        """Let time pass until a timer fires."""
        return self._wait(self.behind.advance_to_next(at_most_ms))

    def advance_until_idle(self, at_most_ms: int = 86_400_000, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass until no timer is left but the look at old offsets."""
        return self._wait(self.behind.advance_until_idle(at_most_ms, settle_ms))

    def add_fault(
        self,
        *,
        keys: Listed | Numbers | None = None,
        group: Listed | None = None,
        member: Listed | None = None,
        instance: Listed | None = None,
        client_id: Listed | None = None,
        node: Numbers | None = None,
        transactional_id: Listed | None = None,
        topic: Listed | None = None,
        partitions: Numbers | None = None,
        version: Numbers | None = None,
        count: int = 0,
        when: When | None = None,
        error: str | int | None = None,
        latency_ms: float | Mapping[str, Any] | None = None,
        pause: bool = False,
        seed: int = 0,
        cut_after_bytes: int | None = None,
        reset: bool = False,
        bytes_per_second: int | None = None,
        wrong: WrongValue | None = None,
        throttle_ms: int | None = None,
    ) -> BlockingFault:
        """Make a rule, behind those that are there; the fields are those of the control API. Raises ValueError."""
        given = {name: value for name, value in locals().items() if name != "self"}
        return BlockingFault(self._wait(self.behind.add_fault(**given)), self._loop)

    def clear_faults(self) -> None:
        """Remove every rule."""
        self._wait(self.behind.clear_faults())

    def expire(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Let a member's session run out now; returns its id."""
        return self._wait(self.behind.expire(group_id, member, instance=instance, client_id=client_id))

    def kick(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Remove a member as an administrator does; returns its id."""
        return self._wait(self.behind.kick(group_id, member, instance=instance, client_id=client_id))

    def resign(self, group: str | None = None, partition: int | None = None) -> int:
        """Lose an offsets partition, named by its number or by a group in it; returns its number."""
        return self._wait(self.behind.resign(group=group, partition=partition))

    def elect(self, group: str | None = None, partition: int | None = None) -> int:
        """Lead an offsets partition, loaded anew from the offsets log; returns its number."""
        return self._wait(self.behind.elect(group=group, partition=partition))

    def set_topic(self, topic: str, partitions: int, records_per_second: float | None = None) -> TopicView:
        """Create a topic, or let it grow to so many partitions."""
        return self._wait(self.behind.set_topic(topic, partitions, records_per_second))

    def produce(
        self, topic: str, partition: int | None, records: int | Sequence[Written], *, keys: bool = False
    ) -> TopicView:
        """Write so many records to a partition, or to every partition if it is None; or write the records of a list.

        Values of a number of records are distinct, as ``orders-0@17``; with ``keys`` they have keys, too. A record of
        a list is a value, a pair of key and value, or a mapping with key, value, headers and timestamp; without a
        partition it goes to that of its key. Where logs are synthetic, a number moves their ends on.
        """
        return self._wait(self.behind.produce(topic, partition, records, keys=keys))

    def compact(self, topic: str | None = None) -> list[str]:
        """Clean the logs of a compacted topic now, or those of all; returns the names of the topics."""
        return self._wait(self.behind.compact(topic))

    def records(
        self, topic: str, partition: int | None = None, offset: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        """The records of a topic by partition and offset, with key, value, headers and timestamp.

        ``__consumer_offsets`` is such a topic, too, with what is left of it after compaction.
        """
        return self._wait(self.behind.records(topic, partition, offset=offset, limit=limit))

    def wait_for_committed(
        self, group_id: str, offsets: Offsets, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Wait until a group has committed these offsets or later ones, and return all that it has committed.

        Offsets are mapped by topic and partition number, or by the TopicPartition of any library; or there is a list
        of objects with topic, partition and offset, such as confluent-kafka's. Raises NotReached.
        """
        return self._wait(self.behind.wait_for_committed(group_id, offsets, timeout_ms))

    def snapshot(self) -> str:
        """Keep the whole state; returns the name to restore it by."""
        return self._wait(self.behind.snapshot())

    def restore(self, snapshot: str) -> None:
        """Go back to a snapshot, in time too."""
        self._wait(self.behind.restore(snapshot))

    def reset(self) -> None:
        """Begin anew: no groups, no offsets, no rules; topics as at the start."""
        self._wait(self.behind.reset())

    def mark(self) -> int:
        """The mark of this moment, for ``since``."""
        return self._wait(self.behind.mark())

    def requests(
        self, api: str | int | None = None, client_id: str | None = None, since: int = 0
    ) -> list[RecordedRequest]:
        """What clients sent, and what they were answered: of one API or all, of one client or all.

        Without what the coordinator did by itself: the topics of the start, and what other methods write or remove.
        """
        return self._wait(self.behind.requests(api, client_id, since=since))

    def transcript(self, since: int = 0, group: str | None = None, claim: str = "") -> str:
        """What happened, as a transcript that can be replayed."""
        return self._wait(self.behind.transcript(since, group, claim))

    def broker_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """What happened, as lines of a broker's server.log of that Kafka version."""
        return self._wait(self.behind.broker_log(kafka, since, group))

    def request_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """What was asked and answered, as lines of kafka-request.log of that Kafka version."""
        return self._wait(self.behind.request_log(kafka, since, group))
