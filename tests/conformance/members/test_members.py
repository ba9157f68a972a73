"""Our client and Kafka's Java client lived the same lives on a real Kafka: what they asked is the same.

``make record-members`` plays them again. Here our client lives each of them once more, on our own coordinator.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.members.consumer_lives import CONSUMER_LIVES
from conformance.members.lives import LIVES, Life
from conformance.members.sequences import DIFFERENCES, without_repeated_lookups
from tests.conformance.members.replayed import replayed
from tests.conformance.replaying.waits import assert_as_late
from tests.paths import GOLDEN

UNTIMED = [life.name for life in LIVES if life.brokers > 1 or "restart" in life.steps]
"""Lives in which a coordinator goes away: how often a member asks for it, and for metadata, is a matter of time."""
EVERY_LIFE = pytest.mark.parametrize("life", LIVES, ids=lambda life: str(life.name))


def recorded(life: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "members" / f"{life}.json").read_text())
    return found


def compared(life: Life, lines: list[str]) -> list[str]:
    """Lines that must be equal for both clients."""
    return without_repeated_lookups(lines) if life.name in UNTIMED else lines


def intervals(life: Life, found: dict[str, Any]) -> dict[str, int]:
    """Requests that members repeat by a timer."""
    given: dict[str, int] = found["intervals"]
    return {api: each for api, each in given.items() if api != "Metadata" or life.name not in UNTIMED}


@EVERY_LIFE
def test_both_clients_ask_the_same(life: Life) -> None:
    java, ours = (recorded(life.name)[client]["members"] for client in ("java", "ours"))
    assert java.keys() == ours.keys()
    for name, kinds in java.items():
        for kind, lines in kinds.items():
            assert compared(life, ours[name][kind]) == compared(life, lines), f"{kind} of {name}"


@EVERY_LIFE
def test_both_clients_wait_as_long(life: Life) -> None:
    java, ours = (recorded(life.name)[client] for client in ("java", "ours"))
    assert ours["backoffs"].keys() & java["backoffs"].keys() or life.name.startswith("commit")
    assert_as_late(ours["backoffs"], java["backoffs"])
    assert_as_late(intervals(life, ours), intervals(life, java))


@EVERY_LIFE
def test_both_groups_go_through_the_same_states(life: Life) -> None:
    java, ours = (recorded(life.name)[client]["transitions"] for client in ("java", "ours"))
    assert java
    assert ours == java


def test_each_difference_has_a_life_and_a_reason() -> None:
    assert {each.life for each in DIFFERENCES} <= {life.name for life in (*LIVES, *CONSUMER_LIVES)}
    assert all(each.settings and each.why for each in DIFFERENCES)


@EVERY_LIFE
def test_our_client_lives_as_well_on_our_coordinator(life: Life) -> None:
    kafka, found = recorded(life.name)["ours"], replayed(life)
    for name, kinds in kafka["members"].items():
        for kind, lines in kinds.items():
            assert compared(life, found["members"][name][kind]) == compared(life, lines), f"{kind} of {name}"
    assert found["transitions"] == kafka["transitions"]
    assert_as_late(found["backoffs"], kafka["backoffs"])
    assert_as_late(intervals(life, found), intervals(life, kafka))
