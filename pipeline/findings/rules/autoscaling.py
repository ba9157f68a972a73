"""An autoscaler that scales a group back and forth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.formatting import count, period, seconds, spans, times
from rejoin.pipeline.findings.observed_rows import MemberSession, all_exact
from rejoin.pipeline.findings.phrases import capital, share, stood_still

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
    if history.is_share_group:
        # No member of a share group stands still as others come and go.
        return
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
