"""The scenarios of the gallery about share groups give the answers that their files state."""

from __future__ import annotations

import pytest

from rejoin.simulation.output.summary import Summary
from tests.simulation import test_gallery

pytestmark = pytest.mark.xdist_group("gallery")
"""Scenarios that other tests have played are not played again."""


def played(name: str) -> Summary:
    summary = test_gallery.played(name).summary
    assert summary.core_failures == 0
    return summary


def test_a_handler_longer_than_the_lock_accepts_nothing_without_renewals() -> None:
    summary = played("handler_longer_than_the_lock")
    assert summary.groups["without-renewals"].processed == 0
    assert summary.shares["without-renewals"].archived > 0
    assert max(summary.shares["without-renewals"].deliveries) == 5
    assert summary.groups["with-renewals"].processed > 0
    assert summary.shares["with-renewals"].expired == 0
    assert list(summary.shares["with-renewals"].deliveries) == [1]


def test_poison_lands_among_dead_letters_and_holds_up_nothing() -> None:
    summary = played("poison_lands_among_dead_letters")
    share = summary.shares["workers"]
    assert share.dead == share.archived == share.deliveries[5] > 0
    assert summary.groups["workers"].late == 0


def test_a_share_group_larger_than_the_topic_keeps_up_where_a_classic_group_cannot() -> None:
    summary = played("share_group_larger_than_the_topic")
    shared, classic = summary.groups["shared"], summary.groups["classic"]
    assert shared.late == 0
    assert shared.processed > 2 * classic.processed
    assert summary.shares["shared"].out_of_order > 0
    assert classic.late > 0


def test_records_in_flight_of_a_killed_worker_do_not_wait_for_their_locks() -> None:
    summary = played("crash_with_records_in_flight")
    share = summary.shares["workers"]
    assert share.given_back == share.deliveries[2] > 0
    assert share.expired == 0
    assert summary.groups["workers"].twice == 0


def test_a_slow_member_holds_up_what_it_has_and_in_a_classic_group_its_partition() -> None:
    summary = played("one_slow_member")
    assert summary.groups["shared"].late == 4
    assert summary.shares["shared"].expired == 0
    assert summary.groups["classic"].late > 100
