"""Plays the loop of a quiet consumer in short: poll, process, commit, and the heartbeats beside it.

While a member is quiet on both sides (:mod:`rejoin.simulation.idle`) nothing about its loop is open. Which records a
poll returns is a function of the instant; what they cost comes from the consumer's own random numbers; the delay of
each message is a function of its connection and the instant; a commit is accepted and ends when the log says so. So
both cores are left out, and what happens is computed at the same instants, in the same order and with the same random
numbers as they would have had it. Its events are the same; they are made only for those who listen. Heartbeats, and
looks for records that are not there, are passed over (:mod:`rejoin.simulation.repetition`).

Before anything else reaches the consumer, and before its group leaves Stable, :meth:`RecordLoop.resume` brings both
cores to where they would be: in the poll, in the middle of the records, or with the commit in flight.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal

from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import Effect, Send
from rejoin.client.core.inputs import CommitAsked, Elapsed, RecordRange
from rejoin.client.core.quiescence import NEVER, Quiescence, RecordProgress
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.journal.events.client import CommitSucceeded, Range, RecordsProcessed
from rejoin.journal.events.coordinator import CommittedOffset, OffsetsCommitted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.disk import OffsetEntry
from rejoin.simulation.kernel import Millis, Order
from rejoin.simulation.loop_state import COMMIT_KINDS, Commit, Heartbeat, Phase, Position, positions_of
from rejoin.simulation.network import ClientConnection, Exchange
from rejoin.simulation.repetition import Heartbeats, SentHeartbeat, last_answered_before, last_before_now

if TYPE_CHECKING:
    from rejoin.simulation.idle import IdleSkipper

NONE: Final = ErrorCode.NONE


class RecordLoop:
    """The loop of one consumer while it is played in short. It has the interface of a skipped interval."""

    def __init__(
        self, idler: IdleSkipper, consumer: ConsumerActor, node: NodeActor, session: QuietSession, quiet: Quiescence
    ) -> None:
        core = consumer.core
        assert core is not None, "only a consumer that is up is played in short"
        self.idler, self.world = idler, idler.world
        self.number = idler.record_loops
        self.consumer = consumer
        self.core: ConsumerCore = core
        self.config = core.config
        self.node = node
        self.session, self.quiet = session, quiet
        self.member_id = core.generation.member_id
        self.group_id = core.config.group_id or ""
        self.connection: ClientConnection = consumer.connection_to(node.index, 0)
        self.active = True
        self.phase = Phase.POLLING
        self.batch: list[tuple[Millis, RecordRange]] = []
        self.in_flight: list[Commit] = []
        """Commits in flight, in order; several only with ``after-async``."""
        self.heartbeat: Heartbeat | None = None
        self.heartbeat_at = quiet.heartbeat_at
        self.session_expires_at = quiet.session_expires_at
        self.node_session_expires_at = session.expires_at
        self.poll_returns_at = quiet.poll_returns_at
        self.polled_at = self.world.now
        self.looks_every = max(1, self.config.fetch_max_wait_ms)
        self.fetch_at = self.world.now + self.looks_every
        self._commits = consumer.user_code.commit
        self._kind: Literal["sync", "auto", "async"] = COMMIT_KINDS.get(self._commits, "sync")
        self.auto_commit_at = core.next_auto_commit_at if self._commits == "auto" else None
        self._wakes = 0
        self._is_skipping = False
        self._takes_at: Millis | None = None
        """Before this instant no look finds a record; none where it has to be computed."""
        self._incarnation = consumer.incarnation
        self._on_stored = node.on_stored()
        self._offsets_partition = idler.cluster.partition_of(self.group_id)
        self._epoch = idler.cluster.disk.log(self._offsets_partition).epoch
        self.positions = positions_of(core, idler.cluster.topics)
        self._sorted = sorted(self.positions, key=lambda each: each.partition)
        self._stored: dict[TopicPartition, OffsetEntry] = {}
        self._identity: dict[str, Any] = {
            "client_id": self.config.client_id,
            "group_id": self.config.group_id,
            "group_instance_id": self.config.group_instance_id,
            "member_id": self.member_id,
            "generation": core.generation.generation_id,
        }
        self._accounting = idler.accounting
        # With no other listener than the account of the records, the account is all that an event would reach.
        self._emits_processed = len(self.world.listeners_of(RecordsProcessed)) > 1
        self._emits_succeeded = len(self.world.listeners_of(CommitSucceeded)) > 1
        self._emits_committed = len(self.world.listeners_of(OffsetsCommitted)) > 0

    def begin(self) -> None:
        """Begin within a poll that has found nothing."""
        self._sleep()

    # -- polling

    def _sleep(self) -> None:
        """Wait for the next heartbeat, or for the next instant at which the poll looks for records."""
        if not self.active:
            return
        self._wakes += 1
        if self.phase is Phase.POLLING and self.heartbeat is None and not self.in_flight and self._skip():
            return
        at = self.heartbeat_at
        if self.phase is Phase.POLLING:
            at = min(at, self.poll_returns_at, self.fetch_at)
            if self.auto_commit_at is not None:
                at = min(at, self.auto_commit_at)
        self.world.at(at, self.consumer.timer.lane, self._wake, self._wakes)

    def _wake(self, number: int) -> None:
        if number != self._wakes or not self.active:
            return
        now = self.world.now
        if now >= self.heartbeat_at:
            self._send_heartbeat(now)
        if self.phase is Phase.POLLING:
            self._look(now)
        self._sleep()

    def _look(self, now: Millis) -> None:
        """One pass of the poll's loop, as in any step of the consumer's core."""
        self.polled_at = now
        self.fetch_at = now + self.looks_every
        if self.auto_commit_at is not None and now >= self.auto_commit_at:
            if self.in_flight:
                # Two commits in flight are for the cores.
                self.idler.resume(self.consumer)
                return
            self.auto_commit_at = now + self.config.auto_commit_interval_ms
            self._send_commit()
        taken = self._take(now)
        if taken:
            self._handed_out(taken)
        elif now >= self.poll_returns_at:
            self.poll_returns_at = now + self.consumer.user_code.poll_ms

    def _poll(self, now: Millis) -> None:
        """The user polls."""
        self.phase = Phase.POLLING
        self.poll_returns_at = now + self.consumer.user_code.poll_ms
        self._look(now)
        self._sleep()

    def _take(self, now: Millis) -> list[RecordRange]:
        """The records that a poll returns, from each partition in rotation."""
        left = self.config.max_poll_records
        taken: list[RecordRange] = []
        rest: list[Position] = []
        last: list[Position] = []
        for each in self.positions:
            if left <= 0:
                rest.append(each)
                continue
            each.end = each.log.end_offset(now, each.records_per_second)
            start = each.position
            if start >= each.end:
                rest.append(each)
                continue
            each.position = min(each.end, start + left)
            left -= each.position - start
            taken.append(RecordRange(*each.partition, start, each.position))
            last.append(each)
        if taken:
            self.positions = rest + last
            self._takes_at = None
        return taken

    # -- heartbeats and looks that find nothing

    def _skip(self) -> bool:
        """Go on with the last heartbeat that is answered before a record comes or a commit is due, if there is one."""
        if self._takes_at is None:
            found = (each.log.there_at(each.position, each.records_per_second) for each in self.positions)
            # The arithmetic of logs may be off by one.
            self._takes_at = min((at - 1 for at in found if at is not None), default=NEVER)
        end = self._takes_at if self.auto_commit_at is None else min(self._takes_at, self.auto_commit_at)
        last = None
        if end < NEVER:
            last = last_answered_before(self.connection, self.heartbeat_at, self.quiet.heartbeat_interval_ms, end)
            if last is None:
                return False
            self.world.at(last.answered_at, self.connection.answer_lane, self._skipped, (self._wakes, last))
        self._is_skipping = True
        return True

    def _skipped(self, skipped: tuple[int, SentHeartbeat]) -> None:
        """The last heartbeat that was skipped is answered."""
        number, last = skipped
        if number != self._wakes or not self.active:
            return
        self._is_skipping = False
        self.heartbeat_at = last.sent_at + self.quiet.heartbeat_interval_ms
        self.node_session_expires_at = last.arrives_at + self.session.timeout_ms
        self.session_expires_at = last.answered_at + self.config.session_timeout_ms
        self._pass_polls()
        self._look(self.world.now)
        self._sleep()

    def _pass_polls(self) -> Millis | None:
        """Let the poll return as often as it has by now; the last time, if any."""
        every = self.consumer.user_code.poll_ms
        last = last_before_now(self.world, self.consumer.timer.lane, self.poll_returns_at, every)
        if last is not None:
            self.poll_returns_at = last + every
        return last

    def _end_skipping(self) -> SentHeartbeat | None:
        """Bring the loop to the present; the heartbeat that is in flight, if any."""
        self._is_skipping = False
        timer, every = self.consumer.timer.lane, self.quiet.heartbeat_interval_ms
        beats = Heartbeats.by_now(self.world, self.connection, timer, self.heartbeat_at, every)
        polled_at = max(self.polled_at, self._pass_polls() or 0)
        self.heartbeat_at = beats.due_at
        if beats.received is not None:
            self.node_session_expires_at = beats.received.arrives_at + self.session.timeout_ms
        if beats.answered is not None:
            self.session_expires_at = beats.answered.answered_at + self.config.session_timeout_ms
            polled_at = max(polled_at, beats.answered.answered_at)
        sent = beats.unanswered
        if sent is not None:
            self.heartbeat_at = sent.sent_at + every
            self.heartbeat = Heartbeat(sent.sent_at, self.world.is_past(sent.arrives_at, self.connection.request_lane))
            polled_at = max(polled_at, sent.sent_at)
        # Each of these has looked for records, and after each of them a look comes once in a while.
        look = last_before_now(self.world, timer, polled_at + self.looks_every, self.looks_every)
        self.polled_at = polled_at if look is None else look
        self.fetch_at = self.polled_at + self.looks_every
        for each in self.positions:
            each.end = each.log.end_offset(self.polled_at, each.records_per_second)
        return sent

    # -- records

    def _handed_out(self, taken: list[RecordRange]) -> None:
        self.batch = [(0, each) for each in taken]
        if self._commits == "before":
            self.phase = Phase.COMMITTING
            self._send_commit()
        else:
            self._process()

    def _process(self) -> None:
        """Process the batch: one partition after the other, each in its time."""
        self.phase = Phase.PROCESSING
        consumer, now = self.consumer, self.world.now
        records = sum(taken.end - taken.start for _, taken in self.batch)
        total = consumer.user_code.processing.of(records, consumer.random)
        done = 0
        for index, (_, taken) in enumerate(self.batch):
            done += taken.end - taken.start
            self.batch[index] = (now + ceil(total * done / records), taken)
        for at in dict.fromkeys(at for at, _ in self.batch):
            self.world.at(at, consumer.user_lane, self._processed, at)
        if now + ceil(total) >= self.polled_at + self.config.max_poll_interval_ms:
            # The consumer's core leaves the group then.
            self.idler.resume(consumer)

    def _processed(self, at: Millis) -> None:
        if not self.active:
            for due, taken in self.batch:
                if due == at:
                    self.consumer.process_resumed(self._incarnation, taken)
            return
        while self.batch and self.batch[0][0] == at:
            _, (topic, partition, start, end) = self.batch.pop(0)
            if self._emits_processed:
                done = Range(topic=topic, partition=partition, start=start, end=end)
                self.consumer.emit(RecordsProcessed(ranges=[done], **self._identity))
            else:
                self._accounting.process(self.group_id, topic, partition, start, end, at)
        if not self.batch:
            if self._commits == "after":
                self.phase = Phase.COMMITTING
                self._send_commit()
                return
            if self._commits == "after-async":
                self._send_commit()
            self._poll(at)

    # -- commits

    def _send_commit(self) -> None:
        now = self.world.now
        offsets = [(each.partition, each.position) for each in self._sorted]
        arrives = self.connection.next_arrival()
        commit = Commit(now, arrives, offsets)
        self.in_flight.append(commit)
        self.world.at(arrives, self.connection.request_lane, self._commit_arrives, commit)

    def _commit_arrives(self, commit: Commit) -> None:
        if commit.exchange is not None:
            self.connection.arrive(commit.exchange)
            return
        now = self.world.now
        commit.has_arrived = True
        self.idler.appending[self] = None
        if self.session.commits_restart:
            self.node_session_expires_at = now + self.session.timeout_ms
        stored_at = self.idler.cluster.disk.reserve(self._offsets_partition)
        self.world.at(stored_at, Order.DISK.value, self._commit_stored, commit)
        if stored_at >= now + self.node.settings.offsets_commit_timeout_ms:
            # The coordinator answers before the end of this append.
            self.idler.resume(self.consumer)

    def _commit_stored(self, commit: Commit) -> None:
        if commit.append is None and self.idler.cluster.disk.log(self._offsets_partition).epoch != self._epoch:
            # Another node leads the partition by now: the log refuses this append.
            self.idler.resume(self.consumer)
        if commit.append is not None:
            self.idler.cluster.disk.write(commit.append, self._on_stored)
            return
        entries = [
            OffsetEntry(self.group_id, partition.topic, partition.partition, offset, commit.arrives_at)
            for partition, offset in commit.offsets
        ]
        self.idler.cluster.disk.write_entries(self._offsets_partition, entries)
        for (partition, _), entry in zip(commit.offsets, entries, strict=True):
            self._stored[partition] = entry
        if self._emits_committed:
            self.node.emit(
                OffsetsCommitted(
                    group_id=self.group_id,
                    member_id=self.member_id,
                    group_instance_id=self.config.group_instance_id,
                    generation=self.core.generation.generation_id,
                    state="Stable",
                    offsets=[
                        CommittedOffset(topic=each.topic, partition=each.partition, offset=each.offset)
                        for each in entries
                    ],
                    producer_id=None,
                )
            )
        commit.is_answered = True
        if not any(each.has_arrived and not each.is_answered for each in self.in_flight):
            self.idler.appending.pop(self, None)
        arrives = self.connection.next_answer_arrival()
        self.world.at(arrives, self.connection.answer_lane, self._commit_answered, commit)

    def _commit_answered(self, commit: Commit) -> None:
        if commit.exchange is not None:
            self.connection.arrive_back(commit.exchange)
            return
        self.in_flight.remove(commit)
        if self._emits_succeeded:
            positions: dict[str, dict[int, int]] = {}
            for partition, offset in commit.offsets:
                positions.setdefault(partition.topic, {})[partition.partition] = offset
            self.consumer.emit(CommitSucceeded(kind=self._kind, positions=positions, **self._identity))
        else:
            for partition, offset in commit.offsets:
                self._accounting.commit(self.group_id, partition.topic, partition.partition, offset)
        if self._commits == "before":
            self._process()
        elif self._commits == "after":
            self._poll(self.world.now)
        elif self.phase is Phase.POLLING:
            self._look(self.world.now)
            self._sleep()

    # -- heartbeats

    def _send_heartbeat(self, now: Millis) -> None:
        self.heartbeat_at = now + self.quiet.heartbeat_interval_ms
        self.heartbeat = Heartbeat(now)
        arrives = self.connection.next_arrival()
        self.world.at(arrives, self.connection.request_lane, self._heartbeat_arrives, self.heartbeat)

    def _heartbeat_arrives(self, heartbeat: Heartbeat) -> None:
        if heartbeat.exchange is not None:
            self.connection.arrive(heartbeat.exchange)
            return
        self.node_session_expires_at = self.world.now + self.session.timeout_ms
        heartbeat.is_answered = True
        arrives = self.connection.next_answer_arrival()
        self.world.at(arrives, self.connection.answer_lane, self._heartbeat_answered, heartbeat)

    def _heartbeat_answered(self, heartbeat: Heartbeat) -> None:
        if heartbeat.exchange is not None:
            self.connection.arrive_back(heartbeat.exchange)
            return
        now = self.world.now
        self.heartbeat = None
        self.session_expires_at = now + self.config.session_timeout_ms
        if self.phase is Phase.POLLING:
            self._look(now)
            self._sleep()

    # -- the end

    def resume(self) -> None:
        """Bring both cores to the present. What is on the heap goes on as theirs."""
        self.active = False
        now = self.world.now
        skipped = self._end_skipping() if self._is_skipping else None
        core, consumer, heartbeat = self.core, self.consumer, self.heartbeat
        self._resume_node()
        unwaited = [] if self._kind == "sync" else self.in_flight
        requests: list[Heartbeat | Commit] = [*unwaited] if heartbeat is None else [heartbeat, *unwaited]
        for each in sorted(requests, key=lambda sent: sent.sent_at):
            if isinstance(each, Commit):
                assert self._kind != "sync", "a call waits for a synchronous commit"
                effects = core.resume_unwaited_commit(self._kind, dict(each.offsets), each.sent_at)
                self._resume_commit(each, self._sent(effects, each.sent_at))
            else:
                core.resume_after_progress(each.sent_at, self._progress(None, each.sent_at))
                each.exchange = self._sent(core.step(Elapsed(), each.sent_at), each.sent_at)
                if each.is_answered:
                    each.exchange.response = self.session.answer
                    each.exchange.answers += 1
                if skipped is not None:
                    self._put_in_flight(skipped, each.exchange)
        poll_returns_at = self.poll_returns_at if self.phase is Phase.POLLING else None
        core.resume_after_progress(now, self._progress(poll_returns_at, self.heartbeat_at))
        if self.phase is not Phase.POLLING:
            consumer.resume_hand([taken for _, taken in self.batch])
            self._incarnation = consumer.incarnation
        for commit in self.in_flight:
            if self._kind == "sync":
                effects = core.step(CommitAsked(consumer.commit_token()), commit.sent_at)
                self._resume_commit(commit, self._sent(effects, commit.sent_at))
        consumer.restart_timer()
        self.node.timer.update()

    def _put_in_flight(self, sent: SentHeartbeat, exchange: Exchange) -> None:
        """Put a heartbeat that was skipped, or its answer, to where it is now."""
        if exchange.response is None:
            self.connection.send_at(sent.arrives_at, exchange)
        else:
            self.connection.answer_at(sent.answered_at, exchange)

    def _progress(self, poll_returns_at: Millis | None, heartbeat_at: Millis) -> RecordProgress:
        return RecordProgress(
            partitions={each.partition: (each.position, each.end) for each in self.positions},
            poll_returns_at=poll_returns_at,
            fetch_at=self.fetch_at,
            polled_at=self.polled_at,
            heartbeat_at=heartbeat_at,
            session_expires_at=self.session_expires_at,
            auto_commit_at=self.auto_commit_at,
        )

    def _sent(self, effects: list[Effect], at: Millis) -> Exchange:
        (send,) = effects
        assert isinstance(send, Send), f"a quiet consumer only sends; it did {send!r}"
        self.consumer.expect_answer(send.request_id, self.connection)
        return self.connection.resume(send.request_id, send.request, send.version, at, send.timeout_ms)

    def _resume_node(self) -> None:
        core = self.node.core
        assert core is not None, "no loop is played in short while a node is down"
        core.resume_offsets([entry.record() for entry in self._stored.values()])
        core.resume_session(self.session, self.node_session_expires_at)

    def _resume_commit(self, commit: Commit, exchange: Exchange) -> None:
        commit.exchange = exchange
        core, request = self.node.core, exchange.request
        assert core is not None, "no loop is played in short while a node is down"
        assert isinstance(request, OffsetCommitRequest), "a commit is an OffsetCommit"
        if commit.is_answered:
            exchange.response = request.response({partition: NONE for partition, _ in commit.offsets}, NONE)
            exchange.answers += 1
            return
        if not commit.has_arrived:
            return
        self._on_stored = self.node.on_stored()
        commit.append = core.resume_commit(self.group_id, exchange, request, exchange.version, commit.arrives_at)
