"""Every scenario of the gallery gives the answer that its file states."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rejoin.coordinator.state_diagram import TRANSITIONS, drawn_moves
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupStateChanged, JoinPhaseEnded
from rejoin.journal.timeline_lines import line_of, short
from rejoin.simulation.kernel import Actor
from rejoin.simulation.output.summary import GroupSummary, Summary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import read_scenario
from tests.paths import GALLERY, ROOT

pytestmark = pytest.mark.xdist_group("gallery")
"""Each scenario is played once, in one process."""


RECORDED = ROOT / "tests" / "golden" / "journals"
DRAWN = {move for kind in TRANSITIONS for move in drawn_moves(kind)}


class Played(NamedTuple):
    summary: Summary
    story: tuple[str, ...]
    generations: tuple[int, ...]
    """That join phases ended with, in order."""
    lines: tuple[tuple[int, str], ...]
    """What the laboratory's page shows as text: instant and line."""
    moves: frozenset[tuple[str, str]]
    """Of groups between states."""


@cache
def played(name: str) -> Played:
    story: list[str] = []
    generations: list[int] = []
    lines: list[tuple[int, str]] = []
    moves: set[tuple[str, str]] = set()

    def on_event(_: Actor, event: Event, now: int) -> None:
        if isinstance(event, GroupStateChanged):
            moves.add((event.previous_state, event.state))
        if isinstance(event, JoinPhaseEnded):
            generations.append(event.generation)
        if (line := line_of(event)) is not None:
            lines.append((now, short(line)))

    _, summary = play(read_scenario(GALLERY / f"{name}.yaml"), print_line=story.append, listeners=[on_event])
    return Played(summary, tuple(story), tuple(generations), tuple(lines), frozenset(moves))


def group(name: str, group_id: str = "orders-app") -> GroupSummary:
    summary = played(name).summary
    assert summary.core_failures == 0
    return summary.groups[group_id]


def story(name: str) -> str:
    return "\n".join(played(name).story)


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_laboratory_draws_every_move_of_every_group(path: Path) -> None:
    assert {move for move in played(path.stem).moves if "Dead" not in move} - DRAWN == set()


def test_the_laboratory_draws_every_move_of_a_recorded_journal() -> None:
    lines = [line for path in RECORDED.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    rows = [row for line in lines if (row := json.loads(line))["event"] == "group_state_changed"]
    moves = {(row["previous_state"], row["state"]) for row in rows}
    assert moves
    assert {move for move in moves if "Dead" not in move} - DRAWN == set()


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_asks_and_answers(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.question.endswith("?")
    assert scenario.answer
    names = ("gallery", "producers", "transactions", "transaction_findings", "consumer_groups")
    files = (*(f"test_{name}.py" for name in names), "laboratory/test_lessons.py", "share/test_share_gallery.py")
    files = (*files, "streams/test_streams_gallery.py")
    tests = "".join((Path(__file__).parent / file).read_text() for file in files)
    assert path.stem in tests, "and a test says so"


def test_static_membership_makes_a_rolling_deploy_free_of_rebalances() -> None:
    static, dynamic = group("static_rolling_deploy"), group("dynamic_rolling_deploy")
    assert static.started == 1, "only the first one"
    assert static.static_returns == 6
    assert static.moved == static.stopped_ms == 0
    assert dynamic.started == 1 + 2 * 6
    assert dynamic.moved > 0
    assert dynamic.stopped_ms > 0


def test_static_membership_does_not_help_when_a_restart_outlasts_the_session() -> None:
    slow = group("static_rolling_deploy_too_slow")
    assert slow.rebalances["session-expiry"] == 6
    assert slow.started == 1 + 2 * 6
    assert slow.static_returns == 0
    assert slow.worst_unowned_ms > 15_000


def test_a_pause_longer_than_the_session_costs_the_partitions_and_processes_twice() -> None:
    paused = group("gc_pause_longer_than_the_session")
    assert paused.removed == {"session-expiry": 3}
    assert paused.rebalances["session-expiry"] == 2
    assert paused.twice > 0
    assert paused.lost == 0


def test_a_stuck_handler_is_found_by_max_poll_and_not_by_the_session() -> None:
    stuck = group("stuck_handler")
    assert stuck.removed == {"left": 1}
    assert "did not poll for 2.0 min and leaves the group" in story("stuck_handler")
    assert stuck.late > 0


def test_a_stuck_handler_holds_the_group_up_for_the_rest_of_max_poll() -> None:
    held = group("stuck_handler_holds_up_a_rebalance")
    assert 120_000 < held.longest_rebalance_ms < 180_000
    assert held.stopped_ms > 2 * 120_000, "two others stood still all the time"


def test_cooperative_stops_fewer_consumer_seconds_than_eager() -> None:
    eager, cooperative = group("eager_scale_out"), group("cooperative_scale_out")
    assert cooperative.stopped_ms < eager.stopped_ms
    assert cooperative.stopped_ms == 0
    assert cooperative.moved < eager.moved
    assert cooperative.started > eager.started, "it takes more rebalances"


def test_a_flapping_consumer_stops_the_whole_group_for_the_session_timeout() -> None:
    flapping = group("flapping_consumer")
    assert flapping.removed == {"session-expiry": 10}
    assert flapping.completed == 11
    assert flapping.stopped_ms > 10 * 10_000


def test_two_processes_with_one_static_id_take_turns_without_a_rebalance() -> None:
    duplicates = group("static_id_used_twice")
    assert duplicates.started == 1
    assert duplicates.static_returns > 10
    assert duplicates.fenced > 10


def test_new_partitions_wait_for_the_leaders_metadata() -> None:
    grown = group("topic_growth")
    assert grown.started == 2
    assert 60_000 < grown.worst_unowned_ms <= 301_000


def test_a_static_leader_that_restarts_overlooks_new_partitions_for_good() -> None:
    overlooked = group("static_leader_restarts_after_topic_growth")
    assert overlooked.started == 1
    assert overlooked.worst_unowned_ms == 23 * 60_000


def test_a_static_restart_between_two_cooperative_rebalances_leaves_partitions_without_an_owner() -> None:
    left = group("static_restart_between_cooperative_rebalances")
    assert left.static_returns == 1
    assert left.worst_unowned_ms > 5 * 60_000
    assert left.late > 0
    text = story("static_restart_between_cooperative_rebalances")
    assert "orders-app-1 is back under a new member id, without a rebalance" in text
    assert "orders:6-11 have an owner again after up to 6.0 min" in text


def test_a_failover_in_stable_is_no_rebalance() -> None:
    failed_over = group("coordinator_failover_in_stable")
    assert failed_over.started == 1
    assert failed_over.lost == failed_over.stopped_ms == 0
    assert "loaded: Stable, generation 1, 4 members" in story("coordinator_failover_in_stable")


def test_an_outage_of_the_store_is_no_rebalance() -> None:
    waited = group("store_down_longer_than_a_lease")
    assert waited.started == 1, "only the first one"
    assert waited.moved == waited.lost == waited.twice == 0
    assert waited.late > 0, "nothing was processed while nothing could be committed"
    assert "append of 3 records failed (REQUEST_TIMED_OUT)" in story("store_down_longer_than_a_lease")
    assert "loaded: Stable, generation 1, 4 members, 12 offsets" in story("store_down_longer_than_a_lease")


def test_a_failover_in_mid_rebalance_uses_the_generation_again() -> None:
    begun = played("coordinator_failover_in_mid_rebalance").generations
    assert begun[:3] == (1, 2, 2), "handed out by the node that died, and again by the one after it"
    assert "loaded: Stable, generation 1, 4 members" in story("coordinator_failover_in_mid_rebalance")
    assert group("coordinator_failover_in_mid_rebalance").lost == 0


def test_an_autoscaler_without_a_brake_goes_up_and_down_for_good() -> None:
    thrashing = group("autoscaler_thrash")
    late = [line for line in played("autoscaler_thrash").story if "autoscaler sees" in line and line.lstrip() > "0:12"]
    assert len(late) > 12
    assert thrashing.started > 45


def test_the_initial_delay_makes_a_cold_start_one_rebalance() -> None:
    with_delay, without = group("cold_start"), group("cold_start_without_delay")
    assert with_delay.started == 1
    assert 12_000 <= with_delay.first_owned_ms < 12_500
    assert without.started > 1
    assert without.first_owned_ms < 500
    assert without.moved > 0


def test_committing_before_or_after_is_at_most_or_at_least_once() -> None:
    before, after = group("commit_before_processing", "before"), group("commit_before_processing", "after")
    assert before.lost > 0
    assert before.twice == 0
    assert after.lost == 0
    assert after.twice > 0


def test_a_batch_that_outlasts_max_poll_is_begun_again_for_good() -> None:
    stuck = group("backlog_longer_than_max_poll")
    assert stuck.removed["left"] > 10
    assert stuck.processed <= 1_000, "the same records over and over"
    assert stuck.twice > 5 * stuck.processed
