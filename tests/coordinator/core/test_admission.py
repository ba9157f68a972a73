"""The table of admission has a row for each API."""

from __future__ import annotations

from rejoin.coordinator.core.runtime.admission import RULES
from rejoin.protocol.registry import BY_REQUEST


def test_every_api_has_a_rule() -> None:
    assert set(RULES) == set(BY_REQUEST)
