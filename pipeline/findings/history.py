"""One group as the rules see it: its rows from all tables, by time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final

from rejoin.pipeline.findings.absences import (
    Absence,
    ClientKey,
    ConsumerLogs,
    absences_of,
    renamed,
    sharing_clients,
    with_processes,
)
from rejoin.pipeline.findings.clients.libraries import known_clients, versions_in_logs, versions_of
from rejoin.pipeline.findings.clients.table import JAVA
from rejoin.pipeline.findings.observed_rows import (
    ALL_ROWS,
    COOPERATIVE,
    EAGER,
    METADATA_CHANGED,
    SUBSCRIPTION_CHANGED,
    Balance,
    FirstOwnership,
    GenerationPauses,
    MemberSession,
    MinuteOfCommits,
    ObservedEvent,
    ObservedLoss,
    ObservedRebalance,
    OwnedPartition,
    RunContext,
    name_of_client,
    short,
)
from rejoin.pipeline.findings.outages import Outage, outages_of
from rejoin.pipeline.tables.groups.pauses import REVOKED
from rejoin.pipeline.vocabulary import CLIENT_LOG, LOGS, SOURCES, is_untimed

OF_JOINS: Final = ("join_sent", "generation_joined")
"""Events that each consumer's own log has."""
JOURNALS: Final = tuple(each for each in SOURCES if each not in LOGS)
_MODERN_HEARTBEAT: Final = re.compile(r"because (?:member \S+ is unknown|epoch \S+ is fenced)")
"""A consumer's words about an answer to ConsumerGroupHeartbeat, which only members of the consumer protocol send."""
WAITS_MS: Final = 60_000
"""Consumers wait for a coordinator that is away for so long, where the source does not say how long they may."""
FOLLOWS_MS: Final = 5_000
"""The second half of a cooperative rebalance begins so soon after the first has ended."""


@dataclass(frozen=True)
class GroupHistory:
    """One group of one run."""

    run: RunContext
    group_id: str
    rebalances: list[ObservedRebalance] = field(default_factory=list)
    sessions: list[MemberSession] = field(default_factory=list)
    pauses: list[GenerationPauses] = field(default_factory=list)
    balances: list[Balance] = field(default_factory=list)
    owned: list[FirstOwnership] = field(default_factory=list)
    losses: list[ObservedLoss] = field(default_factory=list)
    commits: list[MinuteOfCommits] = field(default_factory=list)
    events: list[ObservedEvent] = field(default_factory=list)
    progress: list[OwnedPartition] = field(default_factory=list)

    @classmethod
    def of(cls, run: RunContext, group_id: str, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> GroupHistory:
        """From rows by kind, see :data:`ALL_ROWS`, in any order."""

        def read(kind: str, order: Callable[[Any], Any]) -> list[Any]:
            made = ALL_ROWS[kind]
            names = [each.name for each in fields(made)]
            return sorted((made(*map(row.get, names)) for row in rows.get(kind, ())), key=order)

        return cls(
            run,
            group_id,
            read("rebalance", lambda row: (row.prepared_at_ms, row.rebalance_id)),
            read("session", lambda row: (row.joined_at_ms or 0, row.ended_at_ms or run.end_ms, row.member_id)),
            read("pauses", lambda row: (row.ended_at_ms, row.generation_to, row.kind)),
            read("balance", lambda row: (row.at_ms, row.generation or 0)),
            read("owned", lambda row: (row.topic, row.partition)),
            read("loss", lambda row: (row.topic, row.partition)),
            read("commits", lambda row: row.minute),
            read("event", lambda row: (row.at_ms, row.source, row.node or "", row.seq or 0)),
            read("progress", lambda row: (row.topic, row.partition)),
        )

    @cached_property
    def is_from_consumers(self) -> bool:
        """Whether consumers' own logs are all that is known."""
        sources = {each.source for each in self.rebalances} | {each.source for each in self.events}
        return bool(sources) and sources <= {CLIENT_LOG}

    @cached_property
    def has_only_own_words(self) -> bool:
        """Whether consumers' own logs are all that is known, with no rebalance after the group's first."""
        return not self.later and self.is_from_consumers

    @cached_property
    def logged_consumers(self) -> int:
        """How many consumers have a log, where consumers' own logs are all that is known."""
        keys = {(each.node, each.client_id) for each in self.events if each.event in OF_JOINS}
        named = {node for node, client in keys if client is not None}
        return sum(client is not None or node not in named for node, client in keys)

    @property
    def is_of_one_consumer(self) -> bool:
        """Whether the log of one consumer is all that is known."""
        return self.is_from_consumers and self.logged_consumers <= 1

    @property
    def end_ms(self) -> int:
        """The last instant of the run."""
        return self.run.end_ms

    # -- names

    @cached_property
    def by_member(self) -> dict[str, MemberSession]:
        """Member id to its session."""
        return {session.member_id: session for session in self.sessions}

    def who(self, member_id: str | None) -> str:
        """Name of a member for people: its instance id, its client id, or else the short member id."""
        session = self.by_member.get(member_id or "")
        return self.name_of(session) if session is not None else short(member_id)

    def says(self, event: ObservedEvent) -> str:
        """Name for people of the consumer that reports an event: that of its log where its member is not known."""
        if event.group_instance_id or event.client_id:
            return event.group_instance_id or event.client_id or ""
        has_others = event.source == CLIENT_LOG and self.logged_consumers > 1
        return (
            event.node.rsplit("/", 1)[-1]
            if has_others and event.node and not event.member_id
            else self.who(event.member_id)
        )

    def name_of(self, session: MemberSession) -> str:
        """Name of a member for people. Members that share a client.id get the beginning of their UUID as well."""
        if session.group_instance_id:
            return session.group_instance_id
        key = (session.client_id, session.client_host)
        if session.client_id and key not in self._shared:
            return name_of_client(session.client_id) or session.client_id
        name = short(session.member_id)
        return name if name == session.member_id else session.member_id[: len(name) + 5]

    @cached_property
    def _shared(self) -> set[ClientKey]:
        return sharing_clients(self.sessions, self.end_ms)

    # -- clients

    @cached_property
    def known_clients(self) -> tuple[str, ...]:
        """The clients of its members, as far as the sources show them."""
        return known_clients(self.sessions, self.events)

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients that advice is for: those known, else Java, whose names are those of Kafka's documentation."""
        return self.known_clients or (JAVA,)

    def version_of(self, client: str) -> str | None:
        """The one version of a client that the sources state; None where they state none, or several."""
        found = versions_in_logs(self.events, client) or versions_of(self.sessions, client)
        return found.pop() if len(found) == 1 else None

    # -- members

    @cached_property
    def absences(self) -> list[Absence]:
        """Clients that left and came back, by the time of coming back."""
        of_consumers = [event for event in self.events if event.source in JOURNALS]
        logs = self._consumer_logs if self.is_from_consumers else None
        return with_processes(absences_of(self.sessions, self._shared, self.name_of, logs), of_consumers)

    @cached_property
    def _consumer_logs(self) -> ConsumerLogs:
        joins = [each for each in self.events if each.source == CLIENT_LOG and each.event in OF_JOINS]
        refused = {each.member_id for each in self.events if each.error == "UNKNOWN_MEMBER_ID" and each.member_id}
        return ConsumerLogs(
            {each.member_id: each.node for each in reversed(joins) if each.member_id and each.node}, refused
        )

    @cached_property
    def renamed(self) -> list[tuple[MemberSession, MemberSession]]:
        """Static members that went for good, each with one of a new instance id that came in its stead."""
        return renamed(self.sessions)

    @cached_property
    def all_joins_are_reported(self) -> bool:
        """Whether the source reports every join, so that a member without one has not come back.

        Coordinators report all in their journals. Logs of brokers before 2.5 name a new member only where it begins a
        rebalance, and never one that joins in the middle of one: a join that began no rebalance, and that is not a
        static member's restart, shows that the log has all of them.
        """
        if self.run.joins_reported or any(each.source in JOURNALS for each in self.rebalances):
            return True
        named = {each.cause_member_id for each in self.rebalances}
        returned = {session.group_instance_id for session in self.sessions if session.end == "replaced"}
        return any(
            session.joined_at_ms is not None
            and session.member_id not in named
            and (session.group_instance_id is None or session.group_instance_id not in returned)
            for session in self.sessions
        )

    @cached_property
    def outages(self) -> list[Outage]:
        """When the group had no coordinator."""
        return outages_of(self)

    @cached_property
    def late_poll_events(self) -> list[ObservedEvent]:
        """Consumers that did not poll in time, but for those that could not since the coordinator was away: a commit
        waits for it."""
        timed_out = [event for event in self.events if event.event == "poll_timeout_exceeded"]
        return [event for event in timed_out if not self._waited_for_coordinator(event.at_ms, event.timeout_ms)]

    def left_late(self, session: MemberSession) -> bool:
        """Whether a member left since it had not polled in time, by its own words, or was removed for not joining again
        with heartbeats that went on; and not for want of a coordinator."""
        ended = session.ended_at_ms
        if not session.left_by_poll_timeout and session.end != "did-not-rejoin":
            return False
        return ended is None or not self._waited_for_coordinator(ended, session.rebalance_timeout_ms)

    def _waited_for_coordinator(self, at_ms: int, limit_ms: int | None) -> bool:
        return any(each.from_ms <= at_ms <= each.to_ms + (limit_ms or WAITS_MS) for each in self.outages)

    def size_at(self, at_ms: int) -> int:
        """Number of members in the group, by their sessions."""
        return sum(
            (session.joined_at_ms or 0) <= at_ms < (session.ended_at_ms or self.end_ms + 1)
            for session in self.sessions
            if session.joined_at_ms is not None or session.ended_at_ms is not None
        )

    # -- protocols

    @cached_property
    def uses_consumer_protocol(self) -> bool:
        """Whether the group's members speak the consumer protocol (KIP-848): members reconcile one by one."""
        if any(session.group_protocol is not None for session in self.sessions):
            return True
        said = (str((each.more or {}).get("problem") or "") for each in self.events if each.source == CLIENT_LOG)
        return any(_MODERN_HEARTBEAT.search(each) is not None for each in said)

    @cached_property
    def is_share_group(self) -> bool:
        """Whether the group's members share partitions (KIP-932)."""
        return any(session.group_protocol == "share" for session in self.sessions)

    @cached_property
    def is_streams_group(self) -> bool:
        """Whether brokers assign the tasks of Kafka Streams to the group's members (KIP-1071)."""
        return any(session.group_protocol == "streams" for session in self.sessions)

    @property
    def server_protocol(self) -> str:
        """Kind of a group whose members leave their assignment to the broker, as Kafka's settings name it."""
        return "share" if self.is_share_group else "streams" if self.is_streams_group else "consumer"

    @cached_property
    def _revokes(self) -> bool:
        """Whether members come back to give up partitions, where the source does not have the assignor."""
        if any((each.client_reason or "").startswith(REVOKED) for each in self.rebalances):
            return True
        if any(each.protocol in EAGER for each in self.rebalances):
            return False
        began = [each for each in self.rebalances if each.cause in ("join-new", "leave", "session-expiry")]
        quick = sum(self._is_quick(each) for each in self.rebalances)
        # A member that leaves needs no second half, one that joins mostly does.
        return quick >= 2 and 3 * quick >= len(began)

    def _is_quick(self, rebalance: ObservedRebalance) -> bool:
        before = self._before.get(rebalance.rebalance_id)
        return (
            rebalance.cause in ("rejoin-metadata", "rejoin-leader")
            and not (rebalance.client_reason or "").startswith((METADATA_CHANGED, SUBSCRIPTION_CHANGED))
            and before is not None
            and before.outcome == "completed"
            and self._follows(rebalance)
        )

    def _follows(self, rebalance: ObservedRebalance) -> bool:
        """Whether a rebalance begins soon enough after the one before to be its second half."""
        before = self._before.get(rebalance.rebalance_id)
        return before is not None and rebalance.prepared_at_ms - before.until_ms <= FOLLOWS_MS

    @cached_property
    def _before(self) -> dict[str, ObservedRebalance]:
        """Rebalance to the one before it."""
        following = zip(self.rebalances, self.rebalances[1:], strict=False)
        return {after.rebalance_id: before for before, after in following}

    def is_incremental(self, rebalance: ObservedRebalance) -> bool:
        """Whether members kept all partitions but those that moved: cooperative, or the consumer protocol."""
        if self._is_of_consumer_group(rebalance):
            return True
        return rebalance.protocol == COOPERATIVE or (rebalance.protocol is None and self._revokes)

    @cached_property
    def is_cooperative(self) -> bool:
        """Whether members kept their partitions in most of the group's rebalances."""
        later = self.later or self.rebalances
        return bool(later) and 2 * sum(map(self.is_incremental, later)) > len(later)

    def is_eager(self, rebalance: ObservedRebalance) -> bool:
        return rebalance.protocol in EAGER and not self._is_of_consumer_group(rebalance)

    def _is_of_consumer_group(self, rebalance: ObservedRebalance) -> bool:
        if rebalance.group_type is None:
            return self.uses_consumer_protocol
        return rebalance.group_type == "consumer"

    def is_second_half(self, rebalance: ObservedRebalance) -> bool:
        """Whether members come back to give up partitions: the second half of a cooperative rebalance (KIP-429)."""
        if (rebalance.client_reason or "").startswith(REVOKED):
            return True
        if not self.is_incremental(rebalance) or self._is_of_consumer_group(rebalance):
            return False
        return (rebalance.cause == "rejoin-metadata" and self._follows(rebalance)) or self._is_quick(rebalance)

    def begins(self, rebalance: ObservedRebalance) -> ObservedRebalance:
        """The rebalance that this one is the second half of, or itself."""
        while self.is_second_half(rebalance) and rebalance.rebalance_id in self._before:
            rebalance = self._before[rebalance.rebalance_id]
        return rebalance

    @cached_property
    def is_untimed(self) -> bool:
        """Whether a log without times has part in it: the order is known, and no length."""
        return any(is_untimed(each.at_ms) for each in self.events) or any(
            is_untimed(each.prepared_at_ms) for each in self.rebalances
        )

    # -- costs

    @cached_property
    def stopped_ms(self) -> dict[str, int]:
        """Rebalance to the ms for which it left consumers without partitions."""
        costs = dict.fromkeys((each.rebalance_id for each in self.rebalances), 0)
        by_generation: dict[int, list[ObservedRebalance]] = defaultdict(list)
        for each in self.rebalances:
            if each.generation_to is not None:
                by_generation[each.generation_to].append(each)
        for pause in self.pauses:
            # After a failover a generation may come a second time: take the last one that began before.
            made = [
                one for one in by_generation.get(pause.generation_to, ()) if one.prepared_at_ms <= pause.ended_at_ms
            ]
            if made:
                costs[made[-1].rebalance_id] += pause.stopped_ms
        return costs

    def cost_s(self, rebalances: Iterable[ObservedRebalance]) -> float:
        """Consumer-seconds that these rebalances cost.

        As consumers reported it; else the upper bound: members times the length.
        """
        return sum(self.cost_of_one_s(each) for each in rebalances)

    def cost_of_one_s(self, rebalance: ObservedRebalance) -> float:
        """See :meth:`cost_s`."""
        if is_untimed(rebalance.prepared_at_ms):
            return 0.0
        if self.costs_are_known or (self.pauses and not self.is_incremental(rebalance)):
            return self.stopped_ms[rebalance.rebalance_id] / 1_000
        if rebalance.initial or self.is_incremental(rebalance):
            return 0.0
        members = 1 if rebalance.members_before is None else len(rebalance.members_before)
        return members * (rebalance.unavailable_ms or 0) / 1_000

    @property
    def costs_are_known(self) -> bool:
        """Whether consumers reported their pauses; else costs are upper bounds."""
        return any(not pause.guessed for pause in self.pauses)

    @cached_property
    def later(self) -> list[ObservedRebalance]:
        """All but the group's first."""
        return [each for each in self.rebalances if not each.initial]
