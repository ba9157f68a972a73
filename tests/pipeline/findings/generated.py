"""Incidents of a seed: groups of random kinds, to whose members several things are done at overlapping times.

The simulator plays them. The ledger says what was done, and so what is to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rejoin.simulation.scenario.model import Scenario
from tests.pipeline.findings.ledgers import Done, Group

SECOND = 1_000
BEGINS_S, ENDS_S = 60, 840
"""What is done to groups begins within these."""
HORIZON_S = 960
NAMES = ("orders", "mail", "stock", "audit", "search", "fraud-eu", "ads.v2", "geo")
EAGER = ("range", "roundrobin", "sticky")


@dataclass
class Incident:
    """A scenario, its groups, and the ledger; ``away`` are the broker's outages from and to, in ms."""

    seed: int
    scenario: Scenario
    groups: dict[str, Group]
    done: list[Done]
    away: list[tuple[int, int]]


@dataclass
class _Group:
    """One group while it is drawn."""

    name: str
    random: Random
    size: int
    static: bool
    assignor: str
    session_s: int
    max_poll_s: int
    away: tuple[int, int]
    """When the broker is away and what comes of it: nothing else is done then."""
    events: list[dict[str, Any]] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)

    def member(self, number: int) -> str:
        return f"{self.name}-{number}"

    def start_s(self, length_s: float) -> int:
        """An instant from which the broker is there for so long."""
        before, after = self.away[0] - length_s - self.session_s, ENDS_S - length_s
        ranges = [(BEGINS_S, int(before)), (self.away[1], int(after))]
        lengths = [max(0, to - begin) for begin, to in ranges]
        begin, to = self.random.choices(ranges, lengths)[0] if any(lengths) else (self.away[1], self.away[1])
        return self.random.randint(begin, max(begin, to))

    def note(self, finding: str, members: list[str], from_s: float, to_s: float, *, must: bool = True) -> None:
        span = round(from_s * SECOND), round(to_s * SECOND)
        self.done.append(Done(self.name, finding, tuple(members), *span, must=must))

    # -- what is done

    def rolling_restart(self, members: list[str]) -> None:
        every, down = self.random.randint(11, 45), self.random.randint(2, 9)
        if self.static:
            beyond = self.random.random() < 0.6
            down = self.session_s + self.random.randint(4, 9) if beyond else self.random.randint(1, self.session_s // 2)
            every = max(every, down + 5)
        at = self.start_s(every * len(members) + down)
        self.random.shuffle(members)
        for nth, member in enumerate(members):
            self.events.append({"at": f"{at + nth * every}s", "stop": {"who": member, "down": f"{down}s"}})
        to = at + every * (len(members) - 1) + down
        if not self.static:
            self.note("rolling-restart", members, at, to)
        elif beyond:
            self.note("session-too-short", members, at, to)

    def crash_loop(self, member: str) -> None:
        times, every, down = self.random.randint(4, 7), self.random.randint(22, 55), self.random.randint(2, 15)
        at = self.start_s(times * every)
        if self.static:
            down = self.session_s + self.random.randint(3, 8)
            every = max(every, down + 10)
        self.events.append(
            {"at": f"{at}s", "flap": {"who": member, "every": f"{every}s", "down": f"{down}s", "times": times}}
        )
        self.note("flapping-member", [member], at, at + times * every)

    def slow_handler(self, member: str) -> None:
        length = self.max_poll_s + self.random.randint(6, 14)
        at = self.start_s(length)
        self.events.append({"at": f"{at}s", "stuck": {"who": member, "for": f"{length}s"}})
        self.note("max-poll-exceeded", [member], at, at + length)

    def pause(self, member: str) -> None:
        length = self.session_s + self.random.randint(5, 15)
        at = self.start_s(length)
        self.events.append({"at": f"{at}s", "pause": {"who": member, "for": f"{length}s"}})
        self.note("session-too-short", [member], at, at + length)

    def kill(self, member: str) -> None:
        at = self.start_s(self.session_s)
        self.events.append({"at": f"{at}s", "crash": {"who": member}})
        self.note("died-without-leaving", [member], at, at + self.session_s)

    def change(self) -> None:
        """One member is added and taken away again."""
        lasts = self.random.randint(60, 200)
        at = self.start_s(lasts)
        self.events.append({"at": f"{at}s", "scale": {"group": self.name, "to": self.size + 1}})
        self.events.append({"at": f"{at + lasts}s", "scale": {"group": self.name, "to": self.size}})
        self.note("membership-changed", [self.member(self.size + 1)], at, at + lasts, must=False)

    def grow(self) -> None:
        at = self.start_s(30)
        self.events.append({"at": f"{at}s", "grow": {"topic": self.name, "to": 3 * self.size}})
        self.note("topic-growth", [], at, at + 30)

    def duplicate(self, member: str) -> None:
        at = self.start_s(30)
        self.events.append({"at": f"{at}s", "duplicate": {"who": member}})
        self.note("duplicate-instance-id", [member], at, at + 10)

    def draw(self) -> None:
        """Two or three things that members suffer, each of its own members, and some that the group does."""
        members = [self.member(number) for number in range(1, self.size + 1)]
        self.random.shuffle(members)
        if self.random.random() < 0.7:
            number = max(3, self.size // 2 + 1)
            self.rolling_restart([members.pop() for _ in range(number)])
        single: list[Callable[[str], None]] = [self.crash_loop, self.slow_handler, self.pause]
        if self.static:
            single.append(self.duplicate)
        killed = False
        for act in self.random.sample(single, min(len(members), self.random.randint(1, 3))):
            act(members.pop())
        if members and self.random.random() < 0.4:
            killed = True
            self.kill(members.pop())
        if not killed and not self.static and self.random.random() < 0.4:
            self.change()
        if self.random.random() < 0.4:
            self.grow()

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "topics": self.name,
            "consumers": self.size,
            "assignor": self.assignor,
            "static": self.static,
            "commit": "after",
            "session_timeout": f"{self.session_s}s",
            "heartbeat_interval": "2s",
            "max_poll_interval": f"{self.max_poll_s}s",
            "metadata_max_age": "8s",
            "revive": "1d",
            "poll": "2s",
            "start": {"every": "100ms"},
        }


def _groups(random: Random, away: tuple[int, int]) -> Iterator[_Group]:
    for name in random.sample(NAMES, random.randint(3, 4)):
        static = random.random() < 0.25
        assignor = random.choice([*EAGER, "cooperative-sticky", "cooperative-sticky"])
        session = random.randint(8, 14)
        group = _Group(name, random, random.randint(5, 8), static, assignor, session, random.randint(15, 20), away)
        group.draw()
        yield group


def incident(seed: int) -> Incident:
    """The incident of a seed."""
    random = Random(seed)
    nodes = random.choice((1, 1, 3))
    down = random.randint(15, 60)
    at = random.randint(100, 700)
    groups = list(_groups(random, (at - 30, at + down + 90)))
    events = [each for group in groups for each in group.events]
    outage = (
        {"restart": {"down": f"{down}s"}} if nodes == 1 else {"failover": {"group": groups[0].name, "down": f"{down}s"}}
    )
    events.append({"at": f"{at}s", **outage})
    scenario = Scenario.model_validate(
        {
            "horizon": f"{HORIZON_S}s",
            "seed": seed,
            "topics": {group.name: {"partitions": 2 * group.size, "records_per_second": 0.05} for group in groups},
            "groups": {group.name: group.settings for group in groups},
            "coordinator": {"nodes": nodes},
            "events": sorted(events, key=lambda each: float(each["at"].removesuffix("s"))),
        }
    )
    kinds = {
        group.name: Group("cooperative" if "cooperative" in group.assignor else "eager", group.static, java=False)
        for group in groups
    }
    return Incident(
        seed, scenario, kinds, [each for group in groups for each in group.done], [(at * SECOND, (at + down) * SECOND)]
    )
