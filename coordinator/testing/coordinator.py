"""The coordinator of a test, and everything that a test can do with it, as ``async`` methods.

The methods may be awaited on any event loop: where it is not the coordinator's own, they hop over to it and back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.control.admin_actions import CompactionScope, MemberKey, PartitionKey, SnapshotKey, TopicTarget
from rejoin.coordinator.control.broker_actions import LedPartition, LinkEnds, NewLeader
from rejoin.coordinator.control.clock_driver import Advance
from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.errors import ControlError
from rejoin.coordinator.control.evidence import LogQuery, TranscriptQuery
from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule, When, WrongValue
from rejoin.coordinator.control.fault_injection.faults import Fault
from rejoin.coordinator.control.sent_requests import RecordedRequest, RequestsQuery
from rejoin.coordinator.control.topic_records import NewRecords, RecordsQuery, StoredRecord
from rejoin.coordinator.control.waiting import DEFAULT_TIMEOUT_MS, GroupCondition, HitCount, OffsetsCondition
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.views import GroupView, TopicView
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.pending_reply import NoReply
from rejoin.coordinator.service.app import App
from rejoin.coordinator.testing.arguments import Offsets, Written, all_written, check_call, check_type, wanted_offsets
from rejoin.coordinator.testing.brokers import BrokerMethods
from rejoin.coordinator.testing.calls import Calls, watch_calls
from rejoin.coordinator.testing.results import (
    MISTAKES,
    ClockAdvance,
    NoAnswer,
    OperationRefused,
    hides_traceback,
    raised,
)
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.validation import sentence

T = TypeVar("T")

_ARGUMENTS: Final[dict[str, type[BaseModel]]] = {
    model.__name__: model
    for model in (
        Advance,
        CompactionScope,
        FaultRule,
        GroupCondition,
        HitCount,
        LedPartition,
        LinkEnds,
        LogQuery,
        MemberKey,
        NewLeader,
        NewRecords,
        OffsetsCondition,
        PartitionKey,
        RecordsQuery,
        RequestsQuery,
        Settings,
        SnapshotKey,
        TopicTarget,
        TranscriptQuery,
    )
}
"""The models that check the arguments of the methods."""

# For pytest: an error of the user is shown at the line of the test that made it.
__tracebackhide__ = hides_traceback

Listed = str | Sequence[str]
Numbers = int | Sequence[int]


@watch_calls
class FaultHandle:
    """A fault rule of a test."""

    def __init__(self, coordinator: GroupCoordinator, fault: Fault) -> None:
        self.calls = coordinator.calls
        self._coordinator = coordinator
        self._fault = fault

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

    async def wait(self, hits: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Return when it has so many hits. Raises NotReached."""

        async def wait(control: Control) -> None:
            wanted = HitCount(hits=hits, timeout_ms=timeout_ms)
            await control.wait_for_fault(self._fault, wanted.hits, wanted.timeout_ms)

        await self._coordinator.do(wait)

    async def release(self) -> int:
        """Open the barrier of a rule with ``pause``; returns how many requests that let go."""

        async def release(_: Control) -> int:
            return self._fault.release()

        return await self._coordinator.do(release)

    async def remove(self) -> None:
        """Remove the rule; what it holds goes on."""

        async def remove(control: Control) -> None:
            control.faults.remove(self._fault)

        await self._coordinator.do(remove)


@watch_calls
class GroupCoordinator(BrokerMethods):
    """A running coordinator. Its ``async`` methods must be awaited: a call that is not is an error at the end."""

    def __init__(self, app: App | BrokerCluster, loop: asyncio.AbstractEventLoop, has_socket: bool) -> None:
        assert app.control is not None, "a coordinator for tests is controlled"
        self.app = app
        self._control = app.control
        self.loop = loop
        self.calls = Calls()
        self._has_socket = has_socket

    async def do(self, what: Callable[[Control], Coroutine[Any, Any, T]]) -> T:
        """Do something on the coordinator's own event loop. Raises OperationRefused and NotReached."""
        try:
            if asyncio.get_running_loop() is self.loop:
                return await what(self._control)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what(self._control), self.loop))
        except ControlError as error:
            raise raised(error) from None
        except ValidationError as problem:
            raise ValueError(sentence(problem, _ARGUMENTS[problem.title])) from None
        except MISTAKES as error:
            raise error.with_traceback(None) from None

    # --- where it is

    @property
    def url(self) -> str:
        """Where clients find it over HTTP."""
        self._check_socket()
        return self.app.url

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients of any language connect: their ``bootstrap.servers``."""
        self._check_socket()
        return self.app.bootstrap_servers

    def _check_socket(self) -> None:
        if not self._has_socket:
            raise OperationRefused(
                "this coordinator has no socket, and so no address; start it without socket=False, or give consumers "
                "the transport of rejoin.client.transports.in_process"
            )

    @property
    def now_ms(self) -> int:
        """The time on the coordinator's clock, ms since 1970."""
        return self._control.clock.now()

    # --- asking

    async def call(
        self, request: Request, version: int | None = None, client_id: str = "test", broker: int | None = None
    ) -> Response:
        """One of Kafka's requests, through the fault rules but without HTTP. Raises NoAnswer where it gets none.

        Of several brokers, the one that is named gets it, or else the one that leads what the request is about.
        """
        check_call(request, version, client_id, broker)
        api = BY_REQUEST[type(request)]
        wanted = api.default_version if version is None else version
        if not api.supports(wanted):
            raise ValueError(f"{api.name} has versions {api.min_version} to {api.max_version}, not {wanted}")
        request.check_version(wanted)

        async def ask(control: Control) -> Response:
            try:
                pending = control.submit(request, Context(wanted, client_id), broker)
                answer = await pending.answer()
                if pending.delivery is not None and pending.delivery.is_cut:
                    raise NoReply
            except NoReply:
                raise NoAnswer(f"{api.name} of {client_id!r} got no answer") from None
            if answer is None:
                raise NoAnswer(f"the coordinator failed over a {api.name}")
            return answer

        return await self.do(ask)

    async def group(self, group_id: str) -> GroupView | None:
        """A group as its coordinator sees it, or none."""
        check_type("group_id", group_id, str)

        async def look(control: Control) -> GroupView | None:
            return control.describe_group(group_id)

        return await self.do(look)

    async def wait_for_group(
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

        async def wait(control: Control) -> GroupView | None:
            wanted = GroupCondition(
                group=group_id,
                state=state,
                members=members,
                assigned=assigned,
                generation=generation,
                waiting=waiting,
                timeout_ms=timeout_ms,
            )
            return await control.groups.wait(wanted)

        return await self.do(wait)

    # --- the clock

    async def advance(self, millis: int, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass. ``settle_ms`` is real time for clients to react, whenever something fired."""
        return await self._advance(advance_ms=millis, settle_ms=settle_ms)

    async def advance_to_next(self, at_most_ms: int = 86_400_000) -> ClockAdvance:
        """Let time pass until a timer fires."""
        return await self._advance(until="next", at_most_ms=at_most_ms)

    async def advance_until_idle(self, at_most_ms: int = 86_400_000, settle_ms: int = 0) -> ClockAdvance:
        """Let time pass until no timer is left but the look at old offsets."""
        return await self._advance(until="idle", at_most_ms=at_most_ms, settle_ms=settle_ms)

    async def _advance(self, **how: Any) -> ClockAdvance:
        async def advance(control: Control) -> ClockAdvance:
            return ClockAdvance.read(await control.clock_driver.advance(Advance(**how)))

        return await self.do(advance)

    # --- faults

    async def add_fault(
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
    ) -> FaultHandle:
        """Make a rule, behind those that are there; the fields are those of the control API. Raises ValueError."""
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}

        async def add(control: Control) -> FaultHandle:
            return FaultHandle(self, control.add_fault(FaultRule.model_validate(given)))

        return await self.do(add)

    async def clear_faults(self) -> None:
        """Remove every rule."""

        async def clear(control: Control) -> None:
            control.faults.clear()

        await self.do(clear)

    # --- what an administrator or a failure does

    async def expire(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Let a member's session run out now; returns its id."""

        async def expire(control: Control) -> str:
            which = MemberKey(group=group_id, member=member, instance=instance, client_id=client_id)
            return str(control.actions.expire(which)["member"])

        return await self.do(expire)

    async def kick(
        self, group_id: str, member: str | None = None, *, instance: str | None = None, client_id: str | None = None
    ) -> str:
        """Remove a member as an administrator does; returns its id."""

        async def kick(control: Control) -> str:
            which = MemberKey(group=group_id, member=member, instance=instance, client_id=client_id)
            return str((await control.actions.kick(which))["member"])

        return await self.do(kick)

    async def resign(self, group: str | None = None, partition: int | None = None) -> int:
        """Lose an offsets partition, named by its number or by a group in it; returns its number."""

        async def resign(control: Control) -> int:
            return int(control.actions.resign(PartitionKey(partition=partition, group=group))["partition"])

        return await self.do(resign)

    async def elect(self, group: str | None = None, partition: int | None = None) -> int:
        """Lead an offsets partition, loaded anew from the offsets log; returns its number."""

        async def elect(control: Control) -> int:
            return int(control.actions.elect(PartitionKey(partition=partition, group=group))["partition"])

        return await self.do(elect)

    async def set_topic(self, topic: str, partitions: int, records_per_second: float | None = None) -> TopicView:
        """Create a topic, or let it grow to so many partitions."""

        async def set_topic(control: Control) -> TopicView:
            wanted = TopicTarget(topic=topic, partitions=partitions, records_per_second=records_per_second)
            return TopicView.model_validate(await control.actions.set_topic(wanted))

        return await self.do(set_topic)

    async def produce(
        self, topic: str, partition: int | None, records: int | Sequence[Written], *, keys: bool = False
    ) -> TopicView:
        """Write so many records to a partition, or to every partition if it is None; or write the records of a list.

        Values of a number of records are distinct, as ``orders-0@17``; with ``keys`` they have keys, too. A record of
        a list is a value, a pair of key and value, or a mapping with key, value, headers and timestamp; without a
        partition it goes to that of its key. Where logs are synthetic, a number moves their ends on.
        """
        some = all_written(records)

        async def produce(control: Control) -> TopicView:
            produced = NewRecords(topic=topic, partition=partition, records=some, keys=keys, encoding="base64")
            return TopicView.model_validate(await control.produce(produced))

        return await self.do(produce)

    async def compact(self, topic: str | None = None) -> list[str]:
        """Clean the logs of a compacted topic now, or those of all; returns the names of the topics."""

        async def compact(control: Control) -> list[str]:
            return list(control.actions.compact(CompactionScope(topic=topic))["topics"])

        return await self.do(compact)

    async def records(
        self, topic: str, partition: int | None = None, offset: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        """The records of a topic by partition and offset, with key, value, headers and timestamp.

        ``__consumer_offsets`` is such a topic, too, with what is left of it after compaction.
        """

        async def read(control: Control) -> list[StoredRecord]:
            return control.records.read(RecordsQuery(topic=topic, partition=partition, offset=offset, limit=limit))

        return await self.do(read)

    async def wait_for_committed(
        self, group_id: str, offsets: Offsets, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """Wait until a group has committed these offsets or later ones, and return all that it has committed.

        Offsets are mapped by topic and partition number, or by the TopicPartition of any library; or there is a list
        of objects with topic, partition and offset, such as confluent-kafka's. Raises NotReached.
        """
        wanted: Any = wanted_offsets(offsets)

        async def wait(control: Control) -> dict[TopicPartition, int]:
            condition = OffsetsCondition(group=group_id, offsets=wanted, timeout_ms=timeout_ms)
            committed = await control.groups.wait_for_committed(condition)
            return {TopicPartition(each.topic, each.partition): each.offset for each in committed}

        return await self.do(wait)

    async def snapshot(self) -> str:
        """Keep the whole state; returns the name to restore it by."""

        async def snapshot(control: Control) -> str:
            return str(control.actions.snapshot()["snapshot"])

        return await self.do(snapshot)

    async def restore(self, snapshot: str) -> None:
        """Go back to a snapshot, in time too."""

        async def restore(control: Control) -> None:
            control.actions.restore(SnapshotKey(snapshot=snapshot))

        await self.do(restore)

    async def reset(self) -> None:
        """Begin anew: no groups, no offsets, no rules; topics as at the start."""

        async def reset(control: Control) -> None:
            await control.actions.reset()

        await self.do(reset)

    # --- evidence

    async def mark(self) -> int:
        """The mark of this moment, for ``since``."""

        async def mark(control: Control) -> int:
            return control.recorder.mark

        return await self.do(mark)

    async def requests(
        self, api: str | int | None = None, client_id: str | None = None, since: int = 0
    ) -> list[RecordedRequest]:
        """What clients sent, and what they were answered: of one API or all, of one client or all.

        Without what the coordinator did by itself: the topics of the start, and what other methods write or remove.
        """
        given: Any = api

        async def read(control: Control) -> list[RecordedRequest]:
            return control.evidence.requests(RequestsQuery(api=given, client_id=client_id, since=since))

        return await self.do(read)

    async def transcript(self, since: int = 0, group: str | None = None, claim: str = "") -> str:
        """What happened, as a transcript that can be replayed."""

        async def write(control: Control) -> str:
            wanted = TranscriptQuery(since=since, group=group, claim=claim)
            return control.evidence.transcript(wanted.since, wanted.group, wanted.claim)

        return await self.do(write)

    async def broker_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """What happened, as lines of a broker's server.log of that Kafka version."""

        async def write(control: Control) -> str:
            wanted = LogQuery(kafka=kafka, since=since, group=group)
            return control.evidence.broker_log(wanted.kafka, wanted.since, wanted.group)

        return await self.do(write)

    async def request_log(self, kafka: str = "3.9", since: int = 0, group: str | None = None) -> str:
        """What was asked and answered, as lines of kafka-request.log of that Kafka version."""

        async def write(control: Control) -> str:
            wanted = LogQuery(kafka=kafka, since=since, group=group)
            return control.evidence.request_log(wanted.kafka, wanted.since, wanted.group)

        return await self.do(write)
