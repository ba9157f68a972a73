"""Lives drawn from a seed: the same actions as the plan's, in another order, of other members, at other times.

A recording of such a life is one that no rule was made with.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

MEMBERS: Final = 3
SETTLE_SECONDS: Final = 15
"""Between two actions: a session, and the rejoin of all others."""
BROKER_SECONDS: Final = 60
"""Time from a stop of the broker until the group is stable again."""

Action = dict[str, Any]


def drawn(seed: int, groups: dict[str, bool]) -> list[Action]:
    """The actions of all groups, each with whether its members are static, and of their broker."""
    draws = {name: Random(f"{seed} {name}") for name in groups}
    lives = {name: _life(draws[name], static=static) for name, static in groups.items()}
    draw = Random(f"{seed} {' '.join(groups)}")
    all_ended = max(end for _, end in lives.values())
    away = draw.randint(6, 12)
    actions: list[Action] = [
        {"at": all_ended, "do": "broker-restart", "away": away, "by": draw.choice(("SIGTERM", "SIGKILL"))}
    ]
    for name, (life, _) in lives.items():
        after = all_ended + away + BROKER_SECONDS + draw.randint(0, 5)
        last = {"do": "duplicate"} if groups[name] else {"do": "stop"}
        life.append({"at": after, **last, "members": [draw.randint(1, MEMBERS if groups[name] else MEMBERS + 1)]})
        for action in life:
            if "members" in action:
                action["members"] = [f"{name}-{number}" for number in action["members"]]
            if action["do"] == "grow":
                action["topics"] = [name]
        actions += life
    until = max(action["at"] for action in actions) + 25
    actions.append({"at": 0, "do": "produce", "for": until - 5})
    return sorted(actions, key=lambda action: int(action["at"]))


def _life(draw: Random, *, static: bool) -> tuple[list[Action], int]:
    """Actions on one group, and the instant when the last has passed."""
    kinds = [_kill, _slow_handler, _rolling_restart, _grow, *(() if static else (_start, _pause))]
    draw.shuffle(kinds)
    members = [draw.randint(1, MEMBERS) for _ in kinds]
    at, actions = 6 + draw.randint(0, 6), []
    for kind, member in zip(kinds, members, strict=True):
        done, seconds = kind(draw, at, member)
        actions += done
        at += seconds + SETTLE_SECONDS + draw.randint(0, 4)
    return actions, at


def _start(draw: Random, at: int, _: int) -> tuple[list[Action], int]:
    return [{"at": at, "do": "start", "members": [MEMBERS + 1]}], 0


def _kill(draw: Random, at: int, member: int) -> tuple[list[Action], int]:
    away = draw.randint(16, 22)
    back = {"at": at + away, "do": "start", "members": [member]}
    return [{"at": at, "do": "kill", "members": [member]}, back], away


def _pause(draw: Random, at: int, member: int) -> tuple[list[Action], int]:
    seconds = draw.randint(12, 18)
    return [{"at": at, "do": "pause", "members": [member], "for": seconds}], seconds


def _slow_handler(draw: Random, at: int, member: int) -> tuple[list[Action], int]:
    seconds = draw.randint(20, 30)
    return [{"at": at, "do": "slow-handler", "members": [member], "for": seconds}], seconds


def _rolling_restart(draw: Random, at: int, _: int) -> tuple[list[Action], int]:
    members = draw.sample(range(1, MEMBERS + 1), draw.randint(2, MEMBERS))
    every = draw.randint(8, 12)
    action = {"at": at, "do": "rolling-restart", "members": members, "every": every, "away": draw.randint(2, 3)}
    return [action], every * len(members)


def _grow(draw: Random, at: int, _: int) -> tuple[list[Action], int]:
    return [{"at": at, "do": "grow", "partitions": draw.randint(7, 12)}], 8
