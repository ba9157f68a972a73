"""Each broken client is found by its trouble, and one without a fault passes all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from rejoin.conform.clients.observed import ClientOutcome
from rejoin.conform.clients.playing import PlayedTrouble, play
from rejoin.conform.clients.stage import TimeLimits
from rejoin.conform.clients.troubles import BY_NAME, TROUBLES
from rejoin.coordinator.service import logs
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from tests.conform.clients.small_client import BROKEN, SmallClient

logs.configure("critical")

BRIEF = {"away": 0.3, "held": 1.0, "watched": 0.5}
PATIENT = TimeLimits(start=60, meeting=60, reaction=60, closing=60, **BRIEF)
"""For what must happen."""

SHORT = TimeLimits(start=60, meeting=60, reaction=1.5, closing=2, **BRIEF)
"""For reactions that never come."""

OF_OTHER_CLIENTS = {
    "epoch-fenced",
    "epoch-errors",
    "topic-grown",
    "position-errors",
    "position-final",
    "brokers-restart",
}
OF_OTHER_CLIENTS |= {"producer-fenced", "transaction-refused"}
"""Troubles of what the small client does not: the consumer protocol, metadata, records, connections, transactions."""


def played(lives: Iterable[tuple[str, str]], limits: TimeLimits) -> list[PlayedTrouble]:
    """Troubles, each with a client and what is broken of it, at the same time."""

    async def one(trouble: str, broken: str) -> PlayedTrouble:
        instance = "one" if trouble == "fenced" else None

        async def start(coordinator: GroupCoordinator) -> SmallClient:
            return SmallClient(coordinator, broken, instance)

        return await play(BY_NAME[trouble], start, limits, has_socket=False)

    async def every() -> list[PlayedTrouble]:
        return await asyncio.gather(*(one(*each) for each in lives))

    return asyncio.run(every())


@pytest.fixture(scope="module")
def found() -> dict[str, PlayedTrouble]:
    every = played([(trouble, broken) for broken, trouble in BROKEN.items()], SHORT)
    return dict(zip(BROKEN, every, strict=True))


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_client_is_found(broken: str, found: dict[str, PlayedTrouble]) -> None:
    verdict = found[broken].verdict
    assert (found[broken].trouble.name, verdict.outcome) == (BROKEN[broken], ClientOutcome.FAILED), verdict
    assert verdict.evidence or "record" in broken


def test_a_client_without_a_fault_passes() -> None:
    troubles = [each.name for each in TROUBLES if each.name not in OF_OTHER_CLIENTS]
    every = played([(name, "") for name in troubles], PATIENT)
    assert {each.trouble.name: str(each.verdict.outcome) for each in every} == dict.fromkeys(troubles, "passed"), every
