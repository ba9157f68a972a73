"""Sections on its coordinator in the report of a failed test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.control.waiting import looks
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.results import OperationRefused

MOST_REQUESTS: Final = 50
MOST_GROUPS: Final = 20
LONGEST_LINE: Final = 500


class FailureReport(NamedTuple):
    """Evidence of a failed test: a transcript that can be played, or a summary."""

    text: str
    is_transcript: bool


def failure_report(coordinator: GroupCoordinator, claim: str) -> FailureReport:
    """The transcript; where there can be none, the brokers and groups as they are, and the last requests."""
    return asyncio.run_coroutine_threadsafe(_report(coordinator, claim), coordinator.loop).result()


async def _report(coordinator: GroupCoordinator, claim: str) -> FailureReport:
    try:
        return FailureReport(await coordinator.transcript(claim=claim), await coordinator.do(_is_replayable))
    except OperationRefused as problem:
        text = f"# {claim} No transcript: {problem}.\n\n{await coordinator.do(_summary)}"
        return FailureReport(text, False)


async def _is_replayable(control: Control) -> bool:
    return control.evidence.is_replayable


async def _summary(control: Control) -> str:
    groups = control.group_ids()
    parts = (
        ("brokers", [] if control.brokers is None else map(_broker, control.brokers.all()["brokers"])),
        ("groups", _groups(control, groups[:MOST_GROUPS], len(groups) - MOST_GROUPS)),
        ("requests", control.evidence.last_requests(MOST_REQUESTS).splitlines()),
    )
    return "\n".join(f"{title}\n{_indented(lines)}" for title, lines in parts)


def _broker(shown: dict[str, Any]) -> str:
    words = [shown["state"], "fenced" if shown["is_fenced"] else f"leads {shown['leads']} partitions"]
    words += [f"cut off from {end}" for end, cut in shown["cut_off_from"].items() if cut]
    return f"{shown['broker']}  {', '.join(words)}"


def _groups(control: Control, group_ids: list[str], left_out: int) -> Iterator[str]:
    for group_id in group_ids:
        yield f"{group_id}  {looks(group_id, control.describe_group(group_id), control.clock.now())}"
    if left_out > 0:
        yield f"({left_out} more)"


def _indented(lines: Iterable[str]) -> str:
    cut = (line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines)
    return "".join(f"  {line}\n" for line in cut) or "  none\n"
