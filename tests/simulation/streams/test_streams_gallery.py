"""Scenarios of the gallery with Kafka Streams applications give the answers that their files state."""

from __future__ import annotations

from functools import cache

import pytest

from rejoin.simulation.output.streams_tasks import StreamsSummary
from rejoin.simulation.output.summary import Summary, show
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import read_scenario
from tests.paths import GALLERY

pytestmark = pytest.mark.xdist_group("streams_gallery")
"""Each scenario is played once, in one process."""


@cache
def played(name: str) -> tuple[Summary, str]:
    story: list[str] = []
    _, summary = play(read_scenario(GALLERY / f"{name}.yaml"), print_line=story.append)
    assert summary.core_failures == 0
    return summary, "\n".join([*story, *show(summary)])


def tasks(name: str, group_id: str) -> StreamsSummary:
    return played(name)[0].applications[group_id]


def test_a_standby_spares_the_restoration_and_not_the_session() -> None:
    name = "streams_crash_with_and_without_standby"
    with_standby, without = tasks(name, "with-standby"), tasks(name, "without")
    assert with_standby.promotions == 2
    assert without.promotions == 0
    assert with_standby.unowned_ms == pytest.approx(without.unowned_ms, rel=0.05), "both wait for the session"
    assert without.restoring_ms - with_standby.restoring_ms == pytest.approx(20_000 + 40_000, rel=0.1)
    assert "standby promotions" in played(name)[1]
    for group in played(name)[0].groups.values():
        assert group.removed == {"session-expiry": 1}
        assert group.twice > 0
        assert group.lost == 0
