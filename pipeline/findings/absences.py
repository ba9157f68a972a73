"""Clients that went and came back: which session of a member continues which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.observed_rows import ANOTHER_PROCESS, MemberSession, ObservedEvent
from rejoin.pipeline.vocabulary import EXACT

PAIRED_WITHIN_MS: Final = 10 * 60_000
"""The longest absence that counts as a restart."""
STARTING_MS: Final = 45_000
"""Members that join within this of the first one are those that the group started with."""
UNKNOWN_SESSION_MS: Final = 45_000
"""Kafka's default of session.timeout.ms: for so long a member may have been silent where the source does not say it."""
SILENT_ENDS: Final = ("session-expiry", "did-not-rejoin", "sync-expiry")
"""Ends of sessions that the coordinator brought about: the member itself said nothing."""

RESET: Final = "membership_reset"
SUBSCRIBING: Final = "subscribing"
OF_PROCESSES: Final = (RESET, SUBSCRIBING)
"""Events of consumers that show whether a process went on."""
REACHES_MS: Final = 2 * PAIRED_WITHIN_MS
"""They are no further from the end of an absence."""

ClientKey = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class ConsumerLogs:
    """Events of members in consumers' own logs, for members of which nothing else is known."""

    log_of: Mapping[str, str]
    """Member to the log that has it."""
    refused: Collection[str]
    """Members that the coordinator did not know any more."""

    def may_be_one(self, before: MemberSession, after: MemberSession) -> bool:
        """Whether a member that joins can be the one that went: a process logs to one place."""
        return before.member_id in self.log_of and self.log_of[before.member_id] == self.log_of.get(after.member_id)

    def was_there(self, before: MemberSession, after: MemberSession) -> bool:
        """Whether a member that seemed to be removed had not been: it goes on with its id, and was never refused.
        Coordinators refuse dynamic members of classic groups that they have removed."""
        is_dynamic = before.group_instance_id is None and before.group_protocol is None
        return is_dynamic and before.member_id == after.member_id and before.member_id not in self.refused


@dataclass(frozen=True, slots=True)
class Absence:
    """A client left and came back: its two sessions, and the time between (below 0: it came back before it left)."""

    who: str
    client: str
    """Key that all absences of one client share: its first member id where only the order of joins shows the client."""
    before: MemberSession
    after: MemberSession
    away_ms: int
    exact: bool
    """Whether both are known to be the same client."""
    went_on: bool | None = None
    """Whether the process went on meanwhile, by the consumer's own journal; None without one."""

    @property
    def gone_at_ms(self) -> int:
        """When the coordinator removed it."""
        return self.before.ended_at_ms or 0

    @property
    def back_at_ms(self) -> int:
        return self.after.joined_at_ms or 0

    @property
    def went_at_ms(self) -> int:
        """Time of the last activity: a member that is removed for silence has been silent for a session."""
        return min(self.gone_at_ms - silent_ms(self.before), self.back_at_ms)

    @property
    def is_silent(self) -> bool:
        return self.before.end in SILENT_ENDS

    @property
    def is_new_process(self) -> bool:
        """Whether a new process came back, by its own connection."""
        return self.after.same_process_as == ANOTHER_PROCESS

    @property
    def same_process(self) -> bool | None:
        """Whether the process went on meanwhile; None where the source does not show it."""
        former = self.after.same_process_as
        if self.before.member_id in (former, self.after.member_id):
            return True
        if self.went_on is not None:
            return self.went_on
        is_new = former == ANOTHER_PROCESS or self.after.group_protocol is not None
        # A member that comes back before the old one is missed cannot be the old one.
        return False if is_new or (self.is_silent and self.away_ms < 0) else None


def silent_ms(session: MemberSession) -> int:
    """For how long a member sent nothing before it was removed, as far as that is known."""
    return (session.session_timeout_ms or 0) if session.end == "session-expiry" else 0


def went_at_ms(session: MemberSession) -> int:
    """When a member that is gone was last active."""
    return (session.ended_at_ms or 0) - silent_ms(session)


def renamed(sessions: Iterable[MemberSession]) -> list[tuple[MemberSession, MemberSession]]:
    """Static members that went for good, each with one of a new instance id that came in its stead."""
    by_id: dict[str, list[MemberSession]] = defaultdict(list)
    for session in sessions:
        if session.group_instance_id:
            by_id[session.group_instance_id].append(session)
    joins = [each.joined_at_ms for own in by_id.values() for each in own if each.joined_at_ms is not None]
    started = min(joins, default=0) + STARTING_MS
    came = [own[0] for own in by_id.values() if (own[0].joined_at_ms or 0) > started]
    gone = [own[-1] for own in by_id.values() if own[-1].ended_at_ms is not None and own[-1].end != "replaced"]
    pairs = []
    for before in sorted(gone, key=lambda each: (went_at_ms(each), each.member_id)):
        latest = (before.ended_at_ms or 0) + PAIRED_WITHIN_MS
        near = (each for each in came if went_at_ms(before) <= (each.joined_at_ms or 0) <= latest and each != before)
        after = next(near, None)
        if after is not None:
            came.remove(after)
            pairs.append((before, after))
    return pairs


def sharing_clients(sessions: Iterable[MemberSession], end_ms: int) -> set[ClientKey]:
    """Clients of one host that share a client.id: two of them were there at one time."""
    by_client: dict[ClientKey, list[MemberSession]] = defaultdict(list)
    for session in sessions:
        by_client[session.client_id, session.client_host].append(session)
    shared = set()
    for key, same in by_client.items():
        for one, next_one in pairwise(same):
            went_silently = one.end in (*SILENT_ENDS, "replaced")
            if (one.ended_at_ms or end_ms) > (next_one.joined_at_ms or 0) and not went_silently:
                shared.add(key)
    return shared


def absences_of(
    sessions: Sequence[MemberSession],
    shared: set[ClientKey],
    name_of: Callable[[MemberSession], str],
    logs: ConsumerLogs | None = None,
) -> list[Absence]:
    """Clients that left and came back, by the time of coming back.

    Static members are known by their instance id, members of the consumer protocol by their member id, others by client
    id and host. Where several have the same ones, or where every start has a new host, a client that joins is paired
    with the one that went longest ago. ``logs`` where nothing but consumers' own logs is known:
    a member comes back only in the log that it went in.
    """
    pairs: list[tuple[MemberSession, MemberSession, bool]] = []
    went: set[int] = set()
    came: set[int] = set()
    for same in _chains(sessions, shared):
        for before, after in pairwise(same):
            if before.ended_at_ms is None or after.joined_at_ms is None or before.end == "replaced":
                continue
            # A client with a name is another one only where it has a single session.
            named = before.member_id != after.member_id
            went |= {id(before), id(after)} if named else {id(before)}
            came |= {id(before), id(after)} if named else {id(after)}
            if after.joined_at_ms - before.ended_at_ms <= PAIRED_WITHIN_MS and (
                logs is None or not logs.was_there(before, after)
            ):
                pairs.append((before, after, before.confidence in (None, EXACT)))
    dynamic = [each for each in sessions if not each.group_instance_id]
    gone = [each for each in dynamic if id(each) not in went]
    joined = [each for each in dynamic if id(each) not in came]
    pairs += [(before, after, False) for before, after in _by_order(gone, joined, logs)]
    first: dict[int, str] = {}
    found = []
    for before, after, exact in sorted(pairs, key=lambda pair: (pair[1].joined_at_ms or 0, pair[1].member_id)):
        first[id(after)] = first.get(id(before), before.member_id)
        who = name_of(after)
        away = (after.joined_at_ms or 0) - (before.ended_at_ms or 0)
        found.append(Absence(who, who if exact else first[id(after)], before, after, away, exact))
    return sorted(found, key=lambda each: (each.back_at_ms, each.who))


def with_processes(absences: Iterable[Absence], events: Iterable[ObservedEvent]) -> list[Absence]:
    """With what consumers' own events say of their processes: one that went on notices that its member is gone, and
    forgets its member id; one that is new subscribes."""
    by_client: dict[str | None, list[ObservedEvent]] = defaultdict(list)
    for event in events:
        by_client[event.client_id].append(event)
    return [replace(each, went_on=_went_on(each, by_client[each.after.client_id])) for each in absences]


def _went_on(absence: Absence, events: Iterable[ObservedEvent]) -> bool | None:
    if not absence.is_silent:
        return None
    started = False
    for event in events:
        if event.event == RESET and event.member_id == absence.before.member_id and event.at_ms >= absence.gone_at_ms:
            return True
        started |= event.event == SUBSCRIBING and absence.went_at_ms < event.at_ms <= absence.back_at_ms
    return False if started else None


def _chains(sessions: Iterable[MemberSession], shared: set[ClientKey]) -> list[list[MemberSession]]:
    """Sessions of one client each."""
    chains: dict[tuple[str, ...], list[MemberSession]] = defaultdict(list)
    for session in sessions:
        if session.group_instance_id:
            chains["instance", session.group_instance_id].append(session)
        elif session.client_id and (session.client_id, session.client_host) not in shared:
            chains["client", session.client_id, session.client_host or ""].append(session)
        else:
            chains["member", session.member_id].append(session)
    return list(chains.values())


def _by_order(
    went: list[MemberSession], came: list[MemberSession], logs: ConsumerLogs | None
) -> list[tuple[MemberSession, MemberSession]]:
    """Pairs of sessions that can be of one client: the same process if that is known, else the one that went first."""
    gone = sorted(
        (session for session in went if session.ended_at_ms is not None and session.end != "replaced"),
        key=lambda session: ((session.ended_at_ms or 0) - silent_ms(session), session.member_id),
    )
    found = []
    for after in came:
        joined = after.joined_at_ms
        if joined is None:
            continue
        there = [each for each in gone if _fits(each, after, joined) and (logs is None or logs.may_be_one(each, after))]
        before = next((each for each in there if each.member_id == after.same_process_as), None) or next(
            (each for each in there if after.same_process_as in (None, ANOTHER_PROCESS)), None
        )
        if before is not None:
            gone.remove(before)
            found.append((before, after))
    return found


def _fits(before: MemberSession, after: MemberSession, joined: int) -> bool:
    is_silent = before.end == "session-expiry" and before.session_timeout_ms is None
    # A client of another name that was there already is no return: several members may have gone at that time.
    unknown = is_silent and before.client_id == after.client_id
    went = (before.ended_at_ms or 0) - (UNKNOWN_SESSION_MS if unknown else silent_ms(before))
    return before is not after and joined - PAIRED_WITHIN_MS < (before.ended_at_ms or 0) and went <= joined
