"""What deployments and autoscalers do to a group: new instance ids, scaling back and forth, and racks that flap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.absences import silent_ms, went_at_ms
from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients import SURVIVING_ID
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.formatting import count, names, period, seconds, spans, times
from rejoin.pipeline.findings.observed_rows import MemberSession, all_exact
from rejoin.pipeline.findings.phrases import capital, first, last, probably, share, stood_still, when
from rejoin.pipeline.findings.rules.groups import rack_changes

LEAST_RENAMED: Final = 2
"""Static members that come back with other ids, from so many on."""
STEP_GAP_MS: Final = 45_000
"""Members that come, or go, with no more between them than this belong to one step of an autoscaler."""
STEP: Final = 2
"""Members that a step adds or takes away at the least: restarts one by one are none."""
REVERSALS: Final = 3
"""An autoscaler that changes its direction so often thrashes."""
UNDONE: Final = 2
"""So many steps take away those whom the step before has added. A rolling restart by twos takes others each time."""
THRASH_GAP_MS: Final = 15 * 60_000
"""Steps that are further apart than this follow the load."""


# --- instance ids that change


def changing_instance_ids(causes: Causes) -> Iterator[Finding]:
    """Each start of a process has another group.instance.id: the coordinator keeps the old member until its session
    ends, and the new one is one more. That is worse than no static membership at all."""
    history = causes.history
    pairs = history.renamed
    if len(pairs) < LEAST_RENAMED:
        return
    mine = {session.member_id for pair in pairs for session in pair}
    caused = [each for each in history.later if each.cause_member_id in mine]
    old = [before.group_instance_id or "" for before, _ in pairs]
    new = [after.group_instance_id or "" for _, after in pairs]
    from_ms, to_ms = min(went_at_ms(one) for one, _ in pairs), max(one.joined_at_ms or 0 for _, one in pairs)
    unread = sum(silent_ms(before) for before, _ in pairs)
    cost = history.cost_s(caused) + unread / 1_000
    exact = all_exact([session for pair in pairs for session in pair])
    yield Finding(
        "changing-instance-ids",
        f"{probably(exact)}{count(len(pairs), 'static member')} came back with another group.instance.id",
        f"{names(old)} of {history.group_id} went for good, and {names(new)} came in their stead "
        f"({period(from_ms, to_ms)}): "
        f"each start has a new group.instance.id. The coordinator keeps the partitions for the old one until its "
        f"session ends, and both made the group rebalance ({count(len(caused), 'rebalance')})."
        + (f" The partitions had no reader for {seconds(unread)} s in all." if unread else ""),
        cost,
        from_ms,
        to_ms,
        setting="group.instance.id",
        advice=f"Take a group.instance.id that survives a restart: {SURVIVING_ID}. A pod's name in a Deployment, a "
        "UUID or a time of start does not. If none can be had, leave group.instance.id out.",
        numbers={
            "renamed": len(pairs),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=list(dict.fromkeys([*old, *new])),
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


# --- an autoscaler that thrashes


@dataclass
class _Step:
    """Members that came, or went, together."""

    by: int
    from_ms: int
    to_ms: int
    sessions: list[MemberSession] = field(default_factory=list)


def thrashing_autoscaler(causes: Causes) -> Iterator[Finding]:
    """Several members are added, taken away, added again: each step costs the whole group, and the lag that it makes
    begins the next one."""
    history = causes.history
    steps = _thrashing(_steps(causes))
    if len(steps) <= REVERSALS or sum(map(_undoes, steps, steps[1:])) < UNDONE:
        return
    moved = {session.member_id for step in steps for session in step.sessions}
    begins, ends = steps[0].from_ms, steps[-1].to_ms + STEP_GAP_MS
    caused = [each for each in history.later if each.cause_member_id in moved and begins <= each.prepared_at_ms <= ends]
    cost = history.cost_s(caused)
    sizes = [history.size_at(step.to_ms + 1) for step in steps]
    partitions = max((each.partitions or 0 for each in history.balances), default=0) or len(history.owned)
    idle = max(0, max(sizes) - partitions) if partitions else 0
    gaps = [after.from_ms - before.to_ms for before, after in pairwise(steps)]
    ceiling = (
        f" More than {partitions} members have nothing to do, as there are so many partitions"
        + (f": {count(idle, 'member')} stood idle." if idle else ".")
        if partitions
        else ""
    )
    yield Finding(
        "thrashing-autoscaler",
        f"{history.group_id} was scaled up and down {times(len(steps))}, between {min(sizes)} and {max(sizes)}",
        f"{capital(period(begins, steps[-1].to_ms))} {count(sum(step.by > 0 for step in steps), 'step')} added "
        f"members and {sum(step.by < 0 for step in steps)} took them away again, {spans(gaps)} apart: "
        f"{_signs(steps)}. "
        f"{share(history, caused)} came of it, {seconds(1_000 * cost / len(steps))} consumer-seconds a step."
        f"{ceiling}{stood_still(history, cost)}",
        cost,
        begins,
        steps[-1].to_ms,
        advice="Give the autoscaler a stabilisation window (behavior.scaleDown.stabilizationWindowSeconds of a "
        "HorizontalPodAutoscaler, cooldownPeriod of KEDA) longer than a rebalance and the lag that it leaves"
        + (f", and a maximum of {partitions} members" if partitions else "")
        + ". Scale by the rate of records, not by lag alone: each rebalance makes lag.",
        numbers={
            "steps": len(steps),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "partitions": partitions,
            "most_members": max(sizes),
            "idle": idle,
            "consumer_seconds": cost,
        },
        members=list(dict.fromkeys(history.name_of(each) for step in steps for each in step.sessions)),
        rebalances=[each.rebalance_id for each in caused],
        exact=all_exact(caused),
    )


def _signs(steps: Sequence[_Step]) -> str:
    return ", ".join(f"{step.by:+d}" for step in steps[:12]) + (", …" if len(steps) > 12 else "")


def _steps(causes: Causes) -> list[_Step]:
    """Members that came or went cleanly, by themselves or in steps; not those of restarts one after the other."""
    history = causes.history
    others = [*(each for wave in causes.deploys for each in wave), *causes.late_polls, *causes.killed]
    apart = {id(session) for each in others for session in (each.before, each.after)}
    changes: list[tuple[int, int, MemberSession]] = []
    for session in history.sessions:
        if id(session) in apart or session.group_instance_id is not None:
            continue
        if session.joined_at_ms is not None:
            changes.append((session.joined_at_ms, 1, session))
        if session.ended_at_ms is not None and session.end == "left":
            changes.append((session.ended_at_ms, -1, session))
    steps: list[_Step] = []
    for at_ms, by, session in sorted(changes, key=lambda each: (each[0], each[1], each[2].member_id)):
        if steps and steps[-1].by * by > 0 and at_ms - steps[-1].to_ms <= STEP_GAP_MS:
            steps[-1].by += by
            steps[-1].to_ms = at_ms
        else:
            steps.append(_Step(by, at_ms, at_ms))
        steps[-1].sessions.append(session)
    return [step for step in steps if abs(step.by) >= STEP]


def _thrashing(steps: Sequence[_Step]) -> list[_Step]:
    """The longest run of steps that go up and down in turn, each soon after the one before."""
    longest: list[_Step] = []
    run: list[_Step] = []
    for step in steps:
        if run and run[-1].by * step.by < 0 and step.from_ms - run[-1].to_ms <= THRASH_GAP_MS:
            run.append(step)
        else:
            run = [step]
        longest = max(longest, run, key=len)
    return list(longest)


def _undoes(before: _Step, after: _Step) -> bool:
    """Whether a step takes away mostly those that the one before has added."""
    same = {each.member_id for each in before.sessions} & {each.member_id for each in after.sessions}
    return before.by > 0 > after.by and 2 * len(same) >= -after.by


# --- racks that flap


def flapping_racks(causes: Causes) -> Iterator[Finding]:
    """A broker restarts, its replicas leave the in-sync racks of the partitions and come back, and the leader takes
    either for a change of the topics: two rebalances around each restart (KAFKA-20778)."""
    history = causes.history
    found = rack_changes(causes)
    caused = list({each.rebalance_id: each for _, pair in found for each in pair}.values())
    if not found or len(caused) < 2 * len(found):
        return
    cost = history.cost_s(caused)
    brokers = list(dict.fromkeys(f"broker {stop.node}" for stop, _ in found))
    yield Finding(
        "flapping-racks",
        f"Probably: each restart of a broker made {history.group_id} rebalance twice, as its racks changed",
        f"{share(history, caused)} {when(caused)} began around {count(len(found), 'restart')} of {names(brokers)}: "
        "once after it went, once after it was back, as the leader's metadata had changed. No topic grew: the "
        f"racks of the replicas had changed.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting="client.rack",
        advice="Consumers with client.rack assign by racks, and see each broker that goes as a change. Update the "
        "clients (KAFKA-20778), or leave client.rack out where fetching from followers is not needed.",
        numbers={
            "restarts": len(found),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=brokers,
        rebalances=[each.rebalance_id for each in caused],
        evidence=[stop.as_evidence() for stop, _ in found],
        exact=False,
    )
