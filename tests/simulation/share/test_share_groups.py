"""Share groups on the virtual clock: locks, releases, renewals, poison, and processes that end."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.journal.events.base import Event
from rejoin.journal.events.share_partitions import (
    ShareLocksExpired,
    ShareRecordsAcknowledged,
    ShareRecordsAcquired,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareRecordsReleased,
)
from rejoin.journal.events.simulation import ConsumerFailed
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.output.compare import compare, parse_axis
from rejoin.simulation.output.share_records import ShareAccounting, summarise_shares
from rejoin.simulation.output.summary import show
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import BadScenario, scenario_from

Found = list[tuple[Millis, Event]]


def events_of(group: str = "", topic: str = "", events: str = "", horizon: str = "1m") -> Found:
    """The events of a run of three workers on one partition."""
    text = f"""
horizon: {horizon}
topics:
  jobs: {{partitions: 1, records_per_second: 2, {topic}}}
  dead: {{partitions: 1}}
groups:
  workers:
    protocol: share
    topics: jobs
    consumers: 3
    {group}
events: [{events}]
"""
    found: Found = []

    def on_event(_: Actor, event: Event, now: Millis) -> None:
        found.append((now, event))

    play(scenario_from(text), listeners=[on_event])
    return found


def of(found: Found, kind: type[Any], **fields: object) -> list[Any]:
    """The events of a class with these values."""
    return [
        event
        for _, event in found
        if isinstance(event, kind) and all(getattr(event, name) == value for name, value in fields.items())
    ]


def offsets(events: list[Any]) -> list[int]:
    """Every offset of the events' runs, sorted."""
    return sorted(offset for each in events for offset in range(each.first_offset, each.last_offset + 1))


def test_members_on_one_partition_share_its_records_and_accept_each_once() -> None:
    found = events_of()
    accepted = of(found, ShareRecordsAcknowledged, type="accept")
    assert offsets(accepted) == list(range(len(offsets(accepted))))
    assert len(offsets(accepted)) > 90
    assert len({each.member_id for each in accepted}) == 3


SHORT_LOCKS = "settings: {share.record.lock.duration.ms: 15000}"
SLOW = f"processing: 20s\n    max_poll_records: 1\n    {SHORT_LOCKS}\n    "


def test_a_handler_that_needs_longer_than_the_lock_gets_its_records_again() -> None:
    found = events_of(SLOW, horizon="3m")
    expired = of(found, ShareLocksExpired)
    assert expired
    assert {each.held_ms for each in expired} == {15_000}
    again = offsets([each for each in of(found, ShareRecordsAcquired) if each.delivery_count > 1])
    assert set(again) <= set(offsets(expired))
    assert again
    assert not of(found, ShareRecordsAcknowledged, type="accept")


def test_renewals_keep_the_locks_of_a_slow_handler() -> None:
    found = events_of(SLOW + "share: {acknowledge: explicit, acquire: record_limit, renew: 5s}", horizon="3m")
    assert not of(found, ShareLocksExpired)
    assert of(found, ShareRecordsAcknowledged, type="renew")
    accepted = offsets(of(found, ShareRecordsAcknowledged, type="accept"))
    assert accepted == list(range(len(accepted)))
    assert len(accepted) > 20


def test_poison_is_delivered_to_the_limit_and_lands_among_dead_letters() -> None:
    group = "share: {acknowledge: explicit}\n    settings: {errors.deadletterqueue.topic.name: dead}"
    found = events_of(group, "poison: 0.05")
    dead = offsets(of(found, ShareRecordsDeadLettered, error=None))
    assert dead
    assert {each.delivery_count for each in of(found, ShareRecordsDeadLettered)} == {5}
    accepted = offsets(of(found, ShareRecordsAcknowledged, type="accept"))
    assert not set(accepted) & set(dead)


def test_poison_kills_a_process_that_acknowledges_implicitly() -> None:
    found = events_of("revive: 2s", "poison: 0.02")
    assert of(found, ConsumerFailed)
    assert of(found, ShareRecordsReleased, reason="disconnected")


@pytest.mark.parametrize("how", ["crash: {who: workers-1, down: 5s}", "stop: {who: workers-1, down: 5s}"])
def test_the_records_of_a_process_that_ends_are_delivered_again(how: str) -> None:
    found = events_of(events=f"{{at: 20s, {how}}}, {{at: 22s, {how.replace('-1', '-2')}}}")
    accepted = offsets(of(found, ShareRecordsAcknowledged, type="accept"))
    assert accepted == list(range(len(accepted)))


def test_a_run_is_a_function_of_its_seed() -> None:
    once, again = (events_of("share: {acknowledge: explicit, release: 0.2}", "poison: 0.01") for _ in range(2))
    assert once == again


@pytest.mark.parametrize(
    ("group", "topic", "events", "message"),
    [
        ("static: true", "", "", "group workers is a share group, which has no static"),
        ("commit: before", "", "", "cannot commit before; expected auto or after"),
        ("share: {release: 0.1}", "", "", "acknowledges implicitly, which knows no release"),
        ("share: {poison: reject}", "", "", "can only crash; say 'acknowledge: explicit'"),
        ("settings: {errors.deadletterqueue.topic.name: nowhere}", "", "", "dead letters go to topic 'nowhere'"),
        ("", "until: 10s", "", "read by a share group and cannot end"),
        ("", "", "{at: 1s, enforce: {who: workers-1}}", "enforce has no effect on share group workers"),
        ("", "", "{at: 1s, deploy: {group: workers, every: 1s, down: 1s, protocol: classic}}", "cannot change from"),
    ],
)
def test_a_mistake_about_share_groups_says_what_is_wrong(group: str, topic: str, events: str, message: str) -> None:
    with pytest.raises(BadScenario) as problem:
        events_of(group, topic, events)
    assert message in str(problem.value)


def test_a_ledger_counts_late_records_deliveries_and_lost_order() -> None:
    counted = ShareAccounting(lambda topic, partition, at: 3 if at >= 1_000 else 0, late_ms=1_000)

    def take(kind: type[Any], now: Millis, **fields: Any) -> None:
        common = {"group_id": "g", "topic": "t", "partition": 0}
        counted.handlers[kind](kind(**common, **fields), now)

    take(ShareRecordsAcquired, 10, first_offset=0, last_offset=4, delivery_count=1, member_id="a", lock_ms=15_000)
    accepted = {"delivery_count": 1, "member_id": "a", "type": "accept", "held_ms": 5}
    take(ShareRecordsAcknowledged, 20, first_offset=3, last_offset=4, **accepted)
    take(ShareLocksExpired, 15_010, first_offset=0, last_offset=2, delivery_count=1, member_id="a", held_ms=15_000)
    take(ShareRecordsAcquired, 15_020, first_offset=0, last_offset=2, delivery_count=2, member_id="b", lock_ms=15_000)
    take(ShareRecordsAcknowledged, 15_030, first_offset=0, last_offset=1, **(accepted | {"member_id": "b"}))
    take(ShareRecordsArchived, 15_040, first_offset=2, last_offset=2, delivery_count=2, reason="reject")
    take(ShareRecordsDeadLettered, 15_050, first_offset=2, last_offset=2, delivery_count=2, **_LETTER)
    (ledger,) = counted.of_group("g")
    assert (len(ledger.accepted), ledger.late, ledger.settled, ledger.twice) == (4, 2, 5, 0)
    found = summarise_shares([ledger])
    assert found.deliveries == {1: 2, 2: 3}
    assert (found.archived, found.dead, found.expired, found.out_of_order, found.farthest) == (1, 1, 3, 2, 4)


_LETTER = {"dead_letter_topic": "dead", "error": None}


def test_the_summary_has_the_numbers_of_a_share_group_and_variants_are_compared_by_them() -> None:
    text = """
horizon: 2m
topics: {jobs: {partitions: 1, records_per_second: 1}}
groups:
  workers:
    protocol: share
    topics: jobs
    consumers: 1
    processing: 20s
    max_poll_records: 1
    settings: {share.record.lock.duration.ms: 15000}
    share: {acknowledge: explicit, acquire: record_limit}
"""
    scenario = scenario_from(text)
    axes = [parse_axis("renew=0,5s", scenario)]
    without, with_renewals = (summary for _, summary in compare(scenario, axes, None))
    assert without.groups["workers"].processed == 0
    assert with_renewals.groups["workers"].processed >= 5
    assert [line.split() for line in show(with_renewals) if "locks" in line] == [["locks", "expired", "0"]]
    assert without.shares["workers"].expired >= 5
