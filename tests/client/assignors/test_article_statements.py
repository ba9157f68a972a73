"""What four articles say of assignors and groups beside their examples, and what Kafka does: each statement is a test.

The statements are those of ``seed-examples.json``, by the number of their article. A slip of the pen is held against
the example that it stands in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest

from rejoin.client.assignors import assignor_named
from rejoin.client.assignors.registry import KAFKA_ASSIGNORS
from rejoin.client.config import ConsumerConfig
from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.registry import BY_NAME
from tests.client.assignors.vectors import GOLDEN, Vector, article_examples, cluster_of, members_of

STATEMENTS: Final = json.loads((GOLDEN / "seed-examples.json").read_text(encoding="utf-8"))["other_statements"]
EXAMPLES: Final = {example["id"]: example for example in article_examples()}
Shares = dict[str, set[tuple[str, int]]]


def assigned(example: Vector, **over: object) -> Shares:
    """What the assignor of an example gives each member."""
    problem = example | over
    answer = assignor_named(problem["assignor"]).assign(cluster_of(problem), members_of(problem))
    return {member_id: set(given) for member_id, given in answer.items()}


def sizes(example_id: str) -> list[int]:
    return sorted(len(given) for given in assigned(EXAMPLES[example_id]).values())


def changes(before: Shares, after: Shares) -> dict[str, tuple[int, int]]:
    """How many partitions each member has got and has lost."""
    return {each: (len(after[each] - before[each]), len(before[each] - after[each])) for each in after}


def balance_wins_over_stickiness() -> None:
    """000: stickiness comes first and wins. Here all is taken from the only member that owned anything."""
    example = EXAMPLES["000-8b"]
    all_of_it = [dict(member, owned=[], generation=-1) for member in example["members"]]
    all_of_it[0] = dict(all_of_it[0], owned=[["t", 0], ["t", 1], ["t", 2]], generation=1)
    assert [len(given) for given in assigned(example, members=all_of_it).values()] == [1, 1, 1]


def sticky_counts_may_differ_by_more_than_one() -> None:
    """000: counts differ by one at most. So they do where all members subscribe to the same topics."""
    assert sizes("003-9") == [1, 2, 3]
    assert max(sizes("000-5a")) - min(sizes("000-5a")) == 1


def round_robin_is_even_for_equal_subscriptions_only() -> None:
    """000: each member gets m/n partitions, the first m%n one more."""
    assert sizes("000-2") == [3, 3]
    assert (sizes("000-3"), sizes("003-4")) == ([1, 1, 3], [1, 1, 4])


def the_second_round_hands_over_to_the_new_member() -> None:
    """000: to "p3". It is c3."""
    assert assigned(EXAMPLES["000-8d"])["c3"] == {("t", 1)}


def a_topic_of_two_partitions_has_0_and_1() -> None:
    """000: "t2p0,t2p0"."""
    given = set().union(*assigned(EXAMPLES["000-5a"]).values())
    assert {partition for topic, partition in given if topic == "t2"} == {0, 1}


def the_example_that_is_cut_off_has_a_result() -> None:
    """001: the prose ends before the result, which the quoted documentation has."""
    assert {member_id: len(given) for member_id, given in assigned(EXAMPLES["001-2"]).items()} == {
        "C0": 1,
        "C1": 1,
        "C2": 4,
    }


def two_partitions_come_and_one_goes_under_round_robin() -> None:
    """002: "each has 2 partitions changed" under round robin after a member left."""
    before = {m["member_id"]: {(t, p) for t, p in m["owned"]} for m in EXAMPLES["002-7"]["members"]}
    round_robin, sticky = assigned(EXAMPLES["002-6"]), assigned(EXAMPLES["002-7"])
    assert set(changes(before, round_robin).values()) == {(2, 1)}
    assert set(changes(before, sticky).values()) == {(1, 0)}


def two_cooperative_rounds_suffice() -> None:
    """002: incremental rebalancing takes three rounds."""
    first, second = assigned(EXAMPLES["000-8c"]), assigned(EXAMPLES["000-8d"])
    assert sum(len(given) for given in first.values()) == 2, "what moves is given back first"
    assert sum(len(given) for given in second.values()) == 3


def a_session_lasts_45_seconds() -> None:
    """002: ten seconds, as before 3.0 (KIP-735)."""
    assert ConsumerConfig(group_id="g").session_timeout_ms == 45_000


def static_membership_came_with_2_3() -> None:
    """002: with 2.4 in one place, with 2.3 in another."""
    with_instance_ids = 5
    join = BY_NAME["JoinGroup"]
    JoinGroupRequest.check_version(_static_join(), with_instance_ids)
    assert offered("2.2")[join.key][1] < with_instance_ids <= offered("2.3")[join.key][1]


def _static_join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        group_instance_id="one",
        protocol_type="consumer",
        protocols=(),
    )


def there_are_four_assignors() -> None:
    """003: three strategies, of an interface that has another name now."""
    assert list(KAFKA_ASSIGNORS) == ["range", "roundrobin", "sticky", "cooperative-sticky"]


CHECKS: Final[dict[tuple[str, str], Callable[[], None]]] = {
    ("000", "Sticky: stickiness is goal 1"): balance_wins_over_stickiness,
    ("000", "Sticky: member partition counts"): sticky_counts_may_differ_by_more_than_one,
    ("000", "RoundRobin: everyone gets at least"): round_robin_is_even_for_equal_subscriptions_only,
    ("000", "in COOPERATIVE the second round"): the_second_round_hands_over_to_the_new_member,
    ("000", "partition list"): a_topic_of_two_partitions_has_0_and_1,
    ("001", "prose of the differing-subscription"): the_example_that_is_cut_off_has_a_result,
    ("002", "after C3 leaves under RoundRobin"): two_partitions_come_and_one_goes_under_round_robin,
    ("002", "incremental rebalance is"): two_cooperative_rounds_suffice,
    ("002", "session.timeout.ms defaults"): a_session_lasts_45_seconds,
    ("002", "static membership"): static_membership_came_with_2_3,
    ("003", "custom strategies implement"): there_are_four_assignors,
}
"""By article and the beginning of the statement."""


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda each: f"{each['source'][:3]}-{each['claim'][:30]}")
def test_what_articles_say_and_what_is_so(statement: dict[str, str]) -> None:
    article = statement["source"].partition("_")[0]
    (check,) = [
        check for (of, begins), check in CHECKS.items() if of == article and statement["claim"].startswith(begins)
    ]
    check()
