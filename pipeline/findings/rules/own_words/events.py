"""Events of consumers in their own words: what they say, whom they name, and in which rhythm they come."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from rejoin.pipeline.findings.finding import Finding
from rejoin.pipeline.findings.formatting import span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedEvent, all_exact, name_of_client
from rejoin.pipeline.vocabulary import is_untimed

ONE_MS: Final = 2_000
"""Lines of a client that are closer together are about one thing: most say it twice."""
AGAIN: Final = 3
"""An event that repeats this often is no accident."""
REGULAR: Final = 0.2
"""Intervals that differ by no more than this share of the longest are regular."""

UNNAMED: Final = "#"
"""Stands in the names of members whose ids are not logged, before their number."""


def said_by(event: ObservedEvent) -> str:
    return ": ".join(filter(None, (event.reason, (event.more or {}).get("problem"))))


def distinct(events: Sequence[ObservedEvent], within_ms: int = ONE_MS) -> list[ObservedEvent]:
    """Events without those that say the same thing of the same client once more."""
    last: dict[tuple[str | None, str | None], int] = {}
    found = []
    for event in events:
        who = (event.node, event.client_id)
        if event.at_ms - last.get(who, event.at_ms - within_ms - 1) > within_ms:
            found.append(event)
        last[who] = event.at_ms
    return found


def consumers_of(history: GroupHistory, events: Sequence[ObservedEvent], otherwise: str = "a consumer") -> list[str]:
    """The consumers that events are about, by their names for people; ``otherwise`` where none is named."""
    found = (
        event.group_instance_id
        or name_of_client(event.client_id)
        or (_process(history.who(event.member_id)) if event.member_id else None)
        for event in events
    )
    named = list(dict.fromkeys(each for each in found if each and each != "none"))
    return named or [otherwise]


def _process(name: str) -> str:
    """The process of a member whose id is not logged, which is a number behind the process; else the name."""
    process, number, _ = name.rpartition(UNNAMED)
    return process.rsplit("/", 1)[-1] if number and process else name


def its_group(history: GroupHistory) -> str:
    return "its group" if history.group_id == "?" else history.group_id


def finding_of(
    name: str,
    title: str,
    text: str,
    who: list[str],
    events: Sequence[ObservedEvent],
    *,
    numbers: dict[str, float],
    advice: str,
    severity: str,
    setting: str | None = None,
) -> Finding:
    """A finding about consumers from these events of theirs, which are its evidence and bound its time."""
    return Finding(
        name,
        title,
        text,
        0.0,
        events[0].at_ms,
        events[-1].at_ms,
        setting=setting,
        advice=advice,
        numbers=numbers,
        members=who,
        evidence=[each.as_evidence() for each in events],
        exact=all_exact(events),
        severity=severity,
    )


def rhythm(events: Sequence[ObservedEvent]) -> str:
    """A clause where events come at regular intervals."""
    by_client: dict[str | None, list[int]] = defaultdict(list)
    for event in events:
        by_client[event.client_id or event.node].append(event.at_ms)
    gaps = [after - before for each in by_client.values() for before, after in itertools.pairwise(each)]
    if (
        is_untimed(events[0].at_ms)
        or len(gaps) < AGAIN - 1
        or max(gaps) - min(gaps) > REGULAR * max(gaps)
        or min(gaps) < 1_000
    ):
        return ""
    return f", every {span(sorted(gaps)[len(gaps) // 2])}"
