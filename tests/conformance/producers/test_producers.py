"""Our producer and Kafka's Java producer lived the same lives on a real Kafka: what they asked is the same.

``make record-producers`` plays them again. Here our producer lives each of them once more, on our own brokers.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.producers.lives import LIVES, ProducerLife
from conformance.producers.requests import DIFFERENCES, compared
from tests.conformance.producers.replayed import replayed
from tests.conformance.replaying.waits import assert_as_late
from tests.paths import GOLDEN

EVERY_LIFE = pytest.mark.parametrize("life", LIVES, ids=lambda life: str(life.name))


def recorded(life: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "producers" / f"{life}.json").read_text())
    return found


def assert_the_same(ours: dict[str, Any], others: dict[str, Any], client: str) -> None:
    assert ours["outcomes"] == others["outcomes"]
    assert ours["producers"].keys() == others["producers"].keys()
    for name, kinds in others["producers"].items():
        for kind, lines in kinds.items():
            asked = ours["producers"][name][kind]
            assert compared("ours", asked) == compared(client, lines), f"{kind} of {name}"
    assert_as_late(ours["backoffs"], others["backoffs"])


@EVERY_LIFE
def test_both_clients_ask_the_same(life: ProducerLife) -> None:
    found = recorded(life.name)
    assert_the_same(found["ours"], found["java"], "java")


@EVERY_LIFE
def test_our_producer_asks_our_brokers_the_same(life: ProducerLife) -> None:
    assert_the_same(replayed(life), recorded(life.name)["ours"], "ours")


def test_each_difference_is_there() -> None:
    lines = [
        (client, line)
        for life in LIVES
        for client in ("java", "ours")
        for kinds in recorded(life.name)[client]["producers"].values()
        for line in (*kinds["requests"], *kinds["data"])
    ]
    for each in DIFFERENCES:
        assert {client for client, line in lines if line.startswith(each.begins)} == {each.client}, each.why


def test_a_record_is_repeated_with_its_sequence_and_once_without() -> None:
    with_sequences, without = (recorded(name)["java"] for name in ("lost-answer", "lost-answer-not-idempotent"))
    assert "after a lost answer" in "".join(with_sequences["backoffs"])
    assert any("sequence=1" in line for line in with_sequences["producers"]["p"]["requests"])
    assert not any("sequence" in line for line in without["producers"]["p"]["requests"])
