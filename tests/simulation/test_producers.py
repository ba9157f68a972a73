"""Producers in the laboratory: exactly once and in order with idempotence, and what it costs to do without."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rejoin.client.core.producer import sequences
from rejoin.client.core.producer.state import PartitionQueue, ProducerBatch, ProducerCoreState
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.simulation.output.compare import compare, parse_axis
from rejoin.simulation.output.produced_records import ProducerSummary
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from rejoin.simulation.search.schedules import producing_scenario
from rejoin.simulation.search.search import play_checked, search_seeds
from tests.docs.tables import check_table, rows_of
from tests.paths import ROOT
from tests.simulation.test_gallery import played
from tests.suite.long_runs import SEARCH_SEEDS

SEEDS = max(4, SEARCH_SEEDS // 5)

MUTATION_SEEDS = 60
"""So many seeds at the most are played until a broken rule is found."""


@pytest.fixture(scope="module")
def gallery() -> dict[str, ProducerSummary]:
    return played("producers_lose_and_repeat").summary.producers


@pytest.mark.xdist_group("gallery")
def test_idempotent_producers_write_each_record_once_and_in_order(gallery: dict[str, ProducerSummary]) -> None:
    found = gallery["idempotent"]
    assert found.acknowledged == found.written == 2_160
    assert found.lost == found.twice == found.out_of_order == found.misplaced == found.failed == 0


@pytest.mark.xdist_group("gallery")
def test_without_idempotence_retries_repeat_and_reorder(gallery: dict[str, ProducerSummary]) -> None:
    for name in ("acks-all", "acks-1"):
        assert gallery[name].twice > 100
        assert gallery[name].out_of_order > 0
        assert gallery[name].lost == gallery[name].failed == 0


@pytest.mark.xdist_group("gallery")
def test_one_request_in_flight_keeps_the_order_and_repeats(gallery: dict[str, ProducerSummary]) -> None:
    assert gallery["acks-all-one-at-a-time"].twice > 100
    assert gallery["acks-all-one-at-a-time"].out_of_order == 0


@pytest.mark.xdist_group("gallery")
def test_without_retries_records_fail_that_are_stored(gallery: dict[str, ProducerSummary]) -> None:
    found = gallery["acks-1-without-retries"]
    assert 0 < found.stored_though_failed < found.failed
    assert found.twice == found.lost == 0


@pytest.mark.xdist_group("gallery")
def test_with_acks_0_records_are_lost_that_count_as_written(gallery: dict[str, ProducerSummary]) -> None:
    found = gallery["acks-0"]
    assert found.acknowledged == found.written
    assert found.lost > 100
    assert found.twice == 0


@pytest.mark.xdist_group("gallery")
def test_the_table_of_the_document_has_these_numbers(
    gallery: dict[str, ProducerSummary], request: pytest.FixtureRequest
) -> None:
    names = {
        "idempotent": "idempotent, `acks=all`",
        "acks-all": "`acks=all`",
        "acks-all-one-at-a-time": "`acks=all`, one request in flight",
        "acks-1": "`acks=1`",
        "acks-1-without-retries": "`acks=1`, `retries=0`",
        "acks-0": "`acks=0`",
    }
    assert names.keys() == gallery.keys()
    head = ("", "acknowledged", "failed", "of these stored", "acknowledged and lost", "copies too many", "out of order")
    rows = [
        (
            shown,
            found.acknowledged,
            found.failed,
            found.stored_though_failed,
            found.lost,
            found.twice,
            found.out_of_order,
        )
        for shown, found in ((shown, gallery[name]) for name, shown in names.items())
    ]
    rewrite = request.config.getoption("--rewrite")
    check_table(ROOT / "docs" / "laboratory.md", "## Producers", rows_of(head, rows), rewrite=rewrite)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("topics: t", "topics: u", "line 8: producers shop write to topic 'u', which is not under topics"),
        ("partitions: 1", "partitions: 1, records_per_second: 5", "its records_per_second must be 0"),
        ("acks: all", "acks: 2", "line 9: producers.shop.acks: expected one of all, 0 or 1, not '2'"),
        ("acks: all", "max_in_flight: 9", "needs max.in.flight.requests.per.connection of at most 5"),
        ("cut: {who: shop-1, for: 1s}", "crash: {who: shop-1}", "shop-1 is a producer: producers can be cut off"),
        ("cut: {who: shop-1, for: 1s}", "move: {topic: v}", "topic 'v' has no producers"),
        ("cut: {who: shop-1, for: 1s}", "grow: {topic: t, to: 2}", "topic 't' has producers; it cannot grow here"),
        (
            "cut: {who: shop-1, for: 1s}",
            "delete_topic: {topic: t}",
            "topic 't' has a real log; it cannot be deleted here",
        ),
        ("cut: {who: shop-1, for: 1s}", "cut: {who: shop-3, for: 1s}", "there is never a consumer 'shop-3'"),
    ],
)
def test_a_mistake_in_a_scenario_is_explained(old: str, new: str, problem: str) -> None:
    text = """horizon: 1m
topics:
  t: {partitions: 1}
  v: {partitions: 1}
groups: {}
producers:
  shop:
    topics: t
    acks: all
    records_per_second: 5
events:
  - {at: 1s, cut: {who: shop-1, for: 1s}}
"""
    scenario_from(text)
    with pytest.raises(BadScenario, match=re.escape(problem)):
        scenario_from(text.replace(old, new, 1))


def test_producers_are_compared_by_their_keys() -> None:
    scenario = scenario_from(
        "{horizon: 20s, topics: {t: {partitions: 1}}, groups: {}, network: {lost_answers: 0.2}, producers: "
        "{shop: {topics: t, records_per_second: 20, until: 10s, request_timeout: 1s, delivery_timeout: 5s}}}"
    )
    axis = parse_axis("idempotence=true,false", scenario)
    (_, with_it), (_, without) = compare(scenario, [axis], None)
    assert with_it.producers["shop"].twice == 0 < without.producers["shop"].twice
    with pytest.raises(BadScenario, match="producers have no key 'assignor'"):
        parse_axis("shop.assignor=range", scenario)


def test_nothing_is_found_in_the_producer_as_it_is() -> None:
    report = search_seeds(0, SEEDS, schedule="producers", shrink=False)
    assert report.failure is None, report.failure.report()


def the_broker_forgets_all_but_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """A new leader remembers of each producer what a restarted broker does."""
    right = Partition.log_read

    def wrong(self: Partition, entries: Any, end: bool, *, is_restart: bool) -> None:
        right(self, entries, end, is_restart=True)

    patch.setattr(Partition, "log_read", wrong)


def the_broker_knows_no_batch_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStateManager, "duplicate_of", lambda *_: None)


def a_batch_is_numbered_again_when_it_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    right = sequences.number

    def wrong(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.base_sequence = -1
        right(state, queue, batch)

    patch.setattr(sequences, "number", wrong)


def every_batch_out_of_order_starts_a_new_epoch(patch: pytest.MonkeyPatch) -> None:
    """Also one that is behind a batch without an answer."""
    patch.setattr(sequences, "check_sequence", lambda state, queue, _: sequences.request_bump(state, queue))


def the_first_batch_of_an_epoch_is_not_alone(patch: pytest.MonkeyPatch) -> None:
    """As in Kafka's producer."""
    right = sequences.may_send

    def wrong(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        new = queue.producer == state.idempotence.producer and queue.last_acked_sequence < 0
        return right(state, queue, batch) or (new and batch not in queue.in_flight)

    patch.setattr(sequences, "may_send", wrong)


MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], set[str], int]] = [
    (the_broker_forgets_all_but_the_last_batch, {"a_record_is_stored_twice"}, 0),
    (the_broker_knows_no_batch_again, {"a_record_is_stored_twice"}, 0),
    (a_batch_is_numbered_again_when_it_is_sent_again, {"a_record_is_stored_twice"}, 0),
    (every_batch_out_of_order_starts_a_new_epoch, {"a_record_is_stored_twice"}, 60),
    (the_first_batch_of_an_epoch_is_not_alone, {"a_record_overtakes_another", "a_record_is_stored_twice"}, 6),
]
"""Broken rules, the checks that must find each, and the first seed to play."""


@pytest.mark.parametrize(("mutation", "checks", "first"), MUTATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_rule_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], checks: set[str], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    for seed in range(first, first + MUTATION_SEEDS):
        violation = play_checked(producing_scenario(seed)).violation
        if violation is not None:
            assert violation.check in checks, violation
            return
    raise AssertionError(f"{MUTATION_SEEDS} seeds, and nothing was found")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_would_read_nothing_of_producers_is_refused(protocol: str) -> None:
    text = f"""\
horizon: 10s
topics: {{jobs: {{partitions: 1}}}}
producers: {{w: {{topics: jobs, records_per_second: 1}}}}
groups: {{a: {{topics: jobs, consumers: 1, protocol: {protocol}}}}}
"""
    with pytest.raises(BadScenario, match="group a reads none of topic 'jobs': only share groups read what producers"):
        scenario_from(text)
    assert scenario_from(text.replace(f"protocol: {protocol}", "protocol: share"))
