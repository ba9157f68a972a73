"""Lines of a timeline: what an event does not say is left out, and not shown as nothing."""

from __future__ import annotations

import re

import pytest

from rejoin.journal.events import client, coordinator
from rejoin.journal.events.base import Event
from rejoin.journal.timeline_lines import line_of
from rejoin.pipeline.drawn.row_events import event_of


@pytest.mark.parametrize("event", [coordinator.RebalanceCompleted, client.CoordinatorLost, coordinator.GroupEmptied])
def test_what_a_log_does_not_say_leaves_no_gap_in_the_line(event: type[Event]) -> None:
    line = line_of(event_of(event, {}))
    assert line is not None
    assert not re.search(r"\(\)|:\s*$|after 0 ms", line), line
