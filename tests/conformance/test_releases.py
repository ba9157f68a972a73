"""Recordings by release from two runs of each, and the page about them."""

from __future__ import annotations

from itertools import pairwise

from conformance.releases.changes import changes
from conformance.releases.notes import NOTES
from conformance.releases.page import PAGE, page
from conformance.releases.recordings import NOT_PLAYED, recording, unsteady_steps
from conformance.releases.runs import Json
from rejoin.conform.recordings.by_release import (
    OLDER_RELEASES,
    RELEASES,
    FieldOfRelease,
    ReleaseRecording,
    branch_of,
    read_release,
)
from rejoin.protocol.brokers.releases import RELEASES as KNOWN


def differs(step: int, path: str, kafka: object, other: object, kind: str = "field") -> Json:
    where = {"step": step, "api": "Heartbeat", "version": 4, "path": path, "kind": kind}
    return {**where, "kafka": kafka, "other": other}


def outcome(script: str, *differences: Json, not_applicable: str | None = None) -> Json:
    return {"script": script, "notApplicable": not_applicable, "differences": list(differences)}


FENCED = differs(2, "errorCode", 0, 110, "error")


def test_the_page_is_made_from_the_recordings() -> None:
    """Otherwise: ``make releases-page``."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_note_is_about_two_releases_that_follow_each_other() -> None:
    branches = [branch_of(each) for each in RELEASES]
    assert set(NOTES) <= set(pairwise(branches))
    assert set(branches) <= set(KNOWN)


def test_what_both_runs_have_is_recorded() -> None:
    drawn = [differs(3, "memberId", "a", other) for other in ("b", "c")]
    late = differs(4, "at", 1, 2_000, "time")
    runs = {
        "first": [outcome("groups/a", FENCED, drawn[0], late), outcome("groups/b", FENCED)],
        "second": [outcome("groups/a", FENCED, drawn[1], late), outcome("groups/b")],
    }
    found = recording("4.1.2", runs)
    assert found.scripts == {"groups/a": (FieldOfRelease(2, "Heartbeat", 4, "errorCode", 0, 110),)}
    assert found.played == 2


def test_a_script_that_was_not_played_is_kept_with_its_reason() -> None:
    runs = {"first": [outcome("groups/a", not_applicable="JoinGroup is not spoken")], "second": []}
    found = recording("4.1.2", runs)
    assert (found.played, found.not_applicable) == (0, {"JoinGroup is not spoken": ("groups/a",)})


def test_a_script_that_was_not_played_yet_says_nothing() -> None:
    found = recording("4.1.2", {"first": [outcome("groups/a")], "second": []}, names=["groups/a", "groups/b"])
    assert (found.played, found.not_applicable) == (1, {NOT_PLAYED: ("groups/b",)})


def test_a_step_that_the_newest_release_answers_otherwise_is_left_out() -> None:
    runs = {"first": [outcome("groups/a", FENCED)], "second": [outcome("groups/a", FENCED)]}
    control = {"first": [outcome("groups/a", differs(2, "memberId", "a", "b"))], "second": []}
    assert recording("4.1.2", runs, unsteady_steps(control)).scripts == {}


def test_changes_are_between_the_values_of_two_releases() -> None:
    older = ReleaseRecording("4.1.2", {"a": (FieldOfRelease(2, "Heartbeat", 4, "errorCode", 0, 110),)})
    newer = ReleaseRecording("4.2.2", {"a": (FieldOfRelease(2, "Heartbeat", 4, "errorCode", 0, 25),)})
    (one,) = changes(older, newer)
    assert (one.before, one.after) == (110, 25)
    (one,) = changes(newer, ReleaseRecording("4.4.0", {}))
    assert (one.before, one.after) == (25, 0)
    assert list(changes(older, ReleaseRecording("4.2.2", {}, not_applicable={"why": ("a",)}))) == []


def test_every_older_release_was_played() -> None:
    for release in OLDER_RELEASES:
        found = read_release(release)
        assert found.release == release
        assert found.played > len(found.scripts) > 0
