"""Rolling restarts: restarts one after the other, cut into waves, and which of the waves are deploys.

What is said of them is in ``rules/restarts.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.absences import Absence
from rejoin.pipeline.findings.history import GroupHistory

WAVE_MS: Final = 30 * 60_000
"""Restarts that are further apart than this have nothing to do with each other."""
WIDER: Final = 3
"""A gap that is so many times as long as most gaps of a wave ends it."""
LEAST_CUT_MS: Final = 30_000
"""No wave is cut at a gap shorter than this."""
FLAPS: Final = 3
"""Absences of one client within :data:`WAVE_MS` of each other that make it a flapping one."""
LEAST_KILLED: Final = 3
"""Fewer members that died one after the other are single kills, where they were not away for the same time."""
SAME_MS: Final = 1_000
"""Two members that one deploy kills are away for equally long, within this."""
ALIKE_MS: Final = 5_000
"""Members that a deploy kills are away for equally long, within this."""


def deploys(history: GroupHistory, restarts: Sequence[Absence]) -> list[list[Absence]]:
    """Rolling restarts. In one deploy, all members leave cleanly or all are killed. Exception: a single kill in the gap
    where a clean leave was due. Kills alone are a deploy only where most members die in turn, each back before the next
    one dies: a kill and a pause of two members are two incidents."""
    clean = waves(each for each in restarts if not each.is_silent)
    killed = [each for each in restarts if each.is_silent]
    for wave in clean:
        fitting = [each for each in killed if _has_its_turn(wave, each)]
        if len(fitting) <= len(wave) / 2:
            wave.extend(fitting)
            killed = [each for each in killed if each not in fitting]
    alike = [wave for wave in waves(killed) if _away_alike(wave) and _dies_in_turn(history, wave)]
    found = [sorted(wave, key=lambda one: (one.went_at_ms, one.who)) for wave in [*clean, *alike]]
    return sorted((wave for wave in found if is_deploy(history, wave)), key=lambda wave: wave[0].went_at_ms)


def _has_its_turn(wave: Sequence[Absence], absence: Absence) -> bool:
    """Whether a wave has a gap just where this one went, or went on with it."""
    if len(wave) < FLAPS or any(each.client == absence.client for each in wave):
        return False
    times = sorted(each.went_at_ms for each in wave)
    gaps = sorted(after - before for before, after in pairwise(times))
    usual = gaps[(len(gaps) - 1) // 2]
    before = [at for at in times if at <= absence.went_at_ms]
    after = [at for at in times if at > absence.went_at_ms]
    if before and after:
        return after[0] - before[-1] >= 1.6 * usual
    distance = absence.went_at_ms - before[-1] if before else after[0] - absence.went_at_ms
    return 0.6 * usual <= distance <= 1.4 * usual


def _dies_in_turn(history: GroupHistory, wave: Sequence[Absence]) -> bool:
    """Whether most members died, and each was back before the next one went; two of them, after the same time."""
    size = max((history.size_at(each.went_at_ms - 1) for each in wave), default=0)
    in_turn = all(before.back_at_ms <= after.went_at_ms for before, after in pairwise(wave))
    enough = len(wave) >= LEAST_KILLED or (len(wave) > 1 and _away_alike(wave, SAME_MS))
    return enough and 2 * len(wave) > size and in_turn


def _away_alike(wave: Sequence[Absence], within_ms: int = ALIKE_MS) -> bool:
    away = [each.away_ms for each in wave]
    return max(away) - min(away) <= within_ms


def waves(restarts: Iterable[Absence]) -> list[list[Absence]]:
    """Restarts one after the other: cut where a client comes a second time, and at gaps far wider than most."""
    found: list[list[Absence]] = []
    todo: list[list[Absence]] = []
    for each in sorted(restarts, key=lambda one: (one.went_at_ms, one.who)):
        if todo and each.went_at_ms - todo[-1][-1].went_at_ms <= WAVE_MS:
            todo[-1].append(each)
        else:
            todo.append([each])
    while todo:
        wave = todo.pop(0)
        cut = _cut(wave)
        if cut is None:
            found.append(wave)
        else:
            todo[:0] = [wave[:cut], wave[cut:]]
    return found


def _cut(wave: Sequence[Absence]) -> int | None:
    """Where a wave is to be cut: the number of the restart that begins the next one."""
    gaps = [after.went_at_ms - before.went_at_ms for before, after in pairwise(wave)]
    last: dict[str, int] = {}
    for nth, each in enumerate(wave):
        before = last.get(each.client)
        if before is not None:
            return max(range(before, nth), key=lambda at: gaps[at]) + 1
        last[each.client] = nth
    return widest_gap(gaps)


def widest_gap(gaps: Sequence[int]) -> int | None:
    """Where to cut at a gap that is far wider than most; None if there is none."""
    if len(gaps) < 2:
        return None
    usual = sorted(gaps)[(len(gaps) - 1) // 2]
    widest = max(range(len(gaps)), key=lambda at: gaps[at])
    return widest + 1 if gaps[widest] > max(LEAST_CUT_MS, WIDER * usual) else None


def is_deploy(history: GroupHistory, wave: Sequence[Absence]) -> bool:
    """Whether a good part of the group was restarted, each client once and a few at a time."""
    begin, end = wave[0].gone_at_ms, max(each.back_at_ms for each in wave)
    size = max(
        (len(one.members_before or ()) for one in history.later if begin <= one.prepared_at_ms <= end), default=0
    )
    size = size or max(len(wave), history.size_at(begin))
    steps = sorted(step for each in wave if each.away_ms > 0 for step in ((each.gone_at_ms, 1), (each.back_at_ms, -1)))
    away = most = 0
    for _, step in steps:
        away += step
        most = max(most, away)
    enough = len(wave) >= max(2, size / 2) or (len(wave) >= 3 and all(each.exact for each in wave))
    return enough and most <= max(1, size / 2) and not _may_be_two_incidents(history, wave)


def _may_be_two_incidents(history: GroupHistory, wave: Sequence[Absence]) -> bool:
    """Whether a wave is two restarts far from each other, of no more than half of the group. No other gap confirms
    theirs, and a log that begins or ends near them does not show whether more members followed."""
    if len(wave) != 2 or wave[1].went_at_ms - wave[0].went_at_ms <= LEAST_CUT_MS:
        return False
    begin, end = wave[0].gone_at_ms, max(each.back_at_ms for each in wave)
    sizes = (
        len({*one.members_before, *_away_at(wave, one.prepared_at_ms)})
        for one in history.later
        if one.members_before and begin <= one.prepared_at_ms <= end
    )
    return 2 * len(wave) <= max(sizes, default=history.size_at(begin))


def _away_at(wave: Sequence[Absence], at_ms: int) -> list[str]:
    return [each.before.member_id for each in wave if each.gone_at_ms <= at_ms <= each.back_at_ms]
