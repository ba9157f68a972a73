"""The five scenes of the demo, in half a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rejoin.demo.show import DemoScreen
from rejoin.demo.stage import Stage, StageFailed
from rejoin.journal.envelope import JournalRow
from rejoin.journal.events import client as client_events
from rejoin.journal.events import coordinator as coordinator_events
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent
from rejoin.journal.events.coordinator import RebalanceCompleted
from rejoin.journal.reader import read_journal
from rejoin.journal.schema import JournalSchema

PARTITIONS = 12
TOPIC = "orders"
SESSION_TIMEOUT_MS = 6_000
SETTINGS = {"group.initial.rebalance.delay.ms": "1000"}
LOOK_EVERY_SECONDS = 0.1
PATIENCE_SECONDS = 30.0

COOPERATIVE, EAGER, STATIC = "coop", "eager", "static"


def events(module: Any, base: type[Event]) -> JournalSchema:
    """The journal schema of every event in a module."""
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    return JournalSchema(event for event in found if not event.__subclasses__())


COORDINATOR_SCHEMA = events(coordinator_events, Event)
CLIENT_SCHEMA = events(client_events, ConsumerEvent)


class Demo:
    """Plays the scenes: starts and kills consumers, and waits for what must come of it."""

    def __init__(self, stage: Stage, screen: DemoScreen) -> None:
        self.stage = stage
        self.screen = screen
        self.seen = 0
        self.watched: list[str] = []
        self.shown: list[str] = []

    def play(self) -> None:
        self._form()
        self._join_cooperatively()
        self._crash()
        self._restart_static()
        self._join_eagerly()

    # --- scenes

    def _form(self) -> None:
        self.screen.scene(
            1,
            "Three consumer processes form a group",
            "The first to be added leads. The coordinator waits a moment for more members before it begins.",
        )
        self.shown = [COOPERATIVE]
        self._start(COOPERATIVE, "cooperative-sticky", 1, 3)
        self._until(lambda: self._is_spread(COOPERATIVE, 3), "the group of three")
        self.screen.settle()

    def _join_cooperatively(self) -> None:
        self.screen.scene(
            2,
            "A fourth joins, cooperatively",
            "No consumer stops: the members keep what they have, give up only what moves, and a second, short rebalance"
            " hands that over.",
        )
        self._start(COOPERATIVE, "cooperative-sticky", 4, 4)
        self._until(lambda: self._is_spread(COOPERATIVE, 4), "the group of four")
        self.screen.settle()

    def _crash(self) -> None:
        self.screen.scene(
            3,
            "One is killed with kill -9",
            f"It sends nothing any more. The coordinator misses its heartbeats for {SESSION_TIMEOUT_MS // 1000} s,"
            " and gives its partitions away.",
        )
        victim = next(consumer for consumer in self.stage.consumers if consumer.name == f"{COOPERATIVE}-2")
        self.screen.act(f"kill -9 {victim.name}")
        victim.crash()
        # The groups of the next scenes form meanwhile.
        self._start(STATIC, "cooperative-sticky", 1, 2, static=True, silent=True)
        self._start(EAGER, "sticky", 1, 3, silent=True)
        self._until(lambda: self._is_spread(COOPERATIVE, 3), "the eviction")
        self.screen.settle()

    def _restart_static(self) -> None:
        self.screen.scene(
            4,
            "A static member is killed and comes back",
            "It has a group.instance.id and is back before its session ends: the same partitions, the same generation,"
            " no rebalance at all.",
        )
        self.shown = [STATIC]
        self._until(lambda: self._is_spread(STATIC, 2), "the static group")
        victim = next(consumer for consumer in self.stage.consumers if consumer.name == f"{STATIC}-2")
        before = self._member_ids(STATIC)
        self.screen.act(f"kill -9 {victim.name}, and start it again")
        victim.crash()
        self._start(STATIC, "cooperative-sticky", 2, 2, static=True, silent=True)
        self._until(
            lambda: self._is_spread(STATIC, 2) and self._member_ids(STATIC) != before, "the return of the static member"
        )
        self.screen.settle()

    def _join_eagerly(self) -> None:
        self.screen.scene(
            5,
            "The join of scene 2 once more, with an eager assignor",
            "All members give up everything first; nothing is read until the new assignment is there.",
        )
        self.shown = [EAGER]
        self._until(lambda: self._is_spread(EAGER, 3), "the eager group")
        self._start(EAGER, "sticky", 4, 4)
        self._until(lambda: self._is_spread(EAGER, 4), "the eager group of four")
        self.screen.settle()

    # --- doing and waiting

    def _start(
        self, group_id: str, assignor: str, first: int, last: int, *, static: bool = False, silent: bool = False
    ) -> None:
        for number in range(first, last + 1):
            if not silent:
                self.screen.act(f"start {group_id}-{number}")
            self.stage.consume(
                group_id,
                group_id,
                assignor,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                number=number,
                static=static,
                # What a consumer has to flush for a partition that it gives up, and to load for one that it gets.
                revoke_time="40ms",
                assign_time="120ms",
            )

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        """Show what happens until something is so. Raises :class:`StageFailed` when it takes too long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self._show_new_events()
            if reached():
                break
            self.stage.check()
            if time.monotonic() > deadline:
                raise StageFailed(f"waited {PATIENCE_SECONDS:.0f} s for {what}")
            time.sleep(LOOK_EVERY_SECONDS)
        self._show_new_events()

    def _show_new_events(self) -> None:
        rows, self.seen = self.stage.rows(self.seen)
        for row in rows:
            if row.get("group_id") in self.shown:
                event = COORDINATOR_SCHEMA.events[row["event"]]
                self.screen.event(event.model_validate({name: row[name] for name in event.model_fields}))
        views = (self.stage.group(group_id) for group_id in self.shown)
        self.screen.draw([view for view in views if view is not None])

    def _is_spread(self, group_id: str, members: int) -> bool:
        """Whether the group is Stable with so many members, and every partition has an owner."""
        view = self.stage.group(group_id)
        if view is None or view["state"] != "Stable" or len(view["members"]) != members:
            return False
        owned = [
            index for member in view["members"] for index in (member["assignment"] or {}).get(self.stage.topic, ())
        ]
        return len(owned) == PARTITIONS

    def _member_ids(self, group_id: str) -> set[str]:
        view = self.stage.group(group_id)
        return {member["memberId"] for member in view["members"]} if view is not None else set()


def completed(folder: Path) -> list[JournalRow]:
    rows = read_journal(folder, COORDINATOR_SCHEMA, source="coordinator")
    return [row for row in rows if isinstance(row.event, RebalanceCompleted)]
