"""Output of the demo: events as they happen, and below them the current owners."""

from __future__ import annotations

import re
import time
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    GroupCreated,
    GroupStateChanged,
    LeaderChanged,
    MemberIdHandedOut,
    MemberRejoined,
    OffsetsCommitted,
    RebalanceCompleted,
    RebalanceStarted,
    StaticMemberReplaced,
)
from rejoin.journal.formatting import format_event

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_green", "bright_magenta")
STATE_COLOURS = {
    "Stable": "bold green",
    "PreparingRebalance": "bold yellow",
    "CompletingRebalance": "yellow",
    "Empty": "dim",
}
SMALL_SCHEMA = (GroupCreated, GroupStateChanged, LeaderChanged, MemberIdHandedOut, OffsetsCommitted)
"""Events that would drown the others; the table below shows them anyway."""

UUID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SAME_TWICE = re.compile(r"\b([a-z]+-\d+) \(\1\)")


def short(text: str) -> str:
    """Member ids without their UUID, which leaves the client id."""
    return SAME_TWICE.sub(r"\1", UUID.sub("", text))


def in_short(event: Event) -> str:
    """An event as the demo says it: what clients said and the bounds are left to the journal."""
    match event:
        case MemberRejoined():
            return f"{event.group_id}  {event.member_id} rejoined"
        case StaticMemberReplaced():
            return f"{event.group_id}  {event.group_instance_id} is back under a new member id, without a rebalance"
        case RebalanceStarted():
            silent = event.model_copy(update={"cause": event.cause.model_copy(update={"client_reason": None})})
            return format_event(silent).split(" (at most")[0]
        case RebalanceCompleted():
            took = f", {event.regained} taken over" if event.owned_before and event.regained else ""
            return f"{event.group_id}  rebalanced in {event.rebalance_ms} ms, {event.moved} partitions moved{took}"
    return format_event(event)


class DemoScreen:
    """Prints events, and on a terminal keeps a table of the groups below them."""

    def __init__(self, console: Console, partitions: int) -> None:
        self.console = console
        self.partitions = partitions
        self._colours: dict[str, str] = {}
        self._began = time.monotonic()
        self._groups: list[dict[str, Any]] = []
        self._live = Live(console=console, refresh_per_second=12, transient=True) if console.is_terminal else None

    def __enter__(self) -> DemoScreen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    # --- words

    def scene(self, number: int, title: str, explanation: str) -> None:
        """Begin a scene."""
        self.console.print()
        self.console.print(Rule(f"[bold]{number}  {title}", align="left", style="dim"))
        self.console.print(f"[italic]{explanation}")

    def act(self, text: str) -> None:
        """Something that the demo itself does."""
        self.console.print(self._line(Text(f"▶ {text}", style="bold")))

    def event(self, event: Event) -> None:
        """An event of the coordinator."""
        if isinstance(event, SMALL_SCHEMA):
            return
        subject, _, words = short(in_short(event)).partition("  ")
        text = Text(words)
        for name in sorted({*re.findall(r"\b[a-z]+-\d+\b", words)}, key=len):
            text.highlight_words([name], self.colour(name))
        if isinstance(event, RebalanceCompleted):
            text.stylize("bold")
        self.console.print(self._line(Text(subject), text))

    def _line(self, *cells: Text) -> Table:
        """When, and what: what does not fit into a line goes on below its own beginning."""
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_column(width=8)
        for _ in cells[1:]:
            line.add_column(min_width=12)
        line.add_column()
        line.add_row(Text(f"{time.monotonic() - self._began:6.2f}s", style="dim"), *cells)
        return line

    def colour(self, name: str) -> str:
        return self._colours.setdefault(name, COLOURS[len(self._colours) % len(COLOURS)])

    # --- the table of groups

    def draw(self, groups: list[dict[str, Any]]) -> None:
        """Show how the groups stand."""
        self._groups = groups
        if self._live is not None:
            self._live.update(self._draw())

    def settle(self) -> None:
        """Print the table for good at the end of a scene."""
        self.console.print(self._draw())

    def _draw(self) -> RenderableType:
        return Group(*(self._draw_group(group) for group in self._groups))

    def _draw_group(self, group: dict[str, Any]) -> RenderableType:
        state = group["state"]
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=18)
        table.add_column(width=2 * self.partitions)
        table.add_column()
        head = Text(group["groupId"], style="bold")
        status = Text(f"{state}, generation {group['generation']}", style=STATE_COLOURS.get(state, ""))
        numbers = Text("".join(f"{index:<2}" for index in range(self.partitions)), style="dim")
        table.add_row(head, numbers, status)
        for member in group["members"]:
            name = short(member["memberId"])
            colour = self.colour(name)
            mine = {index for indexes in (member["assignment"] or {}).values() for index in indexes}
            stopped = state == "PreparingRebalance" and group["protocol"] != "cooperative-sticky"
            bar = Text()
            for index in range(self.partitions):
                full = "░░" if stopped else "██"
                bar.append(full if index in mine else "· ", style=colour if index in mine else "dim")
            doing = (
                "waits in JoinGroup"
                if member["awaitingJoin"]
                else "waits in SyncGroup"
                if member["awaitingSync"]
                else ""
            )
            leads = " (leader)" if member["isLeader"] else ""
            table.add_row(Text(f"  {name}", style=colour), bar, Text(f"{doing}{leads}", style="dim"))
        return table
