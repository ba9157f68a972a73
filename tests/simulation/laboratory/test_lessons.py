"""The lessons: each answer is shown where the run has it, and says what the run shows."""

from __future__ import annotations

from collections import Counter

import pytest

from rejoin.simulation.laboratory.lessons import Lesson, read_lessons
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.output.summary import ROWS
from rejoin.simulation.scenario.reading import read_scenario
from tests.paths import GALLERY
from tests.simulation.test_gallery import group, played

pytestmark = pytest.mark.xdist_group("gallery")
"""Scenarios that other tests have played are not played again."""

LESSONS = [lesson for chapter in read_lessons() for lesson in chapter.lessons]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title.strip('"'))
def test_each_question_has_its_answer_in_the_run(lesson: Lesson) -> None:
    lines = played(lesson.scenario).lines
    before = 0
    for step in lesson.steps:
        found = next((at for at, text in lines if at >= step.at and step.until in text), None)
        assert found is not None, f"no line from {step.at} ms on has {step.until!r}"
        assert step.at >= before
        assert step.ask.endswith("?")
        before = step.at
    assert lesson.steps
    assert set(lesson.numbers) <= {name.strip() for name, _ in ROWS}


def test_the_lessons_lead_from_the_first_join_to_transactions_and_beliefs() -> None:
    chapters = [each.chapter for each in read_lessons()]
    assert chapters[0] == "Joining"
    assert chapters[-3:] == ["The consumer protocol", "Transactions", "What many believe"]
    assert all(lesson.belief for lesson in read_lessons()[-1].lessons)


def test_heartbeats_are_refused_at_the_barrier_and_answered_while_the_leader_assigns() -> None:
    run = LaboratoryRun(read_scenario(GALLERY / "heartbeats_while_the_leader_assigns.yaml"))
    for _ in run.play():
        pass
    answers: dict[str, Counter[str]] = {"PreparingRebalance": Counter(), "CompletingRebalance": Counter()}
    opened = next(row.answered_at for row in run.requests.rows if row.api == "JoinGroup" and row.answered_at > 125_000)
    for row in run.requests.rows:
        if row.api == "Heartbeat" and 120_009 < row.answered_at < 141_008:
            answers["PreparingRebalance" if row.answered_at < opened else "CompletingRebalance"][row.error] += 1
    assert answers == {"PreparingRebalance": {"REBALANCE_IN_PROGRESS": 5}, "CompletingRebalance": {"": 9}}


def test_auto_commit_loses_nothing_and_repeats_more() -> None:
    auto, after, before = (group("auto_commit_and_crashes", each) for each in ("auto", "after", "before"))
    assert (auto.lost, after.lost, before.twice) == (0, 0, 0)
    assert before.lost > 0
    assert auto.twice > 10 * after.twice
