"""Broken rules of this client are found; ``make client-mutations`` plays all of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rejoin.conform.clients.observed import ClientOutcome
from rejoin.coordinator.service import logs
from tests.conform.clients.mutations import LIMITS, MUTATIONS, ClientMutation, played

logs.configure("critical")

QUICK = ("a removed member keeps its id", "a closed member does not leave", "a fenced member joins anew")
SHORT = replace(LIMITS, reaction=1.5)


@pytest.mark.parametrize(
    "mutation", [each for each in MUTATIONS if each.words in QUICK], ids=lambda each: str(each.words)
)
def test_a_broken_rule_is_found(mutation: ClientMutation) -> None:
    assert asyncio.run(played(mutation, broken=True, limits=SHORT)).verdict.outcome is ClientOutcome.FAILED
