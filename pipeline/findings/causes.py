"""Separates the causes of a group's rebalances before any of them is counted.

Each absence of a client, and each rebalance, belongs to one cause at the most. What is known for certain is taken out
first: polls that came late, brokers that were away; then the client that came back by far most often, and the next such
one; then restarts one after the other, cut into waves where the gaps say so; then members that were silent for longer
than their session; then what came or went for good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from rejoin.pipeline.findings.absences import PAIRED_WITHIN_MS, SILENT_ENDS, Absence
from rejoin.pipeline.findings.deploys import FLAPS, LEAST_CUT_MS, WAVE_MS, WIDER, deploys, widest_gap
from rejoin.pipeline.findings.history import WAITS_MS, GroupHistory
from rejoin.pipeline.findings.observed_rows import SUBSCRIPTION_CHANGED, MemberSession, ObservedRebalance
from rejoin.pipeline.findings.outages import Outage
from rejoin.pipeline.vocabulary import CLIENT_LOG

BY_FAR: Final = 2
"""A flapping client came back so many times as often as most others."""
SOON_MS: Final = 60_000
"""A member that was removed for silence and is back within this (or one more session) was not gone for good."""
AFTER_OUTAGE_MS: Final = 60_000
"""A rebalance that begins so soon after the coordinator was back has to do with it."""
TOGETHER_MS: Final = 3_000
"""Sessions that end through one outage end within this."""
AT_ONCE_MS: Final = 1_000
"""A consumer whose heartbeat was refused joins again within this."""
ROUNDS: Final = 4
"""So many restarts of most clients, with no more time between the rounds than within them, are no deploys."""
BEGINS_MS: Final = 60_000
"""A rebalance and the leave or join that it began with are no further apart than this."""
STARTING_MS: Final = 15_000
"""Members that join within this of the one before belong to the start of a group that has just begun."""

LATE_POLL: Final = "late-poll"
OUTAGE: Final = "outage"
FLAPPING: Final = "flapping"
DEPLOY: Final = "deploy"
MISSED_SESSION: Final = "missed-session"
KILLED: Final = "killed"
CHANGED: Final = "changed"
RESTARTED: Final = "restarted"
SUBSCRIBED: Final = "subscribed"


class RebalanceCause(NamedTuple):
    """Cause of a rebalance: its kind, and the client, topic or broker behind it."""

    kind: str
    name: str


@dataclass
class Causes:
    """The causes of one group, apart from each other."""

    history: GroupHistory
    outages: list[Outage] = field(default_factory=list)
    late_polls: list[Absence] = field(default_factory=list)
    flapping: list[list[Absence]] = field(default_factory=list)
    deploys: list[list[Absence]] = field(default_factory=list)
    missed_sessions: list[Absence] = field(default_factory=list)
    killed: list[Absence] = field(default_factory=list)
    """Members that died and whose process was started again."""
    thrown_out: list[Absence] = field(default_factory=list)
    """Members of which only their own return shows that they had been removed."""
    dead: list[MemberSession] = field(default_factory=list)
    """Members that fell silent and are not known to have come back."""
    restarted: list[Absence] = field(default_factory=list)
    """Single restarts that belong to none of the others."""
    added: list[MemberSession] = field(default_factory=list)
    taken_away: list[MemberSession] = field(default_factory=list)

    # -- which rebalances

    @cached_property
    def _of_absences(self) -> list[tuple[Absence, RebalanceCause]]:
        kinds: list[tuple[str, Iterable[Absence]]] = [
            (LATE_POLL, self.late_polls),
            *((FLAPPING, each) for each in self.flapping),
            *((DEPLOY, each) for each in self.deploys),
            (MISSED_SESSION, [*self.missed_sessions, *self.thrown_out]),
            (KILLED, self.killed),
            (RESTARTED, self.restarted),
        ]
        found = [(each, RebalanceCause(kind, each.who)) for kind, absences in kinds for each in absences]
        after = self.history.absences
        return [*found, *((each, RebalanceCause(OUTAGE, "")) for each in after if id(each) in self._outage_ids)]

    @cached_property
    def _of_absences_by_member(self) -> dict[str | None, list[tuple[int, Absence, RebalanceCause]]]:
        """Restarts, numbered, by the member ids from before and after."""
        found: dict[str | None, list[tuple[int, Absence, RebalanceCause]]] = defaultdict(list)
        for nth, (absence, cause) in enumerate(self._of_absences):
            for member_id in {absence.before.member_id, absence.after.member_id}:
                found[member_id].append((nth, absence, cause))
        return found

    _outage_ids: set[int] = field(default_factory=set)

    @cached_property
    def of_rebalances(self) -> dict[str, RebalanceCause]:
        """Rebalance to its cause, the second half of a cooperative one to that of the first; not all have one."""
        found: dict[str, RebalanceCause] = {}
        for each in self.history.rebalances:
            cause = found.get(self.history.begins(each).rebalance_id) or self._cause(each)
            if cause is not None:
                found[each.rebalance_id] = cause
        return found

    def _cause(self, rebalance: ObservedRebalance) -> RebalanceCause | None:
        member = rebalance.cause_member_id
        near: list[tuple[int, int, RebalanceCause]] = []
        for nth, absence, cause in self._of_absences_by_member.get(member, ()):
            distance = _distance(rebalance, absence)
            if distance is not None:
                near.append((distance, nth, cause))
        if near:
            return min(near)[2]
        if (rebalance.client_reason or "").startswith(SUBSCRIPTION_CHANGED):
            return RebalanceCause(SUBSCRIBED, self.history.who(member))
        if any(each.member_id == member for each in self.dead) and rebalance.cause in SILENT_ENDS:
            return RebalanceCause(KILLED, self.history.who(member))
        if rebalance.cause == "leave" and member in self._late_pollers:
            return RebalanceCause(LATE_POLL, self.history.who(member))
        if self._is_after_outage(rebalance):
            return RebalanceCause(OUTAGE, "")
        changed = [*self.added] if rebalance.cause == "join-new" else [*self.taken_away]
        if rebalance.cause in ("join-new", "leave") and any(each.member_id == member for each in changed):
            return RebalanceCause(CHANGED, self.history.who(member))
        return None

    @cached_property
    def _late_pollers(self) -> set[str | None]:
        """Member ids that left since they had not polled in time, whether they came back or not."""
        said = {session.member_id for session in self.history.sessions if self.history.left_late(session)}
        return said | {event.member_id for event in self.history.late_poll_events}

    def _is_after_outage(self, rebalance: ObservedRebalance) -> bool:
        if rebalance.initial or rebalance.cause == "leave" or self._is_after_growth(rebalance):
            return False
        return any(0 <= rebalance.prepared_at_ms - each.to_ms <= AFTER_OUTAGE_MS for each in self.outages)

    def _is_after_growth(self, rebalance: ObservedRebalance) -> bool:
        """Whether a member came with changed metadata, and a topic had grown since the coordinator was back."""
        back = max((each.to_ms for each in self.outages if each.to_ms <= rebalance.prepared_at_ms), default=0)
        if rebalance.cause not in ("rejoin-leader", "rejoin-metadata") or self.history.is_second_half(rebalance):
            return False
        return any(
            event.event == "topic_grown" and back <= event.at_ms <= rebalance.prepared_at_ms
            for event in self.history.events
        )

    def begun_by(self, *kinds: str, of: Iterable[Absence] | None = None) -> list[ObservedRebalance]:
        """Rebalances with one of these causes; of these absences alone if they are given."""
        names = None if of is None else {each.who for each in of}
        found = []
        for each in self.history.rebalances:
            cause = self.of_rebalances.get(each.rebalance_id)
            if cause is not None and cause.kind in kinds and (names is None or cause.name in names):
                found.append(each)
        return found


def _distance(rebalance: ObservedRebalance, absence: Absence) -> int | None:
    """How far a rebalance is from the leave or the join of an absence that it began with; None if it did not."""
    member, found = rebalance.cause_member_id, []
    if member is None:
        return None
    if rebalance.cause == "leave" or rebalance.cause in (*SILENT_ENDS, "sync-expiry"):
        if member == absence.before.member_id:
            found.append(abs(rebalance.prepared_at_ms - absence.gone_at_ms))
    elif member == absence.after.member_id and rebalance.cause in ("join-new", "static-metadata", "static-protocol"):
        found.append(abs(rebalance.prepared_at_ms - absence.back_at_ms))
    near = [each for each in found if each <= BEGINS_MS]
    return min(near, default=None)


def separate(history: GroupHistory) -> Causes:
    """The causes of a group's rebalances."""
    causes = Causes(history, outages=history.outages)
    rest = list(history.absences)
    late = {id(each) for each in rest if is_late_poll(history, each)}
    causes.late_polls, rest = _split(rest, late)
    causes._outage_ids = _of_outages(history, rest)
    _, rest = _split(rest, causes._outage_ids)
    clean = [each for each in _restarts(rest) if not each.is_silent]
    planned = {id(each) for wave in deploys(history, clean) for each in wave}
    flaps = [
        run
        for run in flapping(history, [each for each in rest if each.same_process is not True])
        # A member that went in three deploys went as often as deploys took it down.
        if not planned.issuperset(map(id, run))
    ]
    odd = [each for run in flaps for each in _odd_ones(run)]
    _, rest = _split(rest, {id(each) for run in flaps for each in run})
    causes.deploys = deploys(history, _restarts([*rest, *odd]))
    deployed = {id(each) for wave in causes.deploys for each in wave}
    causes.flapping = [[each for each in run if id(each) not in deployed] for run in flaps]
    _, rest = _split(rest, deployed)
    missed = {id(each) for each in rest if _missed_its_session(each)}
    causes.missed_sessions, rest = _split(rest, missed)
    by_return = {id(each) for each in causes.missed_sessions if _is_known_by_return(history, each)}
    causes.thrown_out, causes.missed_sessions = _split(causes.missed_sessions, by_return)
    causes.killed, rest = _split(rest, {id(each) for each in rest if each.is_silent and not _is_static(each)})
    causes.restarted = rest
    _sort_out_sessions(history, causes)
    return causes


def _split(absences: list[Absence], chosen: set[int]) -> tuple[list[Absence], list[Absence]]:
    return [each for each in absences if id(each) in chosen], [each for each in absences if id(each) not in chosen]


def is_late_poll(history: GroupHistory, absence: Absence) -> bool:
    """Whether a client left because it had not polled in time: by its own words, or by what was seen of it. A static
    member says nothing, and ends its heartbeats."""
    if history.left_late(absence.before):
        return absence.before.end != "did-not-rejoin" or absence.same_process is not False
    if absence.before.end not in ("left", "session-expiry"):
        return False
    since = absence.went_at_ms - BEGINS_MS // 4 if absence.is_silent else absence.gone_at_ms - BEGINS_MS
    return any(
        event.member_id == absence.before.member_id and since <= event.at_ms <= absence.gone_at_ms + BEGINS_MS
        for event in history.late_poll_events
    )


def _of_outages(history: GroupHistory, absences: Sequence[Absence]) -> set[int]:
    """Absences of members that lost their session because the coordinator was away, or came back under a new id for it.

    All sessions begin anew when a group is loaded, so those that the outage ended end together: where the source has no
    session timeout, the first one shows it.
    """
    found: set[int] = set()
    for outage in history.outages:
        near = [each for each in absences if _may_be_of(history, outage, each)]
        # A process that was started meanwhile did not lose its session by the outage; but some clients count their
        # requests anew on each connection, and then all of them look new.
        new = [each for each in near if each.is_new_process]
        if 2 * len(new) < len(near):
            near = [each for each in near if not each.is_new_process]
        unknown = [each.gone_at_ms for each in near if each.before.session_timeout_ms is None]
        latest = min(unknown, default=0) + TOGETHER_MS
        found |= {id(each) for each in near if each.before.session_timeout_ms is not None or each.gone_at_ms <= latest}
    return found


def _may_be_of(history: GroupHistory, outage: Outage, absence: Absence) -> bool:
    if absence.before.left_by_poll_timeout and not history.left_late(absence.before):
        return outage.from_ms <= absence.gone_at_ms
    if not absence.is_silent:
        return False
    grace = (absence.before.session_timeout_ms or SOON_MS) + SOON_MS // 4
    # A broker may load a group some seconds before it takes connections: sessions can end between the two.
    since = min(outage.load.at_ms, outage.to_ms)
    return (
        since <= absence.gone_at_ms <= outage.to_ms + grace
        and absence.went_at_ms >= outage.from_ms - SOON_MS
        and absence.back_at_ms >= outage.from_ms
    )


def _is_static(absence: Absence) -> bool:
    return absence.before.group_instance_id is not None


def _missed_its_session(absence: Absence) -> bool:
    """Whether a member was removed for silence and was back soon, and can be the same process (or is a static one)."""
    is_known = absence.exact or absence.same_process is True
    if absence.before.end != "session-expiry" or not is_known:
        return False
    soon = 0 <= absence.away_ms <= max(SOON_MS, absence.before.session_timeout_ms or 0)
    return soon and (_is_static(absence) or absence.same_process is not False)


def _is_known_by_return(history: GroupHistory, absence: Absence) -> bool:
    """Whether a consumer's own log alone shows the removal: the coordinator refused what it sent, so it joined anew."""
    return history.is_from_consumers and absence.away_ms < AT_ONCE_MS


def flapping(history: GroupHistory, absences: Iterable[Absence]) -> list[list[Absence]]:
    """The absences of each client that comes back again and again: far more often than most others, or as often as they
    where all of them crash.

    The one with the most is taken out first, so that it does not hide the next one.
    """
    by_client: dict[str, list[Absence]] = defaultdict(list)
    for each in absences:
        by_client[each.client].append(each)
    runs = {client: _run_of_one_kind(own) for client, own in by_client.items()}
    all_crash = _all_crash(history, list(runs.values()))
    # Clients that never went count as well.
    others = len({history.name_of(session) for session in history.sessions}) - len(runs)
    found = []
    while runs:
        client = max(sorted(runs), key=lambda one: len(runs[one]))
        run = runs.pop(client)
        rest = sorted([*(len(each) for each in runs.values()), *[0] * max(0, others)])
        usual = rest[(len(rest) - 1) // 2] if rest and not all_crash else 0
        if len(run) < max(FLAPS, BY_FAR * usual):
            break
        found.append(run)
    return sorted(found, key=lambda run: run[0].who)


def _all_crash(history: GroupHistory, runs: Sequence[Sequence[Absence]]) -> bool:
    """Whether most clients come back again and again, each on its own. Deploys that follow each other leave the group
    in peace for longer than they take from one member to the next."""
    often = [run for run in runs if len(run) >= ROUNDS]
    if 2 * len(often) <= max((len(each.members_before or ()) for each in history.later), default=len(runs)):
        return False
    rounds: list[list[Absence]] = []
    for each in sorted((one for run in often for one in run), key=lambda one: (one.went_at_ms, one.who)):
        if not rounds or each.client in {one.client for one in rounds[-1]}:
            rounds.append([])
        rounds[-1].append(each)
    within = sorted(b.went_at_ms - a.went_at_ms for each in rounds for a, b in pairwise(each))
    between = sorted(after[0].went_at_ms - before[-1].went_at_ms for before, after in pairwise(rounds))
    if not within or not between:
        return False
    return between[len(between) // 2] <= max(LEAST_CUT_MS, WIDER * within[len(within) // 2])


def _run_of_one_kind(absences: Sequence[Absence]) -> list[Absence]:
    """The longest run of absences of one client that began alike, with the others in between."""
    kinds = [[each for each in absences if each.is_silent is silent] for silent in (True, False)]
    longest = max((run for own in kinds if own for run in _runs(own)), key=len)
    begin, end = longest[0].gone_at_ms, longest[-1].back_at_ms
    return [each for each in absences if each in longest or begin < each.gone_at_ms < end]


def _runs(absences: Sequence[Absence]) -> list[list[Absence]]:
    """The absences of one client, cut where it was well for far longer than it mostly was."""
    runs: list[list[Absence]] = []
    for each in sorted(absences, key=lambda one: (one.back_at_ms, one.who)):
        if runs and each.back_at_ms - runs[-1][-1].back_at_ms <= WAVE_MS:
            runs[-1].append(each)
        else:
            runs.append([each])
    found: list[list[Absence]] = []
    while runs:
        run = runs.pop(0)
        gaps = [after.back_at_ms - before.back_at_ms for before, after in pairwise(run)]
        cut = widest_gap(gaps) if len(run) > FLAPS else None
        if cut is None:
            found.append(run)
        else:
            runs[:0] = [run[:cut], run[cut:]]
    return found


def _odd_ones(run: Sequence[Absence]) -> list[Absence]:
    """Absences of a flapping client that ended in another way than most: it can have been part of a deploy as well."""
    ends = Counter(each.before.end for each in run)
    usual, number = ends.most_common(1)[0]
    return [each for each in run if each.before.end != usual] if number >= FLAPS else []


def _restarts(absences: Iterable[Absence]) -> list[Absence]:
    """Absences of dynamic members that can be restarts: the process is not known to have gone on."""
    ends = ("left", "session-expiry", "did-not-rejoin")
    return [
        each for each in absences if not _is_static(each) and each.before.end in ends and each.same_process is not True
    ]


def _sort_out_sessions(history: GroupHistory, causes: Causes) -> None:
    """Members that fell silent for good, and those that came or went for good."""
    back = {id(each.before) for each in history.absences}
    again = {id(each.after) for each in history.absences}
    started = _started_by(history)
    names: set[str] = set()
    for session in history.sessions:
        name, known = history.name_of(session), history.name_of(session) in names
        names.add(name)
        ended = session.ended_at_ms
        fell_silent = id(session) not in back and ended is not None and session.end == "session-expiry"
        if fell_silent and not _joined_again(history, session) and not _may_still_come_back(causes, session):
            causes.dead.append(session)
        late_poll = history.left_late(session) or any(
            event.member_id == session.member_id for event in history.late_poll_events
        )
        goes = id(session) not in back and session.end == "left" and not late_poll
        if goes and ended is not None and history.size_at(ended) > 0:
            causes.taken_away.append(session)
        comes = session.joined_at_ms is not None and id(session) not in again and not known
        if comes and (session.joined_at_ms or 0) > started and not _comes_back_from_outage(history, session):
            causes.added.append(session)


def _comes_back_from_outage(history: GroupHistory, session: MemberSession) -> bool:
    """Whether a consumer's log has its first join when the coordinator was back: the consumer may have been a member
    before the log begins."""
    joined = session.joined_at_ms or 0
    return history.is_from_consumers and any(
        each.from_ms <= joined <= each.to_ms + AFTER_OUTAGE_MS for each in history.outages
    )


def _joined_again(history: GroupHistory, session: MemberSession) -> bool:
    """Whether a consumer's own log has it back in a generation, of which no session is known."""
    ended = session.ended_at_ms or 0
    return session.client_id is not None and any(
        event.event == "generation_joined"
        and event.source == CLIENT_LOG
        and event.client_id == session.client_id
        and ended < event.at_ms <= ended + PAIRED_WITHIN_MS
        for event in history.events
    )


def _started_by(history: GroupHistory) -> int:
    """Until when members belong to the start of the group; where the log begins later, those of the first minutes may
    have been there before."""
    joins = sorted(session.joined_at_ms for session in history.sessions if session.joined_at_ms is not None)
    if not history.rebalances or not joins:
        return 0
    if not history.rebalances[0].initial:
        return history.rebalances[0].prepared_at_ms + PAIRED_WITHIN_MS
    until = joins[0]
    for joined in joins:
        if joined - until > STARTING_MS:
            break
        until = joined
    return until


def _may_still_come_back(causes: Causes, session: MemberSession) -> bool:
    """Whether an outage ended a member's session with those of others that came back, and the source ends before this
    one had the time to."""
    ended, history = session.ended_at_ms or 0, causes.history
    together = any(
        id(each) in causes._outage_ids and abs(each.gone_at_ms - ended) <= TOGETHER_MS for each in history.absences
    )
    return together and history.end_ms - ended < WAITS_MS
