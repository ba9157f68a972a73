"""An assignor that breaks the rules is caught, with the partition and the member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rejoin.client.assignors import (
    Assignments,
    Assignor,
    BadAssignment,
    ClusterView,
    MemberSubscription,
    Partition,
    RebalanceProtocol,
    check_assignment,
    run_assignor,
)
from tests.client.assignors.groups import member

CLUSTER = ClusterView({"orders": 2, "clicks": 1})
MEMBERS = {"a": member("orders", "clicks"), "b": member("orders")}
GOOD: dict[str, list[Partition]] = {"a": [("orders", 0), ("clicks", 0)], "b": [("orders", 1)]}

CASES: list[tuple[str, dict[str, list[Partition]], str, Partition | None, str | None]] = [
    (
        "twice to one",
        {"a": [("orders", 0), ("orders", 0), ("clicks", 0)], "b": [("orders", 1)]},
        "orders-0 given twice to a",
        ("orders", 0),
        "a",
    ),
    (
        "to two",
        {"a": [("orders", 0), ("orders", 1), ("clicks", 0)], "b": [("orders", 1)]},
        "orders-1 given to a and to b",
        ("orders", 1),
        "b",
    ),
    (
        "to one who did not ask",
        {"a": [("orders", 0)], "b": [("orders", 1), ("clicks", 0)]},
        "clicks-0 given to b: it does not subscribe to clicks",
        ("clicks", 0),
        "b",
    ),
    (
        "does not exist",
        {**GOOD, "b": [("orders", 2)]},
        "orders-2 given to b: it does not exist, orders has 2 partitions",
        ("orders", 2),
        "b",
    ),
    (
        "below zero",
        {**GOOD, "b": [("orders", -1)]},
        "orders--1 given to b: it does not exist, orders has 2 partitions",
        ("orders", -1),
        "b",
    ),
    ("no such member", {**GOOD, "c": []}, "c is not a member", None, "c"),
    ("a member is missing", {"a": GOOD["a"]}, "b is missing from the answer", None, "b"),
    (
        "forgotten",
        {"a": [("orders", 0)], "b": [("orders", 1)]},
        "clicks-0 is assigned to no member, though a subscribes to clicks",
        ("clicks", 0),
        "a",
    ),
]


def test_a_good_answer_passes() -> None:
    check_assignment(CLUSTER, MEMBERS, GOOD)
    check_assignment(CLUSTER, MEMBERS, GOOD, RebalanceProtocol.COOPERATIVE)


@pytest.mark.parametrize(
    ("answer", "reason", "partition", "member_id"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_bad_answer_is_named(
    answer: dict[str, list[Partition]], reason: str, partition: Partition | None, member_id: str | None
) -> None:
    with pytest.raises(BadAssignment) as caught:
        check_assignment(CLUSTER, MEMBERS, answer)
    assert (caught.value.reason, caught.value.partition, caught.value.member_id) == (reason, partition, member_id)


def test_what_is_no_partition_at_all_is_named_too() -> None:
    with pytest.raises(BadAssignment, match=r"'orders-0' given to a: not a .topic, partition. pair"):
        check_assignment(CLUSTER, MEMBERS, {"a": ["orders-0"], "b": []})  # type: ignore[list-item]


class TestCooperative:
    """Under KIP-429 a partition may wait a round, and must not go straight from hand to hand."""

    owning: Mapping[str, MemberSubscription] = {
        "a": member("orders", "clicks", owned=[("orders", 0), ("orders", 1), ("clicks", 0)], generation=1),
        "b": member("orders"),
    }

    def test_withholding_what_a_member_owns_is_fine(self) -> None:
        answer: Assignments = {"a": [("orders", 0), ("clicks", 0)], "b": []}
        check_assignment(CLUSTER, self.owning, answer, RebalanceProtocol.COOPERATIVE)

    def test_under_the_eager_protocol_it_is_forgotten(self) -> None:
        answer: Assignments = {"a": [("orders", 0), ("clicks", 0)], "b": []}
        with pytest.raises(BadAssignment, match="orders-1 is assigned to no member"):
            check_assignment(CLUSTER, self.owning, answer)

    def test_from_hand_to_hand_is_refused(self) -> None:
        answer: Assignments = {"a": [("orders", 0), ("clicks", 0)], "b": [("orders", 1)]}
        with pytest.raises(BadAssignment, match="orders-1 goes to b while a still owns it") as caught:
            check_assignment(CLUSTER, self.owning, answer, RebalanceProtocol.COOPERATIVE)
        assert (caught.value.partition, caught.value.member_id) == (("orders", 1), "b")

    def test_what_no_member_owns_must_be_assigned(self) -> None:
        members = {"a": member("orders", "clicks", owned=[("orders", 0)], generation=1), "b": member("orders")}
        answer: Assignments = {"a": [("orders", 0), ("clicks", 0)], "b": []}
        with pytest.raises(BadAssignment, match="orders-1 is assigned to no member"):
            check_assignment(CLUSTER, members, answer, RebalanceProtocol.COOPERATIVE)


class _Answers(Assignor):
    name = "answers"

    def __init__(self, answer: Assignments | Exception) -> None:
        self.answer = answer

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class _TrustedAnswers(_Answers):
    name = "trusted"
    checked = False


def test_what_an_assignor_raises_becomes_a_bad_assignment() -> None:
    cause = ZeroDivisionError("no members")
    with pytest.raises(BadAssignment, match="assignor answers raised ZeroDivisionError: no members") as caught:
        run_assignor(_Answers(cause), CLUSTER, MEMBERS)
    assert caught.value.__cause__ is cause


def test_a_bad_answer_names_the_assignor() -> None:
    with pytest.raises(BadAssignment, match="assignor answers: b is missing from the answer"):
        run_assignor(_Answers({"a": GOOD["a"]}), CLUSTER, MEMBERS)


def test_a_good_answer_comes_back() -> None:
    assert run_assignor(_Answers(GOOD), CLUSTER, MEMBERS) == GOOD


def test_a_trusted_assignor_is_not_checked() -> None:
    odd: Mapping[str, Sequence[Partition]] = {"a": [("orders", 9)]}
    assert run_assignor(_TrustedAnswers(odd), CLUSTER, MEMBERS) == odd


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "the answer is None; expected a mapping of member ids to partitions"),
        ([("a", [])], "expected a mapping of member ids to partitions"),
        ({"a": None, "b": []}, "a is given None; expected a list of (topic, partition) pairs"),
        ({"a": "orders-0", "b": []}, "a is given 'orders-0'; expected a list of (topic, partition) pairs"),
        ({"a": [3], "b": []}, "3 given to a: not a (topic, partition) pair"),
    ],
)
def test_an_answer_of_another_shape_is_refused(answer: object, complaint: str) -> None:
    class Shapeless(Assignor):
        name = "shapeless"

        def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
            return answer  # type: ignore[return-value]

    with pytest.raises(BadAssignment) as problem:
        run_assignor(Shapeless(), CLUSTER, MEMBERS)
    assert complaint in str(problem.value)
