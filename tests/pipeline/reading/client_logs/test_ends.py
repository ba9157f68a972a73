"""Where consumers' logs end: who left is gone, and the group is empty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.why.rows import status_after
from tests.pipeline.reading.client_logs.logs import java, read
from tests.pipeline.recorded import tables_of

MEMBERS = {
    "orders-1": "orders-1-0b6ae9a5-6a36-4f1d-9d0c-4ac1b2f3c111",
    "orders-2": "orders-2-0b6ae9a5-6a36-4f1d-9d0c-4ac1b2f3c222",
    "orders-3": "orders-3-0b6ae9a5-6a36-4f1d-9d0c-4ac1b2f3c333",
}


def aiokafka(client: str, left_at: str | None) -> str:
    """The log of a process that joined the first generation, and left if it says when."""
    begin = [
        "00,000 INFO aiokafka.consumer.subscription_state: Updating subscribed topics to: frozenset({'orders'})",
        "00,100 INFO aiokafka.consumer.group_coordinator: Discovered coordinator 1 for group orders",
        "00,200 INFO aiokafka.consumer.group_coordinator: Revoking previously assigned partitions set() for group "
        "orders",
        "00,300 INFO aiokafka.consumer.group_coordinator: (Re-)joining group orders",
        f"03,400 INFO aiokafka.consumer.group_coordinator: Joined group 'orders' (generation 1) with member_id "
        f"{MEMBERS[client]}",
        "03,500 INFO aiokafka.consumer.group_coordinator: Successfully synced group orders with generation 1",
        "03,600 INFO aiokafka.consumer.group_coordinator: Setting newly assigned partitions {TopicPartition("
        f"topic='orders', partition={client[-1]})}} for group orders",
    ]
    end = (
        [] if left_at is None else [f"{left_at} INFO aiokafka.consumer.group_coordinator: LeaveGroup request succeeded"]
    )
    return "".join(f"2026-03-03 10:00:{line}\n" for line in (*begin, *end))


def tables(folder: Path, left_at: Mapping[str, str | None], more: str = "") -> dict[str, list[dict[str, Any]]]:
    """Tables of the logs of processes; ``more`` is the end of the log of each that does not leave."""
    for name, at in left_at.items():
        client = name.replace("_", "-")
        (folder / client).mkdir()
        (folder / client / f"{client}.log").write_text(aiokafka(client, at) + more * (at is None))
    return tables_of(sorted(folder.glob("*/*.log")))


def test_a_group_whose_members_all_left_is_empty_after_a_rebalance_of_its_own(tmp_path: Path) -> None:
    made = tables(tmp_path, {"orders_1": "20,000", "orders_2": "21,500"})
    last = made["rebalances"][-1]
    assert (last["outcome"], last["cause"], last["cause_member_id"]) == ("emptied", "leave", MEMBERS["orders-1"])
    assert last["ended_at_ms"] - last["prepared_at_ms"] == 1_500
    status = status_after("orders", last, len(made["rebalances"]))
    assert (status.state, status.members) == ("Empty", 0)
    assert {row["end"] for row in made["member_sessions"]} == {"left"}
    assert not [row for row in made["findings"] if row["finding"] == "rebalance-still-open"]


@pytest.mark.parametrize(
    ("left_at", "members"),
    [
        ({"orders_1": "20,000", "orders_2": None, "orders_3": None}, 2),
        ({"orders_1": "20,000", "orders_2": None}, 1),
        ({"orders_1": "20,000", "orders_2": "21,500", "orders_3": None}, 1),
    ],
)
def test_a_group_of_which_some_left_rebalances_where_the_logs_end(
    left_at: dict[str, str | None], members: int, tmp_path: Path
) -> None:
    made = tables(tmp_path, left_at)
    formed, last = made["rebalances"]
    assert (formed["outcome"], last["outcome"]) == ("completed", "open")
    assert (last["cause"], last["cause_member_id"]) == ("leave", MEMBERS["orders-1"])
    gone = [MEMBERS[name.replace("_", "-")] for name, at in left_at.items() if at is not None]
    assert last["left"] == gone
    status = status_after("orders", last, 2, made["member_sessions"])
    assert (status.state, status.members) == ("rebalancing", members)
    ends = {row["member_id"]: row["end"] for row in made["member_sessions"]}
    assert {member for member, end in ends.items() if end == "left"} == set(gone)
    assert not [row for row in made["findings"] if row["finding"] == "rebalance-still-open"]


def test_a_group_whose_other_members_go_on_for_long_did_not_rebalance(tmp_path: Path) -> None:
    later = (
        "2026-03-03 10:05:00,000 INFO aiokafka.consumer.group_coordinator: Discovered coordinator 1 for group orders\n"
    )
    made = tables(tmp_path, {"orders_1": "20,000", "orders_2": None}, more=later)
    (last,) = made["rebalances"]
    status = status_after("orders", last, 1, made["member_sessions"])
    assert (status.state, status.members) == ("Stable", 1)
    assert status_after("orders", last, 1).members == 2


def test_owners_are_called_by_their_client_ids_and_own_nothing_after_they_left(tmp_path: Path) -> None:
    made = tables(tmp_path, {"orders_1": "20,000", "orders_2": "21,500"})
    owned = {row["owner"]: row["length_ms"] for row in made["ownership"] if row["kind"] == "owned"}
    assert owned == {"orders-1": 16_400, "orders-2": 17_900}


def test_a_topic_without_partitions_in_an_outage_has_not_grown() -> None:
    away, back = "{'orders': 0}", "{'orders': 6}"
    for line in (
        f"aiokafka.consumer.group_coordinator: Metadata for topic has changed from {away} to {back}. ",
        java(
            "Request joining group due to: cached metadata has changed from (version7: {orders=[]}) at the "
            "beginning of the rebalance to (version9: {orders=[NO_RACKS, NO_RACKS]})"
        ),
    ):
        statements, _ = read(f"2026-03-03 10:00:00,000 INFO {line}")
        assert statements
        assert not any("grown" in each.values for each in statements)
