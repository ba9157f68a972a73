"""Other Python clients, asked the same: where they answer as Kafka does, and where not.

Each known difference has a test of its own, so that the list of them stays true.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.assignors.peers import PEERS, Answer, prepare
from rejoin.client.assignors import Assignments, ClusterView, MemberSubscription, assignor_named
from tests.client.assignors.groups import claiming, member
from tests.client.assignors.vectors import Vector, answer_of, assignor_vectors, cluster_of, members_of

BOTH = tuple(PEERS)


def _sets(answer: Assignments) -> dict[str, set[tuple[str, int]]]:
    return {member_id: set(given) for member_id, given in answer.items()}


def _ask(peer: str, assignor: str, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Answer:
    asked = prepare(peer, assignor, cluster, members)
    return asked.read(asked.ask())


def _ours(assignor: str, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
    return assignor_named(assignor).assign(cluster, members)


def _plain(vector: Vector) -> bool:
    """No racks, no static members, ASCII only, a subscription for each member, and not too large."""
    names = [*vector["topics"], *(m["member_id"] for m in vector["members"])]
    return (
        "assignment" in vector
        and "racks" not in vector
        and all(map(str.isascii, names))
        and all(m["group_instance_id"] is None and m["topics"] for m in vector["members"])
        and len(vector["members"]) <= 20
    )


PLAIN = [vector for vector in assignor_vectors() if _plain(vector)]
FRESH = [v for v in PLAIN if not any(m["owned"] for m in v["members"])]
EQUAL_SETS = [v for v in PLAIN if len({frozenset(m["topics"]) for m in v["members"]}) == 1]


@pytest.mark.parametrize("peer", BOTH)
@pytest.mark.parametrize("assignor", ["range", "sticky"])
def test_peers_answer_a_fresh_group_as_kafka_does(peer: str, assignor: str) -> None:
    asked = [vector for vector in FRESH if vector["assignor"] == assignor]
    assert len(asked) > 50
    for vector in asked:
        answer = _ask(peer, assignor, cluster_of(vector), members_of(vector))
        assert _sets(answer) == _sets(answer_of(vector)), vector["id"]


@pytest.mark.parametrize("peer", BOTH)
def test_peers_deal_to_equal_members_as_kafka_does(peer: str) -> None:
    asked = [vector for vector in EQUAL_SETS if vector["assignor"] == "roundrobin"]
    assert len(asked) > 40
    for vector in asked:
        answer = _ask(peer, "roundrobin", cluster_of(vector), members_of(vector))
        assert _sets(answer) == _sets(answer_of(vector)), vector["id"]


def test_aiokafka_deals_to_differing_members_as_kafka_does() -> None:
    for vector in PLAIN:
        if vector["assignor"] == "roundrobin":
            answer = _ask("aiokafka", "roundrobin", cluster_of(vector), members_of(vector))
            assert _sets(answer) == _sets(answer_of(vector)), vector["id"]


def test_kafka_python_cannot_deal_to_differing_members() -> None:
    members = {"a": member("t"), "b": member("t", "u"), "c": member("t", "u")}
    cluster = ClusterView({"t": 1, "u": 4})
    assert _sets(_ours("roundrobin", cluster, members))["a"] == {("t", 0)}
    members = {"a": member("t"), "b": member("u")}
    cluster = ClusterView({"t": 2, "u": 2})
    assert _sets(_ours("roundrobin", cluster, members)) == {"a": {("t", 0), ("t", 1)}, "b": {("u", 0), ("u", 1)}}
    with pytest.raises(KeyError):
        _ask("kafka-python", "roundrobin", cluster, members)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_kafka_python_forgets_members_when_static_and_dynamic_ones_alternate(assignor: str) -> None:
    members = {"a": member("t"), "b": member("t", instance="i1"), "c": member("t"), "d": member("t", instance="i2")}
    cluster = ClusterView({"t": 4})
    assert _sets(_ours(assignor, cluster, members)) == {
        "b": {("t", 0)},
        "d": {("t", 1)},
        "a": {("t", 2)},
        "c": {("t", 3)},
    }
    answer = _sets(_ask("kafka-python", assignor, cluster, members))
    assert not answer["a"]
    assert not answer["b"]
    assert len(answer["c"]) == len(answer["d"]) == 2


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_aiokafka_does_not_order_by_instance_id(assignor: str) -> None:
    members = {"a": member("t", instance="i2"), "b": member("t", instance="i1")}
    cluster = ClusterView({"t": 1})
    assert _sets(_ours(assignor, cluster, members)) == {"a": set(), "b": {("t", 0)}}
    assert _sets(_ask("aiokafka", assignor, cluster, members)) == {"a": {("t", 0)}, "b": set()}


@pytest.mark.parametrize("peer", BOTH)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_peers_order_names_by_code_point(peer: str, assignor: str) -> None:
    members = {"\ufffd": member("t"), "😀": member("t")}
    cluster = ClusterView({"t": 1})
    assert _sets(_ours(assignor, cluster, members))["😀"] == {("t", 0)}
    assert _sets(_ask(peer, assignor, cluster, members))["\ufffd"] == {("t", 0)}


@pytest.mark.parametrize("peer", BOTH)
def test_peers_stay_as_even_and_keep_as_much_but_not_the_same(peer: str) -> None:
    same = asked = 0
    for vector in EQUAL_SETS:
        if vector["assignor"] == "sticky" and vector["category"] in {"churn-uniform", "growth", "join-remainder"}:
            answer, kafkas = _ask(peer, "sticky", cluster_of(vector), members_of(vector)), answer_of(vector)
            assert sorted(map(len, answer.values())) == sorted(map(len, kafkas.values())), vector["id"]
            asked += 1
            same += _sets(answer) == _sets(kafkas)
    assert asked > 80
    assert 0 < same < asked


def test_kafka_python_cannot_read_the_sticky_user_data_of_kafka() -> None:
    members = {m: claiming("sticky", ["t"], owned, 1) for m, owned in {"a": [("t", 1)], "b": [("t", 0)]}.items()}
    cluster = ClusterView({"t": 2})
    assert _sets(_ours("sticky", cluster, members)) == {"a": {("t", 1)}, "b": {("t", 0)}}
    asked = prepare("kafka-python", "sticky", cluster, members, own_user_data=False)
    assert _sets(asked.read(asked.ask())) == {"a": {("t", 0)}, "b": {("t", 1)}}
    assert _sets(_ask("kafka-python", "sticky", cluster, members)) == {"a": {("t", 1)}, "b": {("t", 0)}}
    assert _sets(_ask("aiokafka", "sticky", cluster, members)) == {"a": {("t", 1)}, "b": {("t", 0)}}


def test_kafka_python_withholds_what_its_claimant_no_longer_wants() -> None:
    # a owned u-0 and has unsubscribed. Kafka withholds it, for a may still be reading; so does kafka-python.
    members = {"a": member("t", owned=[("t", 0), ("u", 0)], generation=1), "b": member("t", "u")}
    cluster = ClusterView({"t": 1, "u": 1})
    assert _sets(_ours("cooperative-sticky", cluster, members)) == {"a": {("t", 0)}, "b": set()}
    assert _sets(_ask("kafka-python", "cooperative-sticky", cluster, members)) == {"a": {("t", 0)}, "b": set()}
