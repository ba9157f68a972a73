"""ListTransactions: what its filters let through."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.list_transactions import ListTransactionsRequest
from tests.coordinator.core.driver import DrivenNode
from tests.coordinator.core.transactions.producer import Producer, node


@pytest.fixture(scope="module")
def driven() -> DrivenNode:
    """Three ids: one idle, one with a transaction for ten seconds, one with a new one."""
    made = node(transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000_000)
    producers = [Producer(made, each) for each in ("idle", "pay-old", "pay-new")]
    for producer in producers:
        producer.init()
    producers[1].produce()
    made.elapse(10_000)
    producers[2].produce()
    return made


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["idle", "pay-new", "pay-old"]),
        ({"state_filters": ("Ongoing",)}, ["pay-new", "pay-old"]),
        ({"state_filters": ("Nonsense",)}, []),
        ({"producer_id_filters": (0,)}, ["idle"]),
        ({"duration_filter": 9_999}, ["idle", "pay-old"]),
        ({"state_filters": ("Ongoing",), "duration_filter": 10_000}, []),
        ({"transactional_id_pattern": "pay-.*"}, ["pay-new", "pay-old"]),
        ({"transactional_id_pattern": "pay"}, []),
        ({"transactional_id_pattern": ""}, ["idle", "pay-new", "pay-old"]),
    ],
)
def test_filters(driven: DrivenNode, filters: dict[str, Any], found: list[str]) -> None:
    request = ListTransactionsRequest(**({"state_filters": (), "producer_id_filters": ()} | filters))
    answer = driven.ask(request, 2)
    assert sorted(each.transactional_id for each in answer.transaction_states) == found
    assert answer.unknown_state_filters == tuple(each for each in request.state_filters if each == "Nonsense")


def test_a_pattern_that_is_none(driven: DrivenNode) -> None:
    request = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern="(")
    assert driven.ask(request, 2).error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
